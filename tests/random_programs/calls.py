"""Random calls, good and bad: what each one returns, raises or warns of, as text that two runs can be compared by.

`python -m random_programs.calls FIRST COUNT` prints one JSON line for each program: its lines, and what came of them. The last
line says how many calls the compiled call path finished.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import traceback
import warnings
from types import CodeType
from typing import Any

import turnout

UNARY = [
    "exp", "relu", "neg", "abs", "sqrt", "log", "sin", "tanh", "sigmoid", "isnan", "floor", "square", "reciprocal", "sum",
    "mean", "t",
]  # fmt: skip
BINARY = [
    "add", "sub", "mul", "div", "pow", "maximum", "minimum", "eq", "lt", "logical_and", "matmul", "atan2", "dot", "mm", "fmod",
]  # fmt: skip
SIGNS = ["+", "-", "*", "/", "**", "@", "==", "<", "//", "%"]
NUMBERS = [
    "2", "-3", "0", "1.5", "0.0", "-0.0", "True", "1e300", "1e-300", "float('inf')", "float('nan')", "1 << 40", "1 << 70",
    "3j", "16777217",
]  # fmt: skip
BAD = ["'two'", "None", "[1.0]", "Thing()", "numpy.ones(3)", "numpy.float32(2)", "..."]
SHAPES = ["(3,)", "(2, 3)", "(3, 3)", "()", "(0,)", "(1, 3)", "(4, 1, 3)", "(17,)", "(2, 16)", "(4, 5, 8)"]
SPECIAL = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-40, -5.0]
DTYPES = ["float32"] * 6 + ["float64", "float64", "float16", "bfloat16", "int64", "int8", "bool", "complex64"]
CHANGES = [
    "{0}.t()", "{0}[..., :2]", "{0}.detach()", "{0}.expand(2, *{0}.shape)", "turnout.as_subclass({0}, Mine)",
    "turnout.as_subclass({0}, Plain)",
]  # fmt: skip
# Views, with places and sizes that may not exist.
VIEWS = [
    "{0}[{1}]", "{0}[{1}:, {2}]", "{0}[{1}:{2}:2]", "{0}[..., {1}]", "{0}.transpose({1}, {2})", "{0}.t()", "{0}.unsqueeze({1})",
    "{0}.squeeze({1})", "{0}.squeeze()", "{0}.view(-1)", "{0}.view({1}, -1)", "{0}.reshape(({1}, {2}))", "{0}.permute(1, 0)",
    "{0}.permute(({1}, {2}))", "{0}.expand({1}, *{0}.shape)", "{0}.expand(({1}, {2}))", "{0}.diagonal()", "{0}.unfold({1}, 2, 1)",
    "{0}.as_strided(({1}, {2}), (1, {1}), {2})", "turnout.ops.aten.select.int({0}, {1}, {2})", "{0}.narrow({1}, 0, {2})",
    "turnout.ops.aten.select.int({0}, dim={1}, index={2})", "turnout.ops.aten.slice.Tensor({0}, {1}, {2})", "{0}.mT", "{0}.real",
    "turnout.ops.aten.expand({0}, [{1}, {2}])", "turnout.ops.aten.view({0}, ({1}, True))",
]  # fmt: skip
PLACES = ["0", "1", "2", "3", "-1", "-2", "5", "True", "None", "1.5", "1 << 70", "numpy.int64(1)", "-1 << 63"]
# Factories, conversions, fills, and what moves elements: {1} and {2} are sizes or places, {3} a dtype, {4} anything.
MADE = [
    "turnout.zeros({1}, {2})", "turnout.zeros(({1}, {2}))", "turnout.ones({1}, dtype={3})", "turnout.zeros(size=({1},))",
    "turnout.full(({1}, {2}), {4})", "turnout.full(({1},), {4}, dtype={3})", "turnout.zeros_like({0})",
    "turnout.ones_like({0}, dtype={3})", "turnout.full_like({0}, {4})", "{0}.new_zeros({1}, {2})",
    "{0}.new_ones(({1},), dtype={3})", "{0}.new_full(({1},), {4})", "turnout.empty({1}, dtype={3}).shape",
    "turnout.ops.aten.scalar_tensor({4})", "turnout.zeros({1}, device={4})", "turnout.zeros({1}, out={0})",
    "turnout.ones(2, requires_grad={4})", "turnout.zeros_like({0}, memory_format='contiguous_format')", "{0}.to({3})",
    "{0}.to({3}, copy=True)", "{0}.to({4})", "{0}.float()", "{0}.long()", "{0}.bool()",
    "{0}.double(memory_format='contiguous_format')", "turnout.ops.aten._to_copy({0}, dtype={3})",
    "turnout.ops.aten.to.dtype({0}, {3}, False, {4})", "{0}.contiguous()", "{0}.contiguous(memory_format={4})", "{0}.clone()",
    "{0}.clone(memory_format={4})", "{0}.fill_({4})", "{0}.zero_()", "{0}[{1}:].fill_({4})", "turnout.cat([{0}, {0}], {1})",
    "turnout.cat([{0}, {4}])", "turnout.cat(({0}, {0}.t()), dim={1})", "turnout.cat([])", "turnout.stack([{0}, {0}], {1})",
    "{0}[turnout.tensor([{1}, {2}])]", "{0}[turnout.tensor([[{1}], [{2}]])]", "{0}[turnout.tensor([True, False])]",
    "turnout.ops.aten.index.Tensor({0}, [None, turnout.tensor([{1}])])", "{0}.index_select({1}, turnout.tensor([{2}]))",
    "turnout.softmax({0}, {1})", "turnout.nn.functional.log_softmax({0}, {1}, dtype={3})", "{0}.repeat({1}, {2})",
    "turnout.nn.functional.layer_norm({0}, {0}.shape[-1:])", "turnout.nn.functional.layer_norm({0}, ({1},), {0}, None, {4})",
    "{0}.reshape({1}, {2})", "{0}.view({1}, {2})", "{0}.reshape(-1)", "{0}.permute({1}, {2})", "{0}.expand({1}, {2})",
]  # fmt: skip
# What is asked of tensors `x` and `y`: `d` is a dim or a place, `dims` some, `num` a number, `i` indices.
STATEMENTS = """
x + y; x - y; x * y; x / y; x > y; x == y; x <= y; x != num; x > num; x + num; x * num; num - x; x / num; x**y; x % y; x // y
m.maximum(x, y); m.minimum(y, x); m.fmod(x, y); x.logical_and(y); x & y; m.maximum(x, m.tensor(0.0))
x.exp(); x.log(); x.sqrt(); x.sin(); x.tanh(); -x; x.abs(); m.relu(x); x.floor(); x.ceil(); x.trunc(); x.isnan(); x.logical_not()
x.sum(); x.sum(d); m.sum(x, d, keep); x.sum(dims, keepdim=keep); x.mean(); x.mean(d); m.mean(x, d, keep); x.amax(d); x.square()
m.amax(x, dims, keep); m.amin(x, d, keep); x.max(); x.min(); F.softmax(x, d); F.log_softmax(x, d); F.layer_norm(x, x.shape[-1:])
x.clone().add_(y); x.clone().mul_(num); x.clone().sub_(y); x.clone().div_(y); x.clone().relu_(); x.clone().gt_(y)
x.clone().unsqueeze(0).add_(y); x.clone().add_(num); (lambda z: z.add_(z))(x.clone()); (lambda z: z.add_(z.t()))(x.clone())
m.cat([x, x], d); m.cat([x, y], d); m.stack([x, x, y]); m.where(x > 0, x, y); m.where(x > y, x, num); x[m.tensor([0])]
x.reshape(-1); x.clone(); x.to(m.float64); x @ y; F.linear(x, y); x.sum().item(); x @ x; x @ x.mT; x.mT @ x
m.addmm(y, x, x.t()); m.addmm(y, x, x.t(), alpha=2); m.bmm(x, x.mT); m.baddbmm(y, x, x.mT); F.linear(x, x); F.linear(x, x, y)
x.var(); x.std(d); m.var(x, dims, correction=0, keepdim=keep); x.norm(); x.norm(dim=d); x.prod(); x.prod(d, keep)
x.clamp(-1.0, 1.0); x.clone().clamp_(0, num); x.clamp(min=num); x.argmax(); x.argmax(d, keep); x.argmin(d); x.max(d)
x.min(d, keep); x.cumsum(d); x.sort(d); x.sort(d, descending=keep); x.sort(dim=d, stable=True); x.topk(1, d)
x.topk(2, d, keep); x.flip(d); x.tril(d); x.triu(num); (x > 0).any(); (x > 0).all(d); (x > 0).any(d, keep); x[x > 0]; x[i]
x[i, i]; x[:, i]; x[..., None, 0]; x[None, 1:]; x[..., i]; x.index_select(d, i); x.gather(d, (x > 0).long())
(lambda z: (z.__setitem__(i, num), z))(x.clone()); x.index_put((i,), y); (lambda z: (z.__setitem__(z > 0, num), z))(x.clone())
(lambda z: (z.__setitem__((0, ...), y), z))(x.clone()); x.clone().copy_(y)
(lambda z: (z.__setitem__(slice(1), x[:1]), z))(x.clone()); m.add(x, y, out=m.empty(0)); m.mul(x, y, out=m.empty_like(x))
m.sum(x, d, out=x.clone()); m.exp(x, out=x.clone()); x.item(); x.unbind(d); x.split(2, d); x.chunk(2, d); x + y.double()
x * (y > 0); x.masked_fill(x > 0, num)
m.zeros(3, 2); m.full((2,), num); m.ones((2, 3), dtype=x.dtype); m.arange(5)
m.arange(d, 9, 2); m.arange(3, d, -1); m.arange(num); m.zeros_like(x); m.rand(3, 5); m.randn(d, 3); m.randn((), dtype=x.dtype)
m.rand((2, 2), dtype=x.dtype); m.linspace(num, d, 7); m.linspace(0, num, 4, dtype=x.dtype); m.eye(3, dtype=x.dtype); m.eye(d, 2)
m.equal(x, y); m.equal(x, x); x.flatten(); x.reshape(2, -1); x.reshape(-1, 3); m.stack([x, x], d); m.stack((x, y), d); x.unbind(0)
F.nll_loss(x, m.arange(len(x)) % 2, reduction="sum"); F.cross_entropy(x, m.arange(len(x)) % 3); F.nll_loss(x, m.arange(len(x)))
(lambda z: m.autograd.grad(F.cross_entropy(z, m.arange(len(x)) % 3), z))(x.detach().requires_grad_()); x.masked_fill(y > 0, num)
F.silu(x); F.elu(x, num)
m.addcmul(x, x, x, value=num); x.sigmoid(); F.hardtanh(x, -1, num); F.softplus(x); m.addcdiv(x, y, x)
"""
BLOCKS = [
    "turnout.no_grad()", "turnout.inference_mode()", "state.exclude('Autograd')", "state.below_adinplaceorview()", "raising()",
    "Watching()",
]  # fmt: skip


def program(seed: int) -> list[str]:
    """The lines of one program: three tensors, and calls with them."""
    r = random.Random(seed)
    names = ["a", "b", "c"]
    lines = []
    shape, dtype = r.choice(SHAPES), r.choice(DTYPES)
    for name in names:
        shape = shape if r.random() < 0.7 else r.choice(SHAPES)
        dtype = dtype if r.random() < 0.8 else r.choice(DTYPES)
        lines.append(f"{name} = drawn({r.randrange(100)}, {shape}, turnout.{dtype})")
        if "float" in dtype and r.random() < 0.5:
            lines.append(f"{name}.requires_grad_()")
        if r.random() < 0.25:
            lines.append(f"{name} = {r.choice(CHANGES).format(name)}")
    for i in range(6):
        made = f"r{i}"
        call = _call(r, names)
        if r.random() < 0.2:
            lines.append(f"with {r.choice(BLOCKS)}: {made} = {call}")
        else:
            lines.append(f"{made} = {call}")
        if r.random() < 0.5:
            names = [*names[1:], made]
    for i, statement in enumerate(r.sample([s.strip() for s in STATEMENTS.replace("\n", ";").split(";") if s.strip()], 14)):
        given = f"{r.choice('abc')}, {r.choice('abc')}, {r.randint(-3, 2)}, {tuple(r.sample([-2, -1, 0, 1], r.randint(0, 2)))}"
        given += f", {r.choice(NUMBERS)}, {r.random() < 0.5}, turnout.tensor([0, -1, 1][:{r.randint(1, 3)}])"
        # Made twice, for the first one may learn what the second one uses.
        lines += [f"{made}{i} = (lambda x, y, d, dims, num, keep, i: {statement})({given})" for made in ("s", "t")]
    lines.append(f"{names[-1]}.sum().backward()")
    lines.append("grads = [t.grad for t in (a, b, c)]")
    return lines


def _call(r: random.Random, names: list[str]) -> str:
    one = r.choice(names)
    other = r.choice(names) if r.random() < 0.6 else r.choice(NUMBERS if r.random() < 0.7 else BAD)
    form = r.randrange(17)
    if form < 3:
        return f"{one} {r.choice(SIGNS)} {other}" if r.random() < 0.8 else f"{other} {r.choice(SIGNS)} {one}"
    if form < 5:
        name = r.choice(BINARY)
        return f"turnout.{name}({one}, {other})" if r.random() < 0.5 else f"{one}.{name}({other})"
    if form < 7:
        name = r.choice(UNARY)
        return f"turnout.{name}({one})" if r.random() < 0.5 else f"{one}.{name}()"
    if form < 8:
        given = r.choice(
            [f"{other}, alpha={r.choice(NUMBERS + BAD)}", f"other={other}", f"{other}, {other}", "", f"{other}, wrong=1"]
        )
        return f"turnout.ops.aten.{r.choice(['add', 'sub', 'mul'])}.Tensor({one}, {given})"
    if form < 9:
        name = r.choice(["add", "mul", "sub", "sum", "exp"])
        return (
            f"turnout.{name}({r.choice([f'{one}, out={other}', '', f'{one}, {other}, 3, 4', f'input={one}', f'{one}, dim=0'])})"
        )
    if form > 12:
        few, anything = PLACES[:4] if r.random() < 0.7 else PLACES, r.choice(NUMBERS + (BAD if r.random() < 0.2 else NUMBERS))
        dtype = f"turnout.{r.choice(DTYPES)}" if r.random() < 0.9 else r.choice(BAD)
        return r.choice(MADE).format(one, r.choice(few), r.choice(few), dtype, anything)
    if form > 9:
        few = PLACES[:4] if r.random() < 0.7 else PLACES
        return r.choice(VIEWS).format(one, r.choice(few), r.choice(few))
    return f"{one}.{r.choice(['add_', 'mul_', 'sub_', 'div_', 'copy_'])}({other})"


def outcome(lines: list[str]) -> list[Any]:
    """What came of each line."""
    import numpy

    import turnout
    from turnout import state as state
    from turnout.registry.modes import DispatchMode

    class Mine(turnout.Tensor):
        @classmethod
        def __turnout_dispatch__(cls, op: Any, ks: Any, args: Any) -> Any:
            seen.append(op.qualified_name)
            return op.redispatch(ks, *args)

    class Plain(turnout.Tensor):
        pass

    class Thing:
        def __repr__(self) -> str:
            return "a thing"

    class Watching(DispatchMode):
        def dispatch(self, op: Any, ks: Any, args: Any) -> Any:
            seen.append(op.qualified_name)
            return op.redispatch(ks, *args)

    class raising(warnings.catch_warnings):
        def __enter__(self) -> Any:
            entered = super().__enter__()
            warnings.simplefilter("error")
            return entered

    def drawn(seed: int, shape: tuple[int, ...], dtype: Any) -> Any:
        draw = numpy.random.default_rng(seed)
        values = numpy.asarray(draw.normal(size=shape) * 4)
        if seed % 4 == 0 and dtype.is_floating_point:
            values[draw.random(shape) < 0.3] = draw.choice(SPECIAL)
        return turnout.from_numpy(values).to(dtype)

    seen: list[str] = []
    m, F = turnout, turnout.nn.functional
    names: dict[str, Any] = {"__builtins__": __builtins__, **locals()}
    found = []
    for line in lines:
        seen.clear()
        names["grads"] = None
        before = set(names)
        code = compile(line, "<program>", "exec")
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", module="turnout_arrays")
            try:
                exec(code, names)
                result: Any = [described(names[n]) for n in sorted(set(names) - before)] or described(names["grads"])
            except Exception as error:  # noqa: BLE001 - any error is an outcome
                result = [*raised(error), frames_of_second(code, names)]
        found.append([result, [(w.category.__name__, str(w.message), w.filename.rpartition("/")[2]) for w in warned], list(seen)])
    return found


def raised(error: Exception) -> list[str]:
    """What an error says."""
    return [type(error).__name__, str(error), type(error.__context__).__name__]


def frames_of_second(code: CodeType, names: dict[str, Any]) -> Any:
    """What a line that failed raises when it runs again, with its frames; None if nothing.

    The first time has other frames: the first call with a key set looks up what serves it, and that of a function compiles it. A
    call that was taken in C before is not the first one for the Python functions.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(code, names)
        except Exception as error:  # noqa: BLE001 - any error is an outcome
            frames = [(f.filename.rpartition("/")[2], f.name, f.line) for f in traceback.extract_tb(error.__traceback__)[1:]]
            return [*raised(error), frames]
    return None


