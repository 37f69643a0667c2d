"""What a backend makes in one step (copies, zeros, random numbers, ranges, positions of a mask) is what its smaller steps make.

A program runs on the device cpu with and without the step, and what it gives is compared to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from outcomes import flat, refused
from turnout.devices import device
from turnout.dtypes import bool_
from turnout_conformance.comparing import outcome

DTYPES = [turnout.float32, turnout.float64, turnout.float16, turnout.bfloat16, turnout.complex64]
X = turnout.arange(24.0).view(2, 3, 4) - 3
LAYOUTS: dict[str, Callable[[turnout.Tensor], turnout.Tensor]] = {
    "row-major": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2),
    "a dim of length 1 with a stride of its own": lambda x: x[:, :1],
    "without elements": lambda x: x[:0],
    "expanded": lambda x: x[:1].expand(5, 3, 4),
    "with gaps": lambda x: x[..., ::2],
}


def copies(x: turnout.Tensor, dtype: Any) -> list[Any]:
    forms = (None, "preserve_format", "contiguous_format")
    return [x.to(dtype).clone(memory_format=form) for form in forms] + [x.to(dtype, copy=True), x.contiguous()]


def drawn(shape: tuple[int, ...], dtype: Any) -> list[Any]:
    generator = turnout.Generator("cpu").manual_seed(7)
    made = [f(*shape, dtype=dtype, generator=generator) for f in (turnout.rand, turnout.randn, turnout.rand)]
    return [*made, generator.get_state()]


def spaced(dtype: Any) -> list[Any]:
    cases = [(0, 1, 5), (-3.5, 7, 11), (1, 1, 2), (0, -1, 100), (1e30, -1e30, 7), (0, 10, 1), (0, 3, 0), (3e38, -3e38, 4)]
    return [outcome(turnout.linspace, *case, dtype=dtype) for case in cases]


def masked() -> list[Any]:
    mask, written = X % 3 == 0, X.clone()
    written[mask] = -1.0
    rows, columns = turnout.tensor([False, True]), turnout.tensor([True, False, True])
    return [X[mask], X[rows], X[:, columns], X.transpose(0, 2)[mask.transpose(0, 2)], written]


def lists() -> list[Any]:
    x = turnout.arange(6.0).view(2, 3)
    made = [turnout.zeros(2, 3), turnout.zeros(0, dtype=turnout.int8), turnout.zeros((), dtype=bool_), x, x.t(), x[0, 0]]
    return [*made, *(x.to(dtype).tolist() for dtype in DTYPES), x[:, :0].tolist()]


def ranges() -> list[Any]:
    made = [turnout.arange(4), turnout.arange(2, 9, 3), turnout.arange(5, 1, -2), turnout.arange(3, 3)]
    sizes = [(0, 0), (3, 3), (2, 5), (5, 2), (0, 2), (2, 0)]
    eyes = [turnout.eye(n, m, dtype=dtype) for n, m in sizes for dtype in (None, turnout.int64, turnout.bool)]
    wrong = [lambda: turnout.arange(0, 3, -1), lambda: turnout.arange(1, 2, 0), lambda: turnout.eye(-1)]
    return [*made, turnout.arange(3, dtype=turnout.float32), turnout.eye(3), *eyes, *map(outcome, wrong)]


# Steps of the backend with what stands in their places, which makes nothing, and a program.
PROGRAMS: dict[str, tuple[dict[str, Any], Callable[[], list[Any]]]] = {
    **{
        f"copies of {name} as {dtype.name}": (
            {"duplicate": lambda *_: None, "row_major": None},
            lambda view=view, dtype=dtype: copies(view(X), dtype),
        )
        for name, view in LAYOUTS.items()
        for dtype in [*DTYPES, turnout.int64, turnout.uint8, bool_]
    },
    **{
        f"random numbers of shape {shape} and {dtype.name}": (
            {"uniform": lambda *_: None, "normal": lambda *_: None},
            lambda shape=shape, dtype=dtype: drawn(shape, dtype),
        )
        for shape in [(), (1,), (4,), (0,), (3, 5), (129,), (2048,), (2049,), (70, 70)]
        for dtype in DTYPES
    },
    **{
        f"spaced numbers of {dtype}": ({"spaced": lambda *_: None}, lambda dtype=dtype: spaced(dtype))
        for dtype in [None, turnout.float64, turnout.float16, turnout.int64, turnout.complex64]
    },
    "what a mask selects": ({"positions": lambda *_: None}, masked),
    "lists and zeros": ({"tolist": lambda *_: None, "zero_array": None}, lists),
    "ranges and identities": ({"counted": lambda *_: None, "identity": lambda *_: None}, ranges),
}


def told(found: list[Any]) -> list[str]:
    return [f"{t.dtype} {t.stride()} {t.tolist()}" if isinstance(t, turnout.Tensor) else str(t) for t in flat(found)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_step_makes_what_smaller_steps_make(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps, program = PROGRAMS[name]
    at_once, backend = told(program()), device("cpu").backend
    for step, instead in steps.items():
        assert getattr(backend, step) is not None
        monkeypatch.setattr(backend, step, instead)
    assert told(program()) == at_once


@pytest.mark.parametrize("sizes", [(2.0,), (2, "a"), ()], ids=repr)
def test_sizes_that_are_not_ints_are_refused_by_functions_of_several_overloads(sizes: tuple[Any, ...]) -> None:
    refused((turnout.errors.CallError, turnout.errors.OverloadError), turnout.arange(2).view, *sizes)


def test_sizes_written_one_by_one_mean_what_a_list_of_them_means() -> None:
    x = turnout.arange(6)
    assert x.view(2, -1).shape == x.view((2, -1)).shape == x.view(turnout.tensor(2), 3).shape == (2, 3)
    assert turnout.rand(2, 3).shape == turnout.rand((2, 3)).shape == turnout.rand([2, 3]).shape == (2, 3)
    assert x.view(turnout.uint8).shape == (48,)


@pytest.mark.parametrize(
    ("name", "args"),
    [("zeros", (2,)), ("full", ((2,), 1.0)), ("rand", (2,)), ("arange", (2.0,)), ("eye", (2,)), ("zeros_like", (X,))],
)
def test_factories_take_requires_grad(name: str, args: tuple[Any, ...]) -> None:
    factory = getattr(turnout, name)
    assert [factory(*args, **given).requires_grad for given in ({"requires_grad": True}, {"requires_grad": False}, {})] == [
        True, False, False,
    ]  # fmt: skip
