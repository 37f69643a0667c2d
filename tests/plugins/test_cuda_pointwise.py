"""Element-wise raw kernels and random numbers over the stand-in for CuPy. `test_cuda_device` runs the same cases on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import cupy_stand_in
import numpy as np
import pytest
from pretended_cuda import pretended
from test_cuda_kernels import DTYPES, Case, Devices, agree, check, flat, kernels_of, launched_by, makers, numbers

import turnout
from turnout import nn
from turnout_cuda import pointwise

F = nn.functional
OURS = ("activations", "arithmetic", "functions", "random")


@pytest.fixture(scope="module")
def backend() -> Iterator[Any]:
    with pretended() as made:
        yield made


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few elements are enough for a raw kernel."""
    monkeypatch.setattr(pointwise, "LIMIT", 1)


def functions() -> Iterator[Case]:
    x = numbers((7, 13), 1)
    x[0, :4] = np.nan, np.inf, -np.inf, 0.0
    positive = np.abs(x) + 0.1
    for name in ("abs", "neg", "square", "floor", "ceil", "trunc", "round", "exp", "expm1", "sin", "cos", "tan", "sinh", "cosh"):
        yield name, {f"of_{NAMES.get(name, name)}"}, lambda t, name=name: getattr(turnout, name)(t(x))
    for name in ("tanh", "atan", "erf", "relu", "sigmoid"):
        yield name, {f"of_{NAMES.get(name, name)}"}, lambda t, name=name: getattr(turnout, name)(t(x))
    for name in ("sqrt", "rsqrt", "reciprocal", "log", "log1p", "log2", "log10"):
        yield name, {f"of_{name}"}, lambda t, name=name: getattr(turnout, name)(t(positive))
    for name in ("silu", "mish", "hardswish", "leaky_relu", "softplus", "elu", "gelu"):
        yield name, {f"of_{name}"}, lambda t, name=name: getattr(F, name)(t(x))
    yield "gelu tanh", {"of_gelu_tanh"}, lambda t: F.gelu(t(x), approximate="tanh")
    yield "selu", {"of_elu"}, lambda t: F.selu(t(x))
    for low, high in ((-0.5, 0.75), (None, 0.5), (0.25, None), (1.0, -1.0)):
        yield f"clamp {low} {high}", {"of_clamp"}, lambda t, low=low, high=high: turnout.clamp(t(x), low, high)
    for exponent in (3, -1, -2, 0.5, 1.7, 4):
        yield f"pow {exponent}", {"of_power"}, lambda t, exponent=exponent: turnout.pow(t(positive), exponent)


NAMES = {"abs": "absolute", "neg": "negative", "round": "rint", "atan": "arctan"}
OTHERS = {"add": "add", "sub": "subtract", "mul": "multiply", "div": "true_divide", "maximum": "maximum", "minimum": "minimum"}
COMPARED = {"gt": "greater", "ge": "greater_equal", "lt": "less", "le": "less_equal", "eq": "equal", "ne": "not_equal"}


def pairs() -> Iterator[Case]:
    x, other = np.round(numbers((4, 6, 8), 2), 1), np.round(numbers((4, 6, 8), 3), 1)
    x[0, 0, :3], other[0, 1, :2] = (np.nan, np.inf, -np.inf), (np.nan, np.inf)
    shapes = [(4, 6, 8), (8,), (6, 8), (1, 6, 8), (4, 1, 1), (4, 6, 1), (6, 1), (1,), (1, 6, 1)]
    for name, kernel in (OTHERS | COMPARED).items():
        f = getattr(turnout, name)
        for shape in shapes:
            part = other[tuple(slice(n if n > 1 else 1) for n in (*(1,) * (3 - len(shape)), *shape))].reshape(shape)
            yield f"{name} {list(shape)}", {f"of_{kernel}"}, lambda t, f=f, part=part: f(t(x), t(part))
        if name not in ("maximum", "minimum"):
            yield f"{name} a number", {f"of_{kernel}"}, lambda t, f=f: f(t(x), 1.5)
    yield "add with alpha", {"of_multiply", "of_add"}, lambda t: turnout.add(t(x), t(other), alpha=0.5)
    odd, row = numbers((5, 3), 4), numbers((3,), 5)
    yield "add of odd rows", {"of_add"}, lambda t: t(odd) + t(row)
    yield "add of odd columns", {"of_add"}, lambda t: t(odd) + t(row.reshape(3, 1)).expand(3, 1)[:1]


def choices() -> Iterator[Case]:
    x, other = numbers((5, 9), 6), numbers((5, 9), 7)
    yield "where", {"of_where"}, lambda t: turnout.where(t(x) > 0, t(x), t(other))
    yield "where of a number", {"of_where"}, lambda t: turnout.where(t(x) > 0, t(x), 2.0)
    yield "where first a number", {"of_where"}, lambda t: turnout.where(t(x) > 0, 2.0, t(x))


