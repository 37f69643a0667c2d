"""What makes several views in one frame gives what one view at a time gives, and calls kernels that somebody has replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from turnout.errors import TurnoutError
from turnout.library import Library

A = turnout.arange(60, dtype=turnout.float32).reshape(3, 4, 5)

INDICES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a slice and a number": (lambda x: x[1:, 2], lambda x: x.slice(0, 1, None).select(1, 2)),
    "two numbers": (lambda x: x[0, -1], lambda x: x.select(0, 0).select(0, -1)),
    "three numbers": (lambda x: x[2, 1, 0], lambda x: x.select(0, 2).select(0, 1).select(0, 0)),
    "a new dim": (lambda x: x[None, :, 1], lambda x: x.unsqueeze(0).select(2, 1)),
    "dims that are left out": (lambda x: x[..., 1:, ::2], lambda x: x.slice(1, 1, None).slice(2, None, None, 2)),
    "a slice without elements": (lambda x: x[3:, 1], lambda x: x.slice(0, 3, None).select(1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("transposed", [False, True])
def test_an_index_of_several_views_is_one_view_after_the_other(name: str, transposed: bool) -> None:
    index, steps = INDICES[name]
    for _ in range(2):  # the second call finds what the first one has found out
        x = A.clone().requires_grad_()
        z = A.clone().requires_grad_()
        base, other = (x * 1, z * 1) if not transposed else ((x * 1).transpose(0, 2), (z * 1).transpose(0, 2))
        found, expected = index(base), steps(other)
        assert (found.shape, found.stride(), found.storage_offset()) == (
            expected.shape, expected.stride(), expected.storage_offset(),
        )  # fmt: skip
        assert found.tolist() == expected.tolist()
        assert found.is_alias_of(base)
        found.mul_(3.0)  # in the base, too, and recorded there
        expected.mul_(3.0)
        assert base.tolist() == other.tolist()
        base.sum().backward()
        other.sum().backward()
        assert x.grad.tolist() == z.grad.tolist()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: A[:, 4], "select: index 4 is out of bounds for dim 1 of size 4"),
        (lambda: A[::0, 1], "slice step must be positive"),
        (lambda: A[0, 0, 0, 0], "too many indices"),
    ],
)
def test_an_index_that_is_wrong_is_refused_again_and_again(call: Callable[[], Any], says: str) -> None:
    texts = []
    for _ in range(3):
        with pytest.raises(TurnoutError) as caught:
            call()
        texts.append(str(caught.value))
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize(
    ("operator", "call"),
    [
        ("select.int", lambda x: x[1:, 2]),
        ("slice.Tensor", lambda x: x[1:, 2]),
        ("slice.Tensor", lambda x: x.narrow(0, 1, 2)),
        ("view", lambda x: x.reshape(-1)),
        ("view", lambda x: x.flatten()),
        ("addmm", lambda x: turnout.nn.functional.linear(x[0], x[0], x[0, :, 0])),
        ("cat", lambda x: turnout.stack([x, x])),
    ],
)
def test_a_kernel_that_somebody_has_replaced_is_called_and_gone_again(operator: str, call: Callable[[Any], Any]) -> None:
    x = A.clone()
    expected = call(x).tolist()
    called = []
    op = turnout.ops.aten
    for part in operator.split("."):
        op = getattr(op, part)
    with Library("aten", "IMPL") as library:
        before = turnout.registry.find_operator(f"aten::{operator}").kernel("CPU")

        def counted(*args: Any, **kwargs: Any) -> Any:
            called.append(operator)
            return before(*args, **kwargs)

        library.impl(operator, counted, "CPU", allow_override=True)
        assert call(x).tolist() == expected
    replaced = len(called)
    assert call(x).tolist() == expected
    assert replaced
    assert len(called) == replaced


NUMBERS = [
    ([1.5, float("nan")], turnout.float32), ([1e300], turnout.float32), ([True, False], turnout.bool),
    ([[1, 2], [3, -4]], turnout.int64), ([2**62, -(2**63)], turnout.int64), ([[], []], turnout.float32),
    ([1, 2.5], turnout.float32), ([True, 2], turnout.int64), (3, turnout.int64),
]  # fmt: skip


@pytest.mark.parametrize(("data", "dtype"), NUMBERS)
def test_lists_of_numbers_become_tensors_of_the_usual_dtype_with_the_same_numbers(data: Any, dtype: turnout.dtype) -> None:
    made = turnout.tensor(data)
    assert made.dtype is dtype
    assert str(made.tolist()) == str(turnout.tensor(data, dtype=dtype).tolist())
    assert made.is_contiguous()


def test_numbers_beyond_a_dtype_are_refused() -> None:
    for data in ([2**63], [0, -(2**63) - 1]):
        with pytest.raises(TurnoutError):
            turnout.tensor(data)
    assert turnout.tensor([1e300]).tolist() == [float("inf")]
