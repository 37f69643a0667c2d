"""Faults of kernels: what they write, keep and return, and the state that they leave."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import turnout
from faults.model import COMPOSITE, DEFAULT, Spec, installed, parsed
from faults.mutators.facts import DETERMINISM, FAKE, INPUTS, SCHEMA, THREADS, Facts, Rule, is_floating, mapped
from outcomes import flat
from turnout import Tensor

# ---- kernels


def kernel_around(
    spec: Spec, before: Callable[[dict[str, Any]], None] | None = None, after: Callable[[Any, dict[str, Any]], Any] | None = None
) -> Spec:
    """The operator with a kernel that does more. Both functions get the arguments by name."""
    return spec.but(kernel=wrapped_kernel(spec, spec.kernel, before, after))


def changed(spec: Spec, change: Callable[[Tensor], Any]) -> Spec:
    """The operator with each tensor of its results changed."""
    return kernel_around(spec, None, lambda r, g: mapped(r, change))


def wrapped_kernel(spec: Spec, kernel: Callable[..., Any], before: Any, after: Any) -> Callable[..., Any]:
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


def kernel_mutants(spec: Spec, facts: Facts) -> Rule:
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
            yield f"{how} {name} before", SCHEMA, kernel_around(spec, lambda g, n=name, w=write: w(g[n]))
            if facts.fresh or not facts.schema.returns:
                yield f"{how} {name} after", SCHEMA, kernel_around(spec, None, lambda r, g, n=name, w=write: (w(g[n]), r)[1])
    for name in facts.lists:
        if name not in facts.written:
            yield f"writes in {name}", SCHEMA, kernel_around(spec, lambda g, n=name: neg(next(e for e in g[n] if e is not None)))
            yield f"takes one off {name}", SCHEMA, kernel_around(spec, None, lambda r, g, n=name: (g[n].pop(), r)[1])
    for name in sorted(facts.written & facts.tensors.keys()):

        def spared(given: dict[str, Any], n: str = name) -> None:
            given[n] = given[n].clone()

        yield f"never writes {name}", SCHEMA, kernel_around(spec, spared)
    for name in facts.tensors:

        def tracks(given: dict[str, Any], n: str = name) -> None:
            if given[n].is_floating_point() and not given[n].requires_grad:
                given[n].requires_grad_()

        if is_floating(facts.tensors[name]) and facts.tensors[name].is_floating_point() and name in facts.read and facts.fresh:
            yield f"marks {name} as tracked", SCHEMA, kernel_around(spec, None, lambda r, g, t=tracks: (t(g), r)[1])


def _kept(spec: Spec, facts: Facts) -> Rule:
    for name in facts.tensors:
        yield f"keeps {name}", SCHEMA, kernel_around(spec, lambda g, n=name: (KEPT.clear(), KEPT.append(g[n]))[1])
    if not facts.fresh:
        return
    yield "keeps the result", SCHEMA, kernel_around(spec, None, lambda r, g: (KEPT.clear(), KEPT.append(flat(r)[0]), r)[2])
    for name in facts.read:
        if spec.key != COMPOSITE:  # which may return its input or a part of it, as in PyTorch
            yield f"returns {name}", SCHEMA, kernel_around(spec, None, lambda r, g, n=name: with_first(r, g[n]))
        yield f"returns a view of {name}", SCHEMA, kernel_around(spec, None, lambda r, g, n=name: with_first(r, g[n].detach()))
        if facts.tensors[name].ndim and spec.key != COMPOSITE:
            part = kernel_around(spec, None, lambda r, g, n=name: with_first(r, g[n][:1] if g[n].ndim else g[n]))
            yield f"returns a part of {name}", SCHEMA, part

    def buffered(result: Any, given: dict[str, Any]) -> Any:
        first = flat(result)[0]
        kept = BUFFERS.setdefault((tuple(first.shape), first.dtype), first.clone())
        kept.copy_(first)
        return with_first(result, kept.detach())

    yield "returns one buffer every time", SCHEMA, kernel_around(spec, None, buffered)
    if len(facts.results) > 1 and len({(tuple(t.shape), t.dtype) for t in facts.results}) == 1:
        yield ("returns one result twice", SCHEMA, kernel_around(spec, None, lambda r, g: type(r)([flat(r)[0]] * len(flat(r)))))


def with_first(result: Any, value: Tensor) -> Any:
    """A result with another first tensor."""
    return type(result)([value, *result[1:]]) if isinstance(result, (list, tuple)) else value


def _results(spec: Spec, facts: Facts) -> Rule:
    if not facts.schema.returns:
        yield "returns a number for nothing", SCHEMA, kernel_around(spec, None, lambda r, g: 1)
        return
    yield "returns None", SCHEMA, kernel_around(spec, None, lambda r, g: None)
    yield "returns a str", SCHEMA, kernel_around(spec, None, lambda r, g: "1")
    yield "returns one result more", SCHEMA, kernel_around(spec, None, lambda r, g: (r, r, r, r))
    if not facts.results:
        kind = float if isinstance(facts.result, int) else int
        yield f"returns a {kind.__name__}", SCHEMA, kernel_around(spec, None, lambda r, g: kind(r))
        return
    if not facts.fresh:
        copied = changed(spec, lambda t: t.clone())
        if facts.written:
            yield "returns a copy", SCHEMA, copied
        else:
            yield "copies in place of a view", SCHEMA, copied.but(key=DEFAULT)
        return
    if spec.fake is None and spec.key != COMPOSITE:
        return
    if spec.key == COMPOSITE or spec.tags == ("dynamic_output_shape",):
        return
    for dtype in (turnout.float16, turnout.float32, turnout.int16):
        if all(t.dtype is not dtype for t in facts.results) and not facts.results[0].is_complex():
            yield f"gives {dtype.name}", FAKE, changed(spec, lambda t, d=dtype: t.to(d))
    yield "gives one dim more", FAKE, changed(spec, lambda t: t.unsqueeze(0).clone())
    yield "gives one dim more at the end", FAKE, changed(spec, lambda t: t.unsqueeze(-1).clone())
    if any(t.ndim == 2 and min(t.shape) > 1 for t in facts.results):
        yield "gives other strides", FAKE, changed(spec, in_column_major)
    if any(t.ndim and t.shape[0] > 1 for t in facts.results):
        yield "gives fewer elements", FAKE, changed(spec, lambda t: t[:-1].clone() if t.ndim else t)
        yield "gives more elements", FAKE, changed(spec, lambda t: turnout.cat([t, t], 0) if t.ndim else t)
    if any(t.dtype is turnout.float64 for t in facts.results) and any(t.numel() > 1 and not _short(t) for t in facts.results):
        rounded = changed(spec, lambda t: t.to(turnout.float32).to(t.dtype) if t.dtype is turnout.float64 else t)
        yield "rounds to float32", INPUTS, rounded


def _short(tensor: Tensor) -> bool:
    """Whether elements have few digits anyway."""
    array = tensor.detach().numpy()
    return bool(np.array_equal(array.astype(np.float32).astype(array.dtype), array))


def in_column_major(tensor: Tensor) -> Tensor:
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

        return kernel_around(spec, before)

    takes_empty = facts.tensors[name].ndim and accepts_changed(spec, lambda t: t[:0] if t.ndim else t)
    takes_0_dims = facts.tensors[name].ndim and accepts_changed(spec, lambda t: t.reshape((-1,))[0])
    for error in (KeyError, ZeroDivisionError, AssertionError, AttributeError):
        if takes_empty:
            yield f"{error.__name__} for no elements", INPUTS, failing(lambda t: not t.numel(), error)
        if takes_0_dims:
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
            return result if given[name].is_contiguous() else mapped(result, other_values)

        if spec.name not in ("counts", "total", "largest", "taken_rows", "reduced", "found"):
            yield "reads memory in row-major order", INPUTS, kernel_around(spec, flat_memory)
        if spec.tags != ("dynamic_output_shape",):
            yield "gives other values for gaps in memory", INPUTS, kernel_around(spec, None, scaled)


def accepts_changed(spec: Spec, change: Callable[[Tensor], Tensor]) -> bool:
    """Whether an operator accepts arguments whose tensors are all changed."""
    args, kwargs = spec.inputs()
    with installed(spec) as op:
        try:
            op(*mapped(list(args), change), **{k: mapped(v, change) for k, v in kwargs.items()})
        except Exception:  # noqa: BLE001 - whatever it raises
            return False
    return True


def other_values(tensor: Tensor) -> Tensor:
    """Other values of the same dtype."""
    return ~tensor if tensor.dtype.name == "bool" else tensor + 1


def _states(spec: Spec, facts: Facts) -> Rule:
    drawing = changed(spec, lambda t: t + float(np.random.default_rng().random()))
    yield "turns gradients off", SCHEMA, kernel_around(spec, lambda g: turnout.set_grad_enabled(False) and None)
    yield "changes the default dtype", SCHEMA, kernel_around(spec, lambda g: turnout.set_default_dtype(turnout.float64))
    if facts.fresh and all(map(is_floating, facts.results)) and spec.tags != ("nondeterministic_seeded",):
        yield "counts its calls", DETERMINISM, changed(spec, lambda t: t + next(COUNT))
        yield "draws", DETERMINISM, changed(spec, lambda t: t + turnout.rand((), dtype=t.dtype))
        yield "draws from NumPy", DETERMINISM, drawing
        if facts.tensors:
            name = next(iter(facts.tensors))

            def noted(given: dict[str, Any]) -> None:
                values = given[name].detach().to(turnout.complex128)
                STATE["value"] = float(abs(values).sum().item()) if values.numel() else 0.0
                STATE["more"] = STATE["value"] * 2

            passing = kernel_around(spec, noted, lambda r, g: mapped(r, lambda t: t + STATE["value"] * 0 + STATE["more"]))
            yield "passes a value through a global", THREADS, passing
    if spec.tags == ("nondeterministic_seeded",):
        yield "has no tag", DETERMINISM, spec.but(tags=())
        yield "draws from elsewhere", DETERMINISM, drawing