def slopes() -> Iterator[Case]:
    x, grad = numbers((6, 11), 8), numbers((6, 11), 9)

    def gradient(f: Callable[[Any], Any], t: Devices) -> Any:
        leaf = t(x).requires_grad_()
        return turnout.autograd.grad(f(leaf), leaf, t(grad))[0]

    for name in ("sigmoid", "tanh"):
        yield f"{name} gradient", {f"of_{name}_backward"}, lambda t, name=name: gradient(getattr(turnout, name), t)
    for name in ("silu", "gelu"):
        yield f"{name} gradient", {f"of_{name}_backward"}, lambda t, name=name: gradient(getattr(F, name), t)
    yield "gelu tanh gradient", {"of_gelu_tanh_backward"}, lambda t: gradient(lambda x: F.gelu(x, approximate="tanh"), t)
    yield "relu gradient", {"of_threshold_backward"}, lambda t: gradient(turnout.relu, t)


CASES: list[Case] = [*functions(), *pairs(), *choices(), *slopes()]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_an_elementwise_kernel_gives_what_cpu_gives(case: Case, dtype: str, backend: Any) -> None:
    check(case, dtype)


def test_every_kernel_of_these_programs_is_launched(backend: Any) -> None:
    found = launched_by(CASES)
    draw("pretended")
    turnout.ones(3, device="pretended").half().float()
    assert kernels_of(*OURS) <= found | {name for name, _ in cupy_stand_in.launched}


@pytest.mark.parametrize("size", [1, 3, 4, 5, 8, 31, 260])
def test_arrays_that_begin_anywhere_are_served(size: int, backend: Any) -> None:
    for dtype in DTYPES:
        here, there = makers(dtype)
        for start in range(3):

            def run(t: Devices, start: int = start) -> Any:
                x, y = t(numbers((size + 5,), 1))[start : start + size], t(numbers((size + 5,), 2))[1 : 1 + size]
                z = t(np.full(size + 7, 5.0))
                turnout.add(x, y, out=z[2 : 2 + size])
                return x * y, x.exp(), x > y, turnout.where(x > y, x, y), z

            agree(run(here), run(there), dtype)


def test_what_the_kernels_do_not_serve_goes_to_cupy(backend: Any) -> None:
    cupy_stand_in.launched.clear()
    here, there = makers("float32")

    def run(t: Devices) -> Any:
        x, whole = t(numbers((4, 6), 1)), t(np.arange(24).reshape(4, 6))
        return (
            x.t() + x.t(), x[:, ::2] * 2.0, whole + 1, x[:0] + 1.0, (x + t(numbers((4, 1), 2)).expand(4, 6)), x.t() > 0,
            turnout.where(x > 0, x.t().contiguous().t(), x),
        )  # fmt: skip

    found = run(here)
    assert {name for name, _ in cupy_stand_in.launched} <= {"of_greater", "of_where"}
    for got, want in zip(found, run(there), strict=True):
        assert got.cpu().tolist() == want.tolist()


def test_few_elements_go_to_cupy(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pointwise, "LIMIT", 1 << 14)
    cupy_stand_in.launched.clear()
    here, _ = makers("float32")
    assert (here(np.ones((2, 2))) + 1.0).exp().shape == (2, 2)
    assert cupy_stand_in.launched == []


# ---- random numbers


def draw(device: str) -> list[Any]:
    turnout.manual_seed(5)
    made = [turnout.randint(0, 1000, (50,), device=device)]
    for dtype in (turnout.float16, turnout.bfloat16, turnout.float32, turnout.float64):
        made += [turnout.rand(5_000, device=device, dtype=dtype), turnout.randn(37, 3, device=device, dtype=dtype)]
    return [*made, turnout.rand(0, device=device), *dropped(device)]


def dropped(device: str) -> list[Any]:
    found = []
    for dtype in (turnout.float16, turnout.bfloat16, turnout.float32, turnout.float64):
        x = turnout.ones(300, device=device, dtype=dtype, requires_grad=True)
        made, kept = turnout.native_dropout(x, 0.4, True)
        made.sum().backward()
        found += [made.detach(), kept, x.grad]
    return [*found, F.dropout(turnout.ones(300, device=device), 0.4), F.dropout(turnout.ones(2, 3, device=device).t(), 0.9)]


def test_random_numbers_are_those_of_cpu(backend: Any) -> None:
    cupy_stand_in.launched.clear()
    found = draw("pretended")
    assert {name for name, _ in cupy_stand_in.launched} >= {"random_words", "random_uniform", "random_normal", "random_dropout"}
    for got, want in zip(flat(found), flat(draw("cpu")), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert turnout.allclose(got.cpu().double(), want.double(), rtol=1e-5, atol=1e-6)
