"""What a backend makes in one step (copies, zeros, random numbers, ranges, positions of a mask) is what its smaller steps make.

Each test runs the same program on the device cpu with and without the step, and compares to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from turnout.devices import device
from turnout.dtypes import bool_

Step = tuple[str, Any]


def _nothing(*args: Any) -> None:
    """A step that a backend does not take."""


def _without(monkeypatch: pytest.MonkeyPatch, name: str, instead: Any) -> None:
    backend = device("cpu").backend
    assert getattr(backend, name) is not None
    monkeypatch.setattr(backend, name, instead)


def _both(monkeypatch: pytest.MonkeyPatch, steps: list[Step], program: Callable[[], Any]) -> tuple[str, str]:
    at_once = program()
    with monkeypatch.context() as patched:
        for name, instead in steps:
            _without(patched, name, instead)
        return _told(at_once), _told(program())


def _told(found: Any) -> str:
    if isinstance(found, (list, tuple)):
        return "; ".join(_told(each) for each in found)
    if isinstance(found, turnout.Tensor):
        return f"{found.dtype} {found.stride()} {found.tolist()}"
    return str(found)


def _raised(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except turnout.errors.TurnoutError as error:
        return f"{type(error).__name__}: {error}"


DTYPES = [turnout.float32, turnout.float64, turnout.float16, turnout.bfloat16, turnout.complex64]
LAYOUTS: dict[str, Callable[[turnout.Tensor], turnout.Tensor]] = {
    "row-major": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2),
    "a dim of length 1 with a stride of its own": lambda x: x[:, :1],
    "without elements": lambda x: x[:0],
    "expanded": lambda x: x[:1].expand(5, 3, 4),
    "with gaps": lambda x: x[..., ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [*DTYPES, turnout.int64, turnout.uint8, bool_], ids=lambda d: d.name)
def test_a_copy_in_one_step_is_the_copy_in_two(monkeypatch: pytest.MonkeyPatch, layout: str, dtype: Any) -> None:
    x = LAYOUTS[layout](turnout.arange(24.0).view(2, 3, 4) - 3)

    def program() -> list[Any]:
        forms = (None, "preserve_format", "contiguous_format")
        return [x.to(dtype).clone(memory_format=form) for form in forms] + [x.to(dtype, copy=True), x.contiguous()]

    at_once, in_steps = _both(monkeypatch, [("duplicate", _nothing), ("row_major", None)], program)
    assert at_once == in_steps


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("shape", [(), (1,), (4,), (0,), (3, 5), (129,), (2048,), (2049,), (70, 70)])
def test_random_numbers_do_not_depend_on_how_they_are_made(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], dtype: Any
) -> None:
    def program() -> list[Any]:
        generator = turnout.Generator("cpu").manual_seed(7)
        drawn = [f(*shape, dtype=dtype, generator=generator) for f in (turnout.rand, turnout.randn, turnout.rand)]
        return [*drawn, generator.get_state()]

    at_once, composed = _both(monkeypatch, [("uniform", _nothing), ("normal", _nothing)], program)
    assert at_once == composed


@pytest.mark.parametrize("dtype", [None, turnout.float64, turnout.float16, turnout.int64, turnout.complex64])
def test_linspace_in_one_step_is_the_one_of_operators(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    cases = [(0, 1, 5), (-3.5, 7, 11), (1, 1, 2), (0, -1, 100), (1e30, -1e30, 7), (0, 10, 1), (0, 3, 0), (3e38, -3e38, 4)]

    def program() -> list[Any]:
        return [_raised(lambda c=case: turnout.linspace(*c, dtype=dtype)) for case in cases]  # type: ignore[misc]

    at_once, composed = _both(monkeypatch, [("spaced", _nothing)], program)
    assert at_once == composed


def test_a_mask_selects_the_same_whoever_finds_its_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    x = turnout.arange(24.0).view(2, 3, 4)
    mask = x % 3 == 0

    def program() -> list[Any]:
        written = x.clone()
        written[mask] = -1.0
        rows = turnout.tensor([False, True])
        return [x[mask], x[rows], x[:, turnout.tensor([True, False, True])], x.transpose(0, 2)[mask.transpose(0, 2)], written]

    at_once, composed = _both(monkeypatch, [("positions", _nothing)], program)
    assert at_once == composed


def test_lists_and_zeros_are_the_same_from_host_bytes_and_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    x = turnout.arange(6.0).view(2, 3)

    def program() -> list[Any]:
        made = [turnout.zeros(2, 3), turnout.zeros(0, dtype=turnout.int8), turnout.zeros((), dtype=bool_), x, x.t(), x[0, 0]]
        return [*made, *(x.to(dtype).tolist() for dtype in DTYPES), x[:, :0].tolist()]

    at_once, in_steps = _both(monkeypatch, [("tolist", _nothing), ("zero_array", None)], program)
    assert at_once == in_steps


@pytest.mark.parametrize(("sizes", "error"), [((2.0,), "CallError"), ((2, "a"), "CallError"), ((), "CallError")], ids=repr)
def test_sizes_that_are_not_ints_are_refused_by_functions_of_several_overloads(sizes: tuple[Any, ...], error: str) -> None:
    assert _raised(lambda: turnout.arange(2).view(*sizes)).partition(":")[0] in (error, "OverloadError")


def test_sizes_written_one_by_one_mean_what_a_list_of_them_means() -> None:
    x = turnout.arange(6)
    assert x.view(2, -1).shape == x.view((2, -1)).shape == x.view(turnout.tensor(2), 3).shape == (2, 3)
    assert turnout.rand(2, 3).shape == turnout.rand((2, 3)).shape == turnout.rand([2, 3]).shape == (2, 3)
    assert x.view(turnout.uint8).shape == (48,)


@pytest.mark.parametrize("name", ["zeros", "full", "rand", "arange", "eye", "zeros_like"])
def test_factories_take_requires_grad(name: str) -> None:
    given: dict[str, tuple[Any, ...]] = {"full": ((2,), 1.0), "arange": (2.0,), "zeros_like": (turnout.ones(2),)}
    factory = getattr(turnout, name)
    args = given.get(name, (2,))
    assert factory(*args, requires_grad=True).requires_grad
    assert not factory(*args, requires_grad=False).requires_grad
    assert not factory(*args).requires_grad


def test_ranges_and_identities_of_few_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> Any:
        ranges = [turnout.arange(4), turnout.arange(2, 9, 3), turnout.arange(5, 1, -2), turnout.arange(3, 3)]
        sizes = [(0, 0), (3, 3), (2, 5), (5, 2), (0, 2), (2, 0)]
        eyes = [turnout.eye(n, m, dtype=dtype) for n, m in sizes for dtype in (None, turnout.int64, turnout.bool)]
        wrong = [lambda: turnout.arange(0, 3, -1), lambda: turnout.arange(1, 2, 0), lambda: turnout.eye(-1)]
        return [*ranges, turnout.arange(3, dtype=turnout.float32), turnout.eye(3), *eyes, *map(_raised, wrong)]

    at_once, composed = _both(monkeypatch, [("counted", _nothing), ("identity", _nothing)], program)
    assert at_once == composed
