"""The rows: what is timed against what, and the ratios that are wanted.

Each row prepares its two sides in a context manager and takes back there what it registered. A row that cannot be measured here
raises `Skipped` with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, NamedTuple

import cards
import compiled
import drawn
import engines
import kernels
import modules
import numpy as np
import opencl
import small
import startup
import transforms
from numeric import against_numpy, against_torch, torch_with_threads, training
from timing import Pair, Result, Side

import turnout
import turnout_arrays
from turnout import registry
from turnout.library import Library, custom_op
from turnout.registry import find_operator
from turnout_aten.kernels.tables import register_kernels

VALUES = [1.0, 2.0, 3.0, 4.0]
MANY, FEW = 10_000, 10
BACKENDS = 64
LARGE = 10_000_000
CUSTOM_OP, IMPL = "custom_op", "Library.impl"


CALLS, KERNELS, SMALL, TRANSFORMS, OPENCL, CUDA, DRAWN = "calls", "kernels", "small", "transforms", "opencl", "cuda", "drawn"
COMPILED, ENGINES = "compiled", "engines"


class Row(NamedTuple):
    """One line of the table.

    against  what the second time is of
    at_most  the wanted bound and `aim` the hoped-for one, of the ratio, or of the difference in ms; None: only shown
    pair     prepares both sides; or `run`, for rows that are no two statements of this process
    repeats  how often both sides are timed; fewer where a statement takes long
    """

    name: str
    what: str
    against: str
    at_most: float | None
    aim: float | None
    pair: Callable[[], AbstractContextManager[Pair]] | None = None
    run: Callable[[bool], Result] | None = None
    repeats: int = 200


def torch_on_one_thread() -> Any:
    """The module torch. Raises Skipped where it is not installed."""
    return torch_with_threads(1)


# ---- calls


@contextmanager
def add() -> Iterator[Pair]:
    """An addition of small tensors."""
    torch = torch_on_one_thread()
    yield Pair(_sum_of(turnout, requires_grad=False), _sum_of(torch, requires_grad=False))


@contextmanager
def recorded() -> Iterator[Pair]:
    """The same where one operand requires a gradient."""
    torch = torch_on_one_thread()
    yield Pair(_sum_of(turnout, requires_grad=True), _sum_of(torch, requires_grad=True))


def _sum_of(library: Any, *, requires_grad: bool) -> Side:
    x = library.tensor(VALUES, requires_grad=requires_grad)
    return Side("x + y", x=x, y=library.tensor(VALUES))


BACKWARD = "leaf = x.detach().requires_grad_(); (leaf * y).sum().backward()"


@contextmanager
def backward() -> Iterator[Pair]:
    """A new leaf, two operators and the sweep back."""
    torch = torch_on_one_thread()
    ours, theirs = (Side(BACKWARD, x=m.tensor(VALUES), y=m.tensor(VALUES)) for m in (turnout, torch))
    yield Pair(ours, theirs)


@contextmanager
def large() -> Iterator[Pair]:
    """An addition that memory and cores decide."""
    a = np.ones(LARGE, np.float32)
    b = np.ones(LARGE, np.float32)
    yield Pair(Side("x + y", x=turnout.from_numpy(a), y=turnout.from_numpy(b)), Side("a + b", a=a, b=b))


# ---- custom operators


def turnout_operator(stack: ExitStack, *, through: str, ported: bool) -> Callable[..., Any]:
    """An operator whose kernel is numpy.sin; `ported` takes tensors, as a kernel written for torch does."""

    def sin(x: turnout.Tensor) -> turnout.Tensor:
        return turnout.from_numpy(np.sin(x.numpy()))

    if through == CUSTOM_OP:
        schema = "(Tensor x) -> Tensor"
        kernel = sin if ported else np.sin
        op = custom_op("benchmarks::sin", kernel, mutates_args=(), schema=schema, arrays=not ported)
        stack.callback(op.undo)
        return op
    library = stack.enter_context(Library("benchmarks", "DEF"))
    library.define("sin(Tensor x) -> Tensor")
    library.impl("sin", sin if ported else np.sin, "CPU", arrays=not ported)
    return find_operator("benchmarks::sin")


def torch_operator(stack: ExitStack, *, through: str) -> Callable[..., Any]:
    """The same for torch."""
    torch = torch_on_one_thread()

    def sin(x: Any) -> Any:
        return torch.from_numpy(np.sin(x.numpy()))

    if through == CUSTOM_OP:
        schema = "(Tensor x) -> Tensor"
        made: Callable[..., Any] = torch.library.custom_op("benchmarks_custom::sin", sin, mutates_args=(), schema=schema)
        return made
    library = torch.library.Library("benchmarks", "DEF")
    stack.callback(library._destroy)
    library.define("sin(Tensor x) -> Tensor")
    library.impl("sin", sin, "CPU")
    handle: Callable[..., Any] = torch.ops.benchmarks.sin.default
    return handle


def custom(through: str, *, takes_tensors: bool = False) -> Callable[[], AbstractContextManager[Pair]]:
    """What prepares a row about a custom operator."""

    @contextmanager
    def prepare() -> Iterator[Pair]:
        with ExitStack() as stack:
            theirs = torch_operator(stack, through=through)
            ours = turnout_operator(stack, through=through, ported=takes_tensors)
            x = turnout.tensor(VALUES)
            y = torch_on_one_thread().tensor(VALUES)
            yield Pair(Side("op(x)", op=ours, x=x), Side("op(x)", op=theirs, x=y))

    return prepare


def ported(through: str) -> Callable[[], AbstractContextManager[Pair]]:
    """The same with a kernel on tensors on both sides: what changing the import gives."""
    return custom(through, takes_tensors=True)


@contextmanager
def gradient(*, takes_tensors: bool) -> Iterator[Pair]:
    """A custom operator with a rule for its gradient, forward and backward."""

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.saved_tensors[0].cos()

    with ExitStack() as stack:
        theirs = torch_operator(stack, through=CUSTOM_OP)
        ours = turnout_operator(stack, through=CUSTOM_OP, ported=takes_tensors)
        sides = []
        pairs: list[tuple[Any, Any]] = [(ours, turnout), (theirs, torch_on_one_thread())]
        for op, m in pairs:
            op.register_autograd(backward, setup_context=setup_context)
            x = m.tensor(VALUES, requires_grad=True)
            sides.append(Side("op(x).backward(g); x.grad = None", op=op, x=x, g=m.tensor(VALUES)))
        yield Pair(*sides)


# ---- size of the system


@contextmanager
def operators() -> Iterator[Pair]:
    """Turnout with many operators against turnout with few."""
    with Library("benchmarks", "DEF") as few:
        _define(few, range(FEW))
        many: list[Library] = []

        def switch(side: int) -> None:
            if side == 0 and not many:
                library = Library("benchmarks", "FRAGMENT")
                many.append(library)
                _define(library, range(FEW, MANY))
            elif side == 1 and many:
                many.pop().undo()

        try:
            names = {"x": turnout.tensor(VALUES), "y": turnout.tensor(VALUES), "op": turnout.ops.benchmarks.same0.default}
            yield Pair(Side("x + y; op(x)", **names), Side("x + y; op(x)", **names), switch, turns=9)
        finally:
            switch(1)


def _same(x: Any) -> Any:
    """A kernel that does nothing: the time is that of the call."""
    return x


def _define(library: Library, numbers: range) -> None:
    for i in numbers:
        library.define(f"same{i}(Tensor x) -> Tensor")
        library.impl(f"same{i}", _same, "CPU")


@contextmanager
def backends() -> Iterator[Pair]:
    """Turnout with many backends against turnout with one, called with tensors of that one."""
    others: list[registry.Registrations] = []

    def switch(side: int) -> None:
        if side == 0 and not others:
            others.append(_register_backends(BACKENDS - 1))
        elif side == 1 and others:
            others.pop().undo()

    try:
        names = {"x": turnout.tensor(VALUES), "y": turnout.tensor(VALUES)}
        yield Pair(Side("x + y", **names), Side("x + y", **names), switch, turns=9)
    finally:
        switch(1)


def _register_backends(count: int) -> registry.Registrations:
    library = registry.Registrations("benchmarks")
    table = turnout_arrays.kernels(np)
    for i in range(count):
        names = {"name": f"BENCH{i}", "device_type": f"bench{i}"}
        backend = type(f"Bench{i}", (turnout_arrays.ArrayBackend,), names)(np)
        library.backend(backend)
        register_kernels(library, backend, table)
    return library


# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS = [
    Row("add",           "x + y, 4 floats",                        "torch",            0.65, 0.50, add),
    Row("recorded",      "the same, gradient recorded",            "torch",            0.85, 0.60, recorded),
    Row("backward",      "leaf, mul, sum, backward",               "torch",            0.55, 0.40, backward),
    Row("custom_op",     "numpy.sin through custom_op",            "torch",            0.08, 0.06, custom(CUSTOM_OP)),
    Row("impl",          "numpy.sin through Library.impl",         "torch",            0.25, 0.20, custom(IMPL)),
    Row("custom_ported", "custom_op, kernel written for torch",    "torch",            0.30, None, ported(CUSTOM_OP)),
    Row("impl_ported",   "Library.impl, kernel written for torch", "torch",            0.90, None, ported(IMPL)),
    Row("custom_grad",   "custom_op with a gradient, backward",    "torch",            0.30, None, lambda: gradient(takes_tensors=False)),
    Row("custom_grad_ported", "the same, kernel written for torch", "torch",           0.30, None, lambda: gradient(takes_tensors=True)),
    Row("large",         "x + y, 10 million floats",               "NumPy",            1.05, 0.60, large, repeats=60),
    Row("operators",     f"a call with {MANY:,} operators",        f"{FEW} operators", 1.05, 1.00, operators, repeats=15),
    Row("backends",      f"a call with {BACKENDS} backends",       "1 backend",        1.05, 1.00, backends, repeats=15),
    Row("mlp",           "training step, MLP 784-256-10, batch 64", "torch, 1 thread", 1.15, 0.95, run=training),
    Row("modules",       "the same step, modules and SGD",         "torch, 1 thread",  0.95, None, run=modules.of("perceptron")),
    Row("identities",    "Sequential of 20 Identity",              "torch",            0.60, None, run=modules.of("identities")),
    Row("gpt",           "training step, GPT 4 x 128, modules",    "torch, 1 thread",  None, None, run=modules.of("gpt")),
    Row("gpt_functions", "the same",                               "functions alone",  1.05, None, run=modules.of("gpt_functions")),
    Row("matmul_np",     "matmul, 2048 x 2048",                    "NumPy",            None, 1.00, against_numpy("x @ y", "x @ y", x=(2048, 2048), y=(2048, 2048)), repeats=15),
    Row("matmul",        "the same",                               "torch",            None, 1.00, against_torch("x @ y", x=(2048, 2048), y=(2048, 2048)), repeats=15),
    Row("chain_np",      "4 element-wise calls, 10 million floats", "NumPy",           None, 1.00, against_numpy("m.exp(x * y + x).sqrt()", "np.sqrt(np.exp(x * y + x))", x=(LARGE,), y=(LARGE,)), repeats=15),
    Row("chain",         "the same",                               "torch",            None, 1.00, against_torch("m.exp(x * y + x).sqrt()", x=(LARGE,), y=(LARGE,)), repeats=15),
    Row("softmax",       "softmax, 4096 x 1024, last dim",         "torch",            None, 1.50, against_torch("x.softmax(-1)", x=(4096, 1024)), repeats=15),
    Row("layer_norm",    "layer_norm, 4096 x 1024",                "torch",            None, 1.50, against_torch("m.nn.functional.layer_norm(x, [1024], w, b)", x=(4096, 1024), w=(1024,), b=(1024,)), repeats=15),
    Row("conv2d",        "conv2d, 32x64x56x56, 64 filters 3x3",    "torch",            None, 1.50, against_torch("m.nn.functional.conv2d(x, w, padding=1)", x=(32, 64, 56, 56), w=(64, 64, 3, 3)), repeats=15),
    Row("sort",          "sort, 1000 x 1000, last dim",            "torch",            None, 1.50, against_torch("x.sort(-1)", x=(1000, 1000)), repeats=15),
    Row("sum0",          "sum, 200 x 300 x 400, dim 0",            "torch",            None, 1.50, against_torch("x.sum(0)", x=(200, 300, 400)), repeats=15),
    Row("sum1",          "the same, dim 1",                        "torch",            None, 1.50, against_torch("x.sum(1)", x=(200, 300, 400)), repeats=15),
    Row("sum2",          "the same, dim 2",                        "torch",            None, 1.50, against_torch("x.sum(2)", x=(200, 300, 400)), repeats=15),
    Row("import",        "import turnout, over bare Python",       "bare Python",      60.0, 25.0, run=startup.measure),
    Row("first_call",    "first call, over turnout-cpu alone",     "no turnout-kernels", 50.0, None, run=startup.measure_first_call),
]
# fmt: on

# What each group measures. Kernels and small calls are for one thread, each against torch; for all of them only the aim is stated.
GROUPS = {
    CALLS: ROWS,
    SMALL: [Row(r.name, r.statement, "torch", None, 1.0, small.pair(r), repeats=15) for r in small.ROWS],
    COMPILED: [
        Row(f"compiled{i}", s, compiled.WITHOUT, 1.0, None, run=compiled.measure(s)) for i, s in enumerate(compiled.STATEMENTS, 1)
    ],
    KERNELS: [Row(r.name, r.name, "torch", None, 1.5, kernels.pair(r), repeats=9) for r in kernels.ROWS],
    TRANSFORMS: [Row(r.name, r.statement, "torch", r.at_most, None, transforms.pair(r), repeats=60) for r in transforms.ROWS],
    CUDA: [Row(f"cuda {r.name.partition(':')[0]}", r.name, "torch", None, None, cards.pair(r), repeats=9) for r in cards.ALL],
    ENGINES: [
        Row(f"{r.name} {r.against}", r.what, r.against, r.at_most, None, engines.pair(r), repeats=30) for r in engines.ROWS
    ],
    OPENCL: [Row(r.name, r.statement, r.against, r.at_most, None, opencl.pair(r), repeats=9) for r in opencl.ROWS],
}


def drawn_rows(seed: int, count: int) -> list[Row]:
    """The group of rows that are drawn from a seed."""
    draws = [drawn.draw(seed + i) for i in range(count)]
    return [Row(f"{seed + i}", d.name, "torch", None, 1.2, drawn.pair(d), repeats=9) for i, d in enumerate(draws)]