def described(value: Any) -> Any:
    """A result: all that a program can see of a tensor."""
    import turnout

    if isinstance(value, (list, tuple)):
        return [described(v) for v in value]
    if not isinstance(value, turnout.Tensor):
        return repr(value)
    array = value.array
    edges = None if value.grad_fn is None else [None if n is None else n.name() for n, _ in value.grad_fn.next_functions]
    return [
        type(value).__name__, str(value.dtype), list(value.shape), list(value.stride()), hashlib.md5(elements(array)).hexdigest(),
        value.keys, value.gmask, value.requires_grad, None if value.grad_fn is None else value.grad_fn.name(), edges,
        value.is_inference(), None if value.is_inference() else value._version, value.view_of is None, value.storage is None,
        array.flags.writeable, array.flags.aligned, str(value.device), metas(value), viewed(value),
    ]  # fmt: skip


def viewed(value: Any) -> Any:
    """Where the tensor lies in its memory, and the record of it as a view."""
    if value.storage is None:
        return None
    root = value.storage.array
    live = sum(one() is not None for one in value.storage.views)
    at = [
        value.storage_offset(),
        value.numel() and value.array.ctypes.data - root.ctypes.data,
        value.array.base is not None,
        live,
    ]
    view = value.view_of
    if view is None:
        return at
    chain = [(op.qualified_name, repr(rest), index) for op, rest, index in view.chain]
    return [
        *at,
        list(view.base.shape),
        chain,
        view.seen,
        view.multi,
        view.no_grad,
        view.maker,
        view.base.storage is value.storage,
    ]


def elements(array: Any) -> bytes:
    """The bytes of an array, with one NaN for all: which operand's sign a NaN takes is the processor's affair."""
    if array.dtype.kind not in "fc":
        return array.tobytes()
    parts = array.copy().reshape(-1).view(array.real.dtype)
    parts[parts != parts] = abs(parts.dtype.type("nan"))
    return parts.tobytes()


def metas(value: Any) -> Any:
    """What the node keeps to fit gradients."""
    node = value.grad_fn
    return repr(getattr(node, "metas", None)) if node is not None else None


def main(first: int, count: int) -> None:
    """Print the outcomes of the programs `first` to `first + count - 1`."""
    turnout.config.set(traceback="full")
    for seed in range(first, first + count):
        lines = program(seed)
        sys.stdout.write(json.dumps([seed, lines, outcome(lines)]) + "\n")
    from turnout.plugins import all_plugins

    taken = 0
    if any(p.name == "speed" and p.state == "active" for p in all_plugins()):
        from turnout_speed import _calls

        taken = _calls.taken()
    sys.stdout.write(json.dumps(taken) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
