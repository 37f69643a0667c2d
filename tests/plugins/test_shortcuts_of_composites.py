"""A shortcut gives what the operators give that it stands for, and leaves the call to them as soon as somebody replaces one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from turnout.errors import TurnoutError
from turnout.library import Library

F = turnout.nn.functional


def _x(*shape: int, dtype: Any = turnout.float32) -> turnout.Tensor:
    count = 1
    for n in shape:
        count *= n
    return (turnout.arange(count, dtype=turnout.float64) * 1.25 - 3).to(dtype).reshape(shape)


def _put(index: Any, value: float, target: turnout.Tensor) -> turnout.Tensor:
    target[index] = value
    return target


MASK = turnout.tensor([True, False, True])
PLACES = turnout.tensor([2, 0, -1])

# name -> (the call, the operators that it stands for)
CALLS: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "stack": (lambda: turnout.stack([_x(3), _x(3)]), ("cat", "view")),
    "linear": (lambda: F.linear(_x(2, 3), _x(4, 3), _x(4)), ("addmm",)),
    "roll": (lambda: _x(5).roll(2), ("slice.Tensor", "cat")),
    "roll backwards": (lambda: _x(5).roll(-7), ("slice.Tensor", "cat")),
    "outer": (lambda: turnout.outer(_x(3), _x(2)), ("unsqueeze", "mul.Tensor")),
    "chunk": (lambda: _x(5, 2).chunk(2), ("split_with_sizes",)),
    "take": (lambda: _x(2, 3).take(PLACES), ("reshape", "view", "index.Tensor")),
    "take one": (lambda: _x(2, 3).take(turnout.tensor(-1)), ("reshape", "view", "index.Tensor")),
    "einsum": (lambda: turnout.einsum("ij,jk->ik", _x(2, 3), _x(3, 4)), ("permute", "reshape", "bmm")),
    "einsum of vectors": (lambda: turnout.einsum("i,i->", _x(3), _x(3)), ("reshape", "bmm")),
    "einsum of a batch": (lambda: turnout.einsum("bij,bkj->bik", _x(2, 3, 4), _x(2, 5, 4)), ("permute", "reshape", "bmm")),
    "a float at a mask": (lambda: _put(MASK, 0.1, _x(3)), ("index_put_",)),
    "a float at places": (lambda: _put(PLACES, 0.1, _x(4, 2)), ("index_put_",)),
    "a float at an int": (lambda: _put(-1, 0.1, _x(3, 2)), ("select.int", "fill_.Scalar")),
    "a float at slices": (lambda: _put((slice(1, None), slice(None, -9)), 0.1, _x(3, 2)), ("slice.Tensor", "fill_.Scalar")),
    "a float at a slice": (lambda: _put(slice(0, None, 2), 0.1, _x(3, 2)), ("slice.Tensor", "fill_.Scalar")),
}  # fmt: skip


def _told(found: Any) -> Any:
    if isinstance(found, (list, tuple)):
        return [_told(each) for each in found]
    return found.dtype, found.stride(), found.storage_offset(), found.tolist()


@pytest.mark.parametrize("name", CALLS)
def test_a_shortcut_gives_what_the_operators_give(name: str) -> None:
    call, _ = CALLS[name]
    for _ in range(3):
        found = _told(call())
    with turnout.trace_dispatch():  # which the operators see
        assert _told(call()) == found


@pytest.mark.parametrize(("name", "operator"), [(name, operator) for name, (_, names) in CALLS.items() for operator in names])
def test_a_kernel_that_somebody_registers_is_called_and_its_error_is_raised_once(name: str, operator: str) -> None:
    call, _ = CALLS[name]
    call()
    calls = []

    def refuse(*args: Any, **kwargs: Any) -> Any:
        calls.append(operator)
        raise ValueError("from this kernel")

    with Library("aten", "IMPL") as library:
        library.impl(operator, refuse, "CPU", allow_override=True)
        for count in (1, 2, 3):
            with pytest.raises(ValueError, match="from this kernel"):
                call()
            assert calls == [operator] * count
    call()
    assert len(calls) == 3


@pytest.mark.parametrize("name", [name for name in CALLS if name.startswith("a float")])
def test_a_float_at_an_index_is_one_write(name: str) -> None:
    versions = []

    def target() -> turnout.Tensor:
        versions.append(made := _x(4, 2))
        return made

    index = {"a float at places": PLACES, "a float at an int": 0, "a float at slices": (slice(1), 1)}.get(name, slice(1, 2))
    for viewed in (False, True):
        for _ in range(2):
            x = target()
            row = x[0] if viewed else None
            before = x.version()
            x[index] = 2.0
            assert x.version() == before + 1
            if row is not None:
                assert row.tolist() == x[0].tolist()
                assert row.version() == x.version()


@pytest.mark.parametrize(
    ("index", "says"),
    [
        (4, "select: index 4 is out of range for dim 0 of length 3"),
        (slice(None, None, -1), "slice: step must be positive, got -1"),
        ((0, 0, 0), "too many indices"),
        (turnout.tensor([0, 3]), "index 3 is out of bounds"),
        (turnout.tensor([True, False]), "a mask of shape"),
    ],
)
def test_a_float_at_a_wrong_index_is_refused_and_nothing_is_written(index: Any, says: str) -> None:
    x = _x(3, 2)
    values, version = x.tolist(), x.version()
    for _ in range(3):
        with pytest.raises(TurnoutError, match=says):
            x[index] = 1.0
        assert (x.tolist(), x.version()) == (values, version)


def test_a_float_beyond_the_dtype_is_refused_at_any_index() -> None:
    x = _x(3)
    for index in (0, slice(1), MASK, PLACES):
        with pytest.raises(TurnoutError):
            x[index] = 1e300
    assert x.tolist() == _x(3).tolist()


def test_an_expanded_tensor_takes_no_float() -> None:
    x = _x(1).expand(3)
    for index in (slice(2), MASK):
        with pytest.raises(TurnoutError, match=r"expanded|same memory|one memory"):
            x.detach()[index] = 1.0


def test_memory_that_cannot_be_written_takes_no_float() -> None:
    import numpy

    array = numpy.zeros(3, numpy.float32)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="read-only|not writable|cannot be written"):
        x = turnout.from_numpy(array)
    for index in (0, slice(1), MASK, PLACES):
        with pytest.raises(TurnoutError):
            x[index] = 1.0
    assert array.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [turnout.float32, turnout.bfloat16, turnout.int64, turnout.bool], ids=lambda d: d.name)
def test_few_tensors_are_joined_as_many_are(dim: int, dtype: Any) -> None:
    x, y = _x(2, 3, dtype=dtype), _x(2, 3, dtype=dtype)
    none = x[:0] if dim == 0 else x[:, :0]
    for few in ([x, y], [x.t().contiguous().t(), y.t().contiguous().t()], [x], [x, y.to(turnout.float64)], [x, none]):
        assert _told(turnout.cat(few, dim)) == _told(turnout.cat([*few, *[none] * 9], dim))


WRONG: dict[str, Callable[[], Any]] = {
    "chunk": lambda: _x(3).chunk(0),
    "chunk along no dim": lambda: _x(3).chunk(2, 1),
    "take beyond": lambda: _x(2, 2).take(turnout.tensor([4])),
    "take from nothing": lambda: _x(0).take(turnout.tensor([0])),
    "stack of two shapes": lambda: turnout.stack([_x(2, 2), _x(2, 3)]),
    "stack along no dim": lambda: turnout.stack([_x(2), _x(2)], 3),
    "outer of matrices": lambda: turnout.outer(_x(2, 2), _x(2)),
    "einsum of two lengths": lambda: turnout.einsum("ij,jk->ik", _x(2, 3), _x(2, 3)),
    "einsum of two dtypes": lambda: turnout.einsum("ij,jk->ik", _x(2, 2), _x(2, 2, dtype=turnout.float64)),
    "linear": lambda: F.linear(_x(2, 3), _x(4, 2), _x(4)),
    "roll along a dim too much": lambda: _x(3).roll((1, 2), (0,)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_refused_in_the_words_of_the_operators(name: str) -> None:
    def text() -> str:
        with pytest.raises(TurnoutError) as caught:
            WRONG[name]()
        return f"{type(caught.value).__name__}: {caught.value}"

    texts = {text() for _ in range(3)}
    with turnout.trace_dispatch():  # which the operators see
        texts.add(text())
    assert len(texts) == 1


@pytest.mark.parametrize("dim", [2, -3])
def test_tensors_that_cannot_be_joined_are_refused_again_and_again(dim: int) -> None:
    texts = set()
    for _ in range(3):
        with pytest.raises(TurnoutError) as caught:
            turnout.cat([_x(2, 3), _x(2, 3)], dim)
        texts.add(str(caught.value))
        with pytest.raises(TurnoutError) as caught:
            turnout.cat([_x(2, 3), _x(3, 2)], 0)
        texts.add(str(caught.value))
    assert len(texts) == 2
