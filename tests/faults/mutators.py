"""Rules that put one fault into a correct operator, wherever the fault shows.

A mutant that behaves like the operator would be no mutant, so each rule looks at a call first: a write is not dropped where
nothing is written, and a gradient is not doubled where it is zero.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import turnout
from faults.correct import CORRECT
from faults.model import COMPOSITE, DEFAULT, Spec, installed, parsed
from turnout import Tensor

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]

SCHEMA, FAKE, GRADIENTS = "test_schema", "test_faketensor", "test_gradients"
BATCHING, BACKENDS, INPUTS, DETERMINISM = "test_batching", "test_backends", "test_inputs", "test_determinism"
THREADS, COMPLIANCE, REPLAY = "test_threads", "test_composite_compliance", "test_aot_dispatch_static"


@dataclass(frozen=True)
class Mutant:
    """A correct operator with one fault. `check` is the one that is expected to find it."""

    spec: Spec
    rule: str
    check: str

    def __str__(self) -> str:
        return f"{self.spec.name}: {self.rule}"


def mutants() -> list[Mutant]:
    """All mutants of all correct operators, in a fixed order."""
    found = []
    for spec in CORRECT.values():
        facts = Facts(spec)
        for make in (_kernels, _fakes, _gradients, _batching, _backends, _schemas, _composites):
            found += [Mutant(mutant, rule, check) for rule, check, mutant in make(spec, facts)]
    return found


class Facts:
    """What a call of an operator shows."""

    def __init__(self, spec: Spec) -> None:
        self.schema = parsed(spec)
        args, kwargs = spec.inputs()
        names = [a.name for a in self.schema.positional]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        self.tensors = {n: v for n, v in given.items() if isinstance(v, Tensor)}
        self.lists = {n: v for n, v in given.items() if isinstance(v, list) and any(isinstance(e, Tensor) for e in v)}
        self.written = {a.name for a in self.schema.mutated_arguments}
        with installed(spec) as op:
            turnout.manual_seed(1)
            self.result = op(*args, **kwargs)
        self.results = [v for v in _flat(self.result) if isinstance(v, Tensor)]
        self.fresh = all(r.annotation is None for r in self.schema.returns) and bool(self.results)
        self.read = [n for n in self.tensors if n not in self.written]


def _flat(value: Any) -> list[Any]:
    return [v for part in value for v in _flat(part)] if isinstance(value, (list, tuple)) else [value]


def _mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """A result with each tensor changed."""
    if isinstance(value, (list, tuple)):
        return type(value)([_mapped(v, change) for v in value])
    return change(value) if isinstance(value, Tensor) else value


def _float(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


Rule = Iterator[tuple[str, str, Spec]]


# ---- kernels


def _around(
    spec: Spec, before: Callable[[dict[str, Any]], None] | None = None, after: Callable[[Any, dict[str, Any]], Any] | None = None
) -> Spec:
    """The operator with a kernel that does more. Both functions get the arguments by name."""
    return spec.but(kernel=_wrapped(spec, spec.kernel, before, after))


def _wrapped(spec: Spec, kernel: Callable[..., Any], before: Any, after: Any) -> Callable[..., Any]:
    names = [a.name for a in parsed(spec).positional]

    @functools.wraps(kernel)
    def changed(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if before is not None:
            before(given)
        split = len(args)
        result = kernel(*[given[n] for n in names[:split]], **{n: given[n] for n in kwargs})
        return result if after is None else after(result, given)

    return changed


KEPT: list[Any] = []
BUFFERS: dict[Any, Any] = {}
COUNT = itertools.count(1)
STATE: dict[str, Any] = {}


def _kernels(spec: Spec, facts: Facts) -> Rule:
    if spec.arrays:
        return
    yield from _writes(spec, facts)
    yield from _kept(spec, facts)
    yield from _results(spec, facts)
    yield from _accidents(spec, facts)
    yield from _states(spec, facts)


def _writes(spec: Spec, facts: Facts) -> Rule:
    def neg(tensor: Tensor) -> None:
        tensor.copy_(tensor.detach() + 1)

    def last(tensor: Tensor) -> None:
        array = tensor.detach().numpy()
        array[(..., *[-1] * array.ndim)] = array[(..., *[-1] * array.ndim)] + 1

    def doubled(tensor: Tensor) -> None:
        tensor.mul_(2).add_(1)

    for name in facts.read:
        if facts.tensors[name].dtype.name == "bool" or "index" in name or spec.name == "counts":
            continue
        for how, write in (("adds 1 to", neg), ("writes the last element of", last), ("doubles", doubled)):
            yield f"{how} {name} before", SCHEMA, _around(spec, lambda g, n=name, w=write: w(g[n]))
            if facts.fresh or not facts.schema.returns:
                yield f"{how} {name} after", SCHEMA, _around(spec, None, lambda r, g, n=name, w=write: (w(g[n]), r)[1])
    for name in facts.lists:
        if name not in facts.written:
            yield f"writes in {name}", SCHEMA, _around(spec, lambda g, n=name: neg(next(e for e in g[n] if e is not None)))
            yield f"takes one off {name}", SCHEMA, _around(spec, None, lambda r, g, n=name: (g[n].pop(), r)[1])
    for name in sorted(facts.written & facts.tensors.keys()):

        def spared(given: dict[str, Any], n: str = name) -> None:
            given[n] = given[n].clone()

        yield f"never writes {name}", SCHEMA, _around(spec, spared)
    for name in facts.tensors:

        def tracks(given: dict[str, Any], n: str = name) -> None:
            if given[n].is_floating_point() and not given[n].requires_grad:
                given[n].requires_grad_()

        if _float(facts.tensors[name]) and facts.tensors[name].is_floating_point() and name in facts.read and facts.fresh:
            yield f"marks {name} as tracked", SCHEMA, _around(spec, None, lambda r, g, t=tracks: (t(g), r)[1])


def _kept(spec: Spec, facts: Facts) -> Rule:
    for name in facts.tensors:
        yield f"keeps {name}", SCHEMA, _around(spec, lambda g, n=name: (KEPT.clear(), KEPT.append(g[n]))[1])
    if not facts.fresh:
        return
    yield "keeps the result", SCHEMA, _around(spec, None, lambda r, g: (KEPT.clear(), KEPT.append(_flat(r)[0]), r)[2])
    for name in facts.read:
        if spec.key != COMPOSITE:  # which may return its input or a part of it, as in PyTorch
            yield f"returns {name}", SCHEMA, _around(spec, None, lambda r, g, n=name: _first(r, g[n]))
        yield f"returns a view of {name}", SCHEMA, _around(spec, None, lambda r, g, n=name: _first(r, g[n].detach()))
        if facts.tensors[name].ndim and spec.key != COMPOSITE:
            yield (
                f"returns a part of {name}",
                SCHEMA,
                _around(spec, None, lambda r, g, n=name: _first(r, g[n][:1] if g[n].ndim else g[n])),
            )

    def buffered(result: Any, given: dict[str, Any]) -> Any:
        def change(tensor: Tensor) -> Tensor:
            key = (tuple(tensor.shape), tensor.dtype)
            kept = BUFFERS.setdefault(key, tensor.clone())
            kept.copy_(tensor)
            return kept.detach()

        made = _flat(result)
        return _first(result, change(made[0]))

    yield "returns one buffer every time", SCHEMA, _around(spec, None, buffered)
    if len(facts.results) > 1 and len({(tuple(t.shape), t.dtype) for t in facts.results}) == 1:
        yield "returns one result twice", SCHEMA, _around(spec, None, lambda r, g: type(r)([_flat(r)[0]] * len(_flat(r))))


def _first(result: Any, value: Tensor) -> Any:
    """A result with another first tensor."""
    return type(result)([value, *result[1:]]) if isinstance(result, (list, tuple)) else value


def _results(spec: Spec, facts: Facts) -> Rule:
    if not facts.schema.returns:
        yield "returns a number for nothing", SCHEMA, _around(spec, None, lambda r, g: 1)
        return
    yield "returns None", SCHEMA, _around(spec, None, lambda r, g: None)
    yield "returns a str", SCHEMA, _around(spec, None, lambda r, g: "1")
    yield "returns one result more", SCHEMA, _around(spec, None, lambda r, g: (r, r, r, r))
    if not facts.results:
        kind = float if isinstance(facts.result, int) else int
        yield f"returns a {kind.__name__}", SCHEMA, _around(spec, None, lambda r, g: kind(r))
        return
    if not facts.fresh:
        if facts.written:
            yield "returns a copy", SCHEMA, _around(spec, None, lambda r, g: _mapped(r, lambda t: t.clone()))
        else:
            yield (
                "copies in place of a view",
                SCHEMA,
                _around(spec, None, lambda r, g: _mapped(r, lambda t: t.clone())).but(key=DEFAULT),
            )
        return
    if spec.fake is None and spec.key != COMPOSITE:
        return
    check = FAKE
    if spec.key == COMPOSITE or spec.tags == ("dynamic_output_shape",):
        return
    for dtype in (turnout.float16, turnout.float32, turnout.int16):
        if all(t.dtype is not dtype for t in facts.results) and not facts.results[0].is_complex():
            yield f"gives {dtype.name}", check, _around(spec, None, _to(dtype))
    yield "gives one dim more", check, _around(spec, None, lambda r, g: _mapped(r, lambda t: t.unsqueeze(0).clone()))
    yield "gives one dim more at the end", check, _around(spec, None, lambda r, g: _mapped(r, lambda t: t.unsqueeze(-1).clone()))
    if any(t.ndim == 2 and min(t.shape) > 1 for t in facts.results):
        yield "gives other strides", check, _around(spec, None, lambda r, g: _mapped(r, _column_major))
    if any(t.ndim and t.shape[0] > 1 for t in facts.results):
        yield (
            "gives fewer elements",
            check,
            _around(spec, None, lambda r, g: _mapped(r, lambda t: t[:-1].clone() if t.ndim else t)),
        )
        yield (
            "gives more elements",
            check,
            _around(spec, None, lambda r, g: _mapped(r, lambda t: turnout.cat([t, t], 0) if t.ndim else t)),
        )
    if any(t.dtype is turnout.float64 for t in facts.results) and any(t.numel() > 1 and not _short(t) for t in facts.results):
        yield (
            "rounds to float32",
            INPUTS,
            _around(
                spec,
                None,
                lambda r, g: _mapped(r, lambda t: t.to(turnout.float32).to(t.dtype) if t.dtype is turnout.float64 else t),
            ),
        )


def _to(dtype: Any) -> Callable[[Any, dict[str, Any]], Any]:
    return lambda result, given: _mapped(result, lambda t: t.to(dtype))


def _short(tensor: Tensor) -> bool:
    """Whether elements have few digits anyway."""
    array = tensor.detach().numpy()
    return bool(np.array_equal(array.astype(np.float32).astype(array.dtype), array))


def _column_major(tensor: Tensor) -> Tensor:
    return tensor.permute(tuple(reversed(range(tensor.ndim)))).contiguous().permute(tuple(reversed(range(tensor.ndim))))


# The sizes for which a kernel fails, and how, by accident and not by a check.
def _accidents(spec: Spec, facts: Facts) -> Rule:
    if not facts.tensors or spec.name == "largest":
        return
    name = next(iter(facts.tensors))
    resized = [a.name for a in facts.schema.arguments if a.name in facts.tensors]

    def failing(condition: Callable[[Tensor], bool], error: type[Exception]) -> Spec:
        def before(given: dict[str, Any]) -> None:
            if condition(given[name]):
                raise error("by accident")

        return _around(spec, before)

    if facts.tensors:
        for error in (KeyError, ZeroDivisionError, AssertionError, AttributeError):
            if _accepts(spec, lambda t: t[:0] if t.ndim else t) and facts.tensors[name].ndim:
                yield f"{error.__name__} for no elements", INPUTS, failing(lambda t: not t.numel(), error)
            if _accepts(spec, lambda t: t.reshape((-1,))[0]) and facts.tensors[name].ndim:
                yield f"{error.__name__} for 0 dims", INPUTS, failing(lambda t: not t.ndim, error)
            if facts.tensors[name].numel() > 1:
                yield f"{error.__name__} for gaps in memory", INPUTS, failing(lambda t: not t.is_contiguous(), error)
    if facts.tensors[name].numel() > 1 and facts.fresh and resized:

        def flat_memory(given: dict[str, Any]) -> None:
            tensor = given[name]
            if not tensor.is_contiguous() and tensor.storage is not None and 0 not in tensor.stride():
                flat = np.asarray(tensor.storage.array).reshape(-1)[: tensor.numel()]
                given[name] = turnout.from_numpy(flat.reshape(tuple(tensor.shape)).copy())

        def scaled(result: Any, given: dict[str, Any]) -> Any:
            return result if given[name].is_contiguous() else _mapped(result, _other)

        if spec.name not in ("counts", "total", "largest", "taken_rows", "reduced", "found"):
            yield "reads memory in row-major order", INPUTS, _around(spec, flat_memory)
        if spec.tags != ("dynamic_output_shape",):
            yield "gives other values for gaps in memory", INPUTS, _around(spec, None, scaled)


def _accepts(spec: Spec, change: Callable[[Tensor], Tensor]) -> bool:
    """Whether an operator accepts arguments whose tensors are all changed."""
    args, kwargs = spec.inputs()
    with installed(spec) as op:
        try:
            op(*_mapped(list(args), change), **{k: _mapped(v, change) for k, v in kwargs.items()})
        except Exception:  # noqa: BLE001 - whatever it raises
            return False
    return True


def _other(tensor: Tensor) -> Tensor:
    """Other values of the same dtype."""
    return ~tensor if tensor.dtype.name == "bool" else tensor + 1


def _states(spec: Spec, facts: Facts) -> Rule:
    yield "turns gradients off", SCHEMA, _around(spec, lambda g: turnout.set_grad_enabled(False) and None)
    yield "changes the default dtype", SCHEMA, _around(spec, lambda g: turnout.set_default_dtype(turnout.float64))
    if facts.fresh and all(map(_float, facts.results)) and spec.tags != ("nondeterministic_seeded",):
        yield "counts its calls", DETERMINISM, _around(spec, None, lambda r, g: _mapped(r, lambda t: t + next(COUNT)))
        yield "draws", DETERMINISM, _around(spec, None, lambda r, g: _mapped(r, lambda t: t + turnout.rand((), dtype=t.dtype)))
        yield (
            "draws from NumPy",
            DETERMINISM,
            _around(spec, None, lambda r, g: _mapped(r, lambda t: t + float(np.random.default_rng().random()))),
        )
        if facts.tensors:
            name = next(iter(facts.tensors))

            def noted(given: dict[str, Any]) -> None:
                STATE["value"] = (
                    float(abs(given[name].detach().to(turnout.complex128)).sum().item()) if given[name].numel() else 0.0
                )
                STATE["more"] = STATE["value"] * 2

            yield (
                "passes a value through a global",
                THREADS,
                _around(spec, noted, lambda r, g: _mapped(r, lambda t: t + STATE["value"] * 0 + STATE["more"])),
            )
    if spec.tags == ("nondeterministic_seeded",):
        yield "has no tag", DETERMINISM, spec.but(tags=())
        yield (
            "draws from elsewhere",
            DETERMINISM,
            _around(spec, None, lambda r, g: _mapped(r, lambda t: t + float(np.random.default_rng().random()))),
        )


# ---- shapes without data


def _fakes(spec: Spec, facts: Facts) -> Rule:
    if spec.fake is None or not facts.results or spec.tags == ("dynamic_output_shape",):
        return
    fake = spec.fake

    def after(change: Callable[[Tensor], Any]) -> Spec:
        @functools.wraps(fake)
        def changed(*args: Any, **kwargs: Any) -> Any:
            return _mapped(fake(*args, **kwargs), change)

        return spec.but(fake=changed)

    def raising(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("by accident")

    if facts.fresh:
        for dtype in (turnout.float16, turnout.float32, turnout.int8, turnout.complex64):
            if all(t.dtype is not dtype for t in facts.results):
                yield f"fake gives {dtype.name}", FAKE, after(lambda t, d=dtype: t.to(d))
        only = facts.results[0].dtype
        if spec.name not in ("ramp", "counts", "as_dtype", "near") and len({t.dtype for t in facts.results}) == 1:
            yield f"fake gives {only.name} always", FAKE, after(lambda t, d=only: t.to(d))
        yield "fake gives one dim more", FAKE, after(lambda t: t.unsqueeze(0).clone())
        yield "fake gives one dim more at the end", FAKE, after(lambda t: t.unsqueeze(-1).clone())
        for dim in range(max(t.ndim for t in facts.results)):
            yield (
                f"fake gives a longer dim {dim}",
                FAKE,
                after(lambda t, d=dim: turnout.cat([t, t.narrow(d, 0, 1)], d) if t.ndim > d and t.shape[d] else t),
            )
            yield (
                f"fake drops dim {dim}",
                FAKE,
                after(lambda t, d=dim: t.select(d, 0).clone() if t.ndim > d and t.shape[d] else t),
            )
            yield (
                f"fake gives half of dim {dim}",
                FAKE,
                after(lambda t, d=dim: t.narrow(d, 0, t.shape[d] // 2).clone() if t.ndim > d else t),
            )
        if any(t.ndim == 2 and min(t.shape) > 1 for t in facts.results):
            yield "fake gives other strides", FAKE, after(_column_major)
            yield "fake swaps dims", FAKE, after(lambda t: t.transpose(0, 1).contiguous() if t.ndim == 2 else t)
        yield "fake is on the cpu", FAKE, after(lambda t: turnout.empty(t.shape, dtype=t.dtype, device="cpu"))
        shapes = [tuple(t.shape) for t in facts.results]
        if len(set(shapes)) == 1 and shapes[0] and spec.name not in ("counts",) and facts.tensors:
            yield "fake gives one shape always", FAKE, after(lambda t, s=shapes[0]: t.new_empty(s))
        if facts.tensors and any(t.ndim for t in facts.results) and _accepts(spec, lambda t: t.reshape((-1,))[0]):
            yield "fake gives a dim for 0 dims", FAKE, after(lambda t: t if t.ndim else t.new_empty((1,)))
        if len(facts.results) > 1:
            yield (
                "fake gives fewer results",
                FAKE,
                spec.but(fake=functools.wraps(fake)(lambda *a, **k: type(fake(*a, **k))(list(fake(*a, **k))[:1]))),
            )
            yield (
                "fake gives the results in reverse",
                FAKE,
                spec.but(fake=functools.wraps(fake)(lambda *a, **k: type(fake(*a, **k))(list(fake(*a, **k))[::-1])))
                if len({(t.dtype, tuple(t.shape)) for t in facts.results}) > 1
                else after(lambda t: t.unsqueeze(0).clone()),
            )
        for name in facts.read:
            if tuple(facts.tensors[name].shape) == shapes[0] and facts.tensors[name].dtype is facts.results[0].dtype:
                yield f"fake returns {name}", FAKE, _fake_input(spec, facts, name)
    yield "fake raises", FAKE, spec.but(fake=functools.wraps(fake)(raising))
    if facts.tensors:
        yield "fake reads a value", FAKE, _fake_reads(spec, facts)


def _fake_input(spec: Spec, facts: Facts, name: str) -> Spec:
    names, fake = [a.name for a in facts.schema.positional], spec.fake
    assert fake is not None

    @functools.wraps(fake)
    def changed(*args: Any, **kwargs: Any) -> Any:
        return _first(fake(*args, **kwargs), {**dict(zip(names, args, strict=False)), **kwargs}[name])

    return spec.but(fake=changed)


def _fake_reads(spec: Spec, facts: Facts) -> Spec:
    names, fake, name = [a.name for a in facts.schema.positional], spec.fake, next(iter(facts.tensors))
    assert fake is not None

    @functools.wraps(fake)
    def changed(*args: Any, **kwargs: Any) -> Any:
        {**dict(zip(names, args, strict=False)), **kwargs}[name].sum().item()
        return fake(*args, **kwargs)

    return spec.but(fake=changed)


# ---- gradients

LINEAR = ("add_scaled", "weighted", "halves", "signs", "top", "total", "twice_served", "noisy")


def _gradients(spec: Spec, facts: Facts) -> Rule:
    if spec.backward is None:
        return
    rule = spec.backward
    count = _gradient_count(spec)

    def changed(change: Callable[[Tensor], Any], at: int) -> Spec:
        @functools.wraps(rule)
        def backward(ctx: Any, *grads: Any) -> Any:
            found = rule(ctx, *grads)
            if not isinstance(found, tuple):
                return _mapped(found, change)
            return tuple([_mapped(g, change) if i == at else g for i, g in enumerate(found)])

        return spec.but(backward=backward)

    changes: dict[str, Callable[[Tensor], Any]] = {
        "doubled": lambda g: g * 2,
        "negated": lambda g: -g,
        "halved": lambda g: g * 0.5,
        "1% larger": lambda g: g * 1.01,
        "shifted": lambda g: g + 1,
        "zero": lambda g: g * 0,
        "one": lambda g: g * 0 + 1.5,
        "missing": lambda g: None,
        "of another shape": lambda g: turnout.cat([g.reshape((-1,)), g.reshape((-1,))[:1]]),
        "of one dim more": lambda g: turnout.stack([g, g]),
        "squared": lambda g: g * g * 3,
        "of its absolute value": lambda g: g.abs() * 1.2,
        "that fails": lambda g: g.no_such_method(),
        "a number": lambda g: 3.0,
        "without its first element": lambda g: g * (turnout.arange(g.numel()).reshape(tuple(g.shape)) > 0),
    }
    for at in range(count):
        for how, change in changes.items():
            yield f"gradient {at} {how}", GRADIENTS, changed(change, at)
        if spec.name not in LINEAR:
            yield f"gradient {at} detached", GRADIENTS, changed(lambda g: g.detach(), at)

    @functools.wraps(rule)
    def writes(ctx: Any, *grads: Any) -> Any:
        found = rule(ctx, *grads)
        for g in _flat(list(grads)):
            if isinstance(g, Tensor) and _float(g):
                g.mul_(2)
        return found

    @functools.wraps(rule)
    def short(ctx: Any, *grads: Any) -> Any:
        found = rule(ctx, *grads)
        return (*found, found[0], found[0]) if isinstance(found, tuple) else (found, found, found)

    yield "backward writes the incoming gradient", GRADIENTS, spec.but(backward=writes)
    yield "backward returns too many", GRADIENTS, spec.but(backward=short)
    if spec.setup is not None:

        def forgetful(ctx: Any, *args: Any, **kwargs: Any) -> None:
            return None

        yield "nothing is saved", GRADIENTS, spec.but(setup=functools.wraps(spec.setup)(forgetful))
        if spec.name not in (*LINEAR, "normalised_rows"):
            yield "what is saved is detached", GRADIENTS, spec.but(setup=_detached_setup(spec.setup))
            yield "what is saved is that of the latest call", GRADIENTS, _latest(spec)


def _gradient_count(spec: Spec) -> int:
    """How many gradients the rule returns that are not None."""
    args, kwargs = spec.inputs()
    kinds: list[Any] = []
    rule = spec.backward
    assert rule is not None

    def counted(ctx: Any, *grads: Any) -> Any:
        found = rule(ctx, *grads)
        kinds.append(found)
        return found

    leaves = _mapped(list(args), lambda t: t.clone().requires_grad_() if _float(t) else t)
    with installed(spec.but(backward=functools.wraps(rule)(counted))) as op:
        outputs = [o for o in _flat(op(*leaves, **kwargs)) if isinstance(o, Tensor) and o.requires_grad]
        inputs = [t for t in _flat(leaves) if isinstance(t, Tensor) and t.requires_grad]
        turnout.autograd.grad(outputs, inputs, [turnout.ones_like(o) for o in outputs], allow_unused=True)
    found = kinds[0]
    return sum(g is not None for g in found) if isinstance(found, tuple) else 1


def _detached_setup(setup: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(setup)
    def detached(ctx: Any, inputs: Any, *rest: Any, **kwargs: Any) -> None:
        setup(ctx, tuple([_mapped(v, lambda t: t.detach().clone()) for v in inputs]), *rest, **kwargs)

    return detached


def _latest(spec: Spec) -> Spec:
    setup, rule = spec.setup, spec.backward
    assert setup is not None
    assert rule is not None
    latest: dict[str, Any] = {}

    @functools.wraps(setup)
    def noted(ctx: Any, *args: Any, **kwargs: Any) -> None:
        setup(ctx, *args, **kwargs)
        latest["ctx"] = ctx

    @functools.wraps(rule)
    def late(ctx: Any, *grads: Any) -> Any:
        return rule(latest["ctx"], *grads)

    return spec.but(setup=noted, backward=late)


# ---- batches


def _batching(spec: Spec, facts: Facts) -> Rule:
    if spec.vmap is None:
        return
    rule = spec.vmap

    def changed(change: Callable[[Any, Any], Any]) -> Spec:
        @functools.wraps(rule)
        def batched(info: Any, dims: Any, *args: Any) -> Any:
            return change(*rule(info, dims, *args))

        return spec.but(vmap=batched)

    yield "batching of other values", BATCHING, changed(lambda r, d: (r + 1, d))
    yield "batching of doubled values", BATCHING, changed(lambda r, d: (r * 2, d))
    yield "batching of another dtype", BATCHING, changed(lambda r, d: (r.to(turnout.float32), d))
    yield "batching without a batch", BATCHING, changed(lambda r, d: (r.select(d, 0), None))
    yield "batching in reverse", BATCHING, changed(lambda r, d: (r.flip((d,)), d))
    yield "batching that returns no dim", BATCHING, changed(lambda r, d: r)
    yield "batching with one dim more", BATCHING, changed(lambda r, d: (r.unsqueeze(-1), d))
    yield "batching of one example", BATCHING, changed(lambda r, d: (r.select(d, 0).unsqueeze(d).expand(tuple(r.shape)), d))

    @functools.wraps(rule)
    def at_front(info: Any, dims: Any, *args: Any) -> Any:
        return rule(info, tuple([0 if d is not None else None for d in dims]), *args)

    yield "batching at the front only", BATCHING, spec.but(vmap=at_front)

    @functools.wraps(rule)
    def raising(info: Any, dims: Any, *args: Any) -> Any:
        raise KeyError("by accident")

    yield "batching that fails", BATCHING, spec.but(vmap=raising)


# ---- kernels that disagree


def _backends(spec: Spec, facts: Facts) -> Rule:
    if spec.key != DEFAULT or not facts.fresh or spec.kernels or spec.tags or spec.checked or not facts.tensors:
        return
    kernel = spec.kernel

    def beside(after: Any) -> Spec:
        return spec.but(kernels={"CPU": _wrapped(spec, kernel, None, after)})

    yield "cpu gives other values", BACKENDS, beside(lambda r, g: _mapped(r, _other))
    yield "cpu gives another dtype", BACKENDS, beside(lambda r, g: _mapped(r, lambda t: t.to(turnout.float16)))
    yield "cpu gives one dim more", BACKENDS, beside(lambda r, g: _mapped(r, lambda t: t.unsqueeze(0).clone()))
    name = next(iter(facts.tensors))
    if facts.tensors[name].ndim and _accepts(spec, lambda t: t.narrow(0, 0, 1) if t.ndim else t):
        yield (
            "cpu gives other values for one element",
            BACKENDS,
            beside(lambda r, g: _mapped(r, _other) if g[name].ndim and g[name].shape[0] == 1 else r),
        )
    yield (
        "cpu gives other values for gaps in memory",
        BACKENDS,
        beside(lambda r, g: r if g[name].is_contiguous() else _mapped(r, _other))
        if facts.tensors[name].numel() > 1
        else beside(lambda r, g: _mapped(r, _other)),
    )

    def fails(result: Any, given: dict[str, Any]) -> Any:
        raise KeyError("by accident")

    yield "cpu fails", BACKENDS, beside(fails)


# ---- schemas


def _schemas(spec: Spec, facts: Facts) -> Rule:
    text = spec.schema
    plain = spec.but(backward=None, setup=None, vmap=None)
    for mark in ("a", "b"):
        if f"({mark}!)" in text:
            yield f"no mark of the write {mark}", SCHEMA, spec.but(schema=text.replace(f"({mark}!)", ""))
    if "(a)" in text and spec.key != COMPOSITE:
        yield "no mark of the view", SCHEMA, spec.but(schema=text.replace("(a -> *)", "").replace("(a)", "")).but(key=spec.key)
    if spec.checked or spec.arrays:
        return
    for name in facts.read:
        if f"Tensor {name}" in text:
            marked = text.replace(f"Tensor {name}", f"Tensor(z!) {name}", 1)
            yield f"a mark of a write of {name}", SCHEMA, plain.but(schema=marked)
            if text.endswith("-> Tensor") and facts.fresh:
                viewed = text.replace(f"Tensor {name}", f"Tensor(z) {name}", 1).removesuffix("Tensor") + "Tensor(z)"
                yield f"a mark of a view of {name}", SCHEMA, plain.but(schema=viewed)
    if text.endswith("-> Tensor"):
        yield "a second result in the schema", SCHEMA, plain.but(schema=text.removesuffix("Tensor") + "(Tensor, Tensor)")
        yield "a list in the schema", SCHEMA, plain.but(schema=text + "[]")
        yield "a number in the schema", SCHEMA, plain.but(schema=text.removesuffix("Tensor") + "int")


# ---- composites


def _composites(spec: Spec, facts: Facts) -> Rule:
    if spec.key != COMPOSITE or not facts.fresh:
        return

    def detached(given: dict[str, Any]) -> None:
        given["x"] = given["x"].detach()

    def numpied(given: dict[str, Any]) -> None:
        given["x"] = turnout.from_numpy(given["x"].detach().numpy().copy())

    yield "detaches its input", COMPLIANCE, _around(spec, detached)
    yield (
        "makes an array of its result",
        COMPLIANCE,
        _around(spec, None, lambda r, g: turnout.from_numpy(np.array(r.detach().numpy(), order="C"))),
    )
    yield "copies its input through an array", COMPLIANCE, _around(spec, numpied)
    yield (
        "bakes in a number",
        REPLAY,
        _around(spec, None, lambda r, g: r * float(g["x"].detach().sum().item()) if g["x"].numel() else r),
    )
    yield (
        "branches on a value",
        REPLAY,
        _around(spec, None, lambda r, g: r * 2 if g["x"].numel() and g["x"].detach().sum().item() > 0 else r),
    )
