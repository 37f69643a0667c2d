"""`turnout.testing.assert_close`: what it says, and what it refuses. tests/oracle compares its verdicts with PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from turnout.testing import assert_close

import turnout
from outcomes import refused

NAN, INF = float("nan"), float("inf")
x = turnout.arange(6.0).reshape(2, 3)


def text_of(*args: Any, **kwargs: Any) -> str:
    return refused(AssertionError, lambda: assert_close(*args, **kwargs))


def test_elements_that_differ_are_counted_and_the_largest_differences_shown() -> None:
    actual = turnout.tensor([[1.0, 2.0], [3.0, 4.5]])
    expected = turnout.tensor([[1.0, 2.5], [3.0, 4.0]])
    assert text_of(actual, expected) == (
        "actual and expected are not close in 2 of 4 elements (50.0%)\n"
        "  absolute  at most 0.5 at (0, 1): 2.0 and 2.5; 1e-05 is allowed\n"
        "  relative  at most 0.2 at (0, 1): 2.0 and 2.5; 1.3e-06 is allowed"
    )


def test_integers_must_be_equal_and_are_subtracted_exactly() -> None:
    actual, expected = turnout.tensor([2**60, 1, 0]), turnout.tensor([2**60 + 1, 1, 0])
    assert text_of(actual, expected) == (
        "actual and expected are not equal in 1 of 3 elements (33.3%)\n"
        "  absolute  at most 1 at (0,): 1152921504606846976 and 1152921504606846977\n"
        "  relative  at most 8.673617379884035e-19 at (0,): 1152921504606846976 and 1152921504606846977"
    )


def test_nan_is_the_worst_difference_and_equals_nan_on_request() -> None:
    actual, expected = turnout.tensor([1.0, NAN, INF]), turnout.tensor([9.0, NAN, INF])
    assert "at most nan at (1,): nan and nan; 1e-05 is allowed" in text_of(actual, expected)
    assert "in 1 of 3 elements" in text_of(actual, expected, equal_nan=True)
    assert_close(actual[1:], expected[1:], equal_nan=True)


def test_a_number_or_a_tensor_without_dims_is_shown_by_itself() -> None:
    rows = "\n  absolute  1.0; 1e-07 is allowed\n  relative  0.5; 1e-07 is allowed"
    assert text_of(1.0, 2.0) == f"actual and expected are not close: 1.0 and 2.0{rows}"
    assert text_of(turnout.tensor(1.0), turnout.tensor(2.0)) == (
        "actual and expected are not close: 1.0 and 2.0\n"
        "  absolute  1.0: 1.0 and 2.0; 1e-05 is allowed\n"
        "  relative  0.5: 1.0 and 2.0; 1.3e-06 is allowed"
    )
    assert text_of(1, 2) == "actual and expected are not equal: 1 and 2"
    assert text_of(True, False) == "actual and expected are not equal: True and False"
    assert text_of(1.0, 1) == "actual and expected are of different types: float and int"


def test_the_place_in_a_structure_is_named() -> None:
    text = text_of([x, {"w": (1, 2)}], [x, {"w": (1, 3)}])
    assert text == "actual[1]['w'][1] and expected[1]['w'][1] are not equal: 2 and 3"


@pytest.mark.parametrize(
    ("actual", "expected", "text"),
    [
        ([1, 2], (1,), "actual and expected have different lengths: 2 and 1"),
        ({"a": 1}, {"b": 1}, "actual and expected have different keys\n  only actual    'a'\n  only expected  'b'"),
        (None, 1, "actual and expected are not equal: None and 1"),
        (None, x, "actual and expected are not equal: None and a Tensor"),
        (x, x.t(), "actual and expected have different shapes: [2, 3] and [3, 2]"),
        (x, x.double(), "actual and expected have different dtypes: turnout.float32 and turnout.float64"),
        (x, turnout.empty(2, 3, device="meta"), "actual and expected have different devices: cpu and meta"),
    ],
)  # fmt: skip
def test_what_is_not_a_value_is_compared_first(actual: Any, expected: Any, text: str) -> None:
    assert text_of(actual, expected) == text


def test_each_check_can_be_turned_off_and_strides_can_be_checked() -> None:
    assert_close(x, x.double(), check_dtype=False)
    assert_close(1.0, 1, check_dtype=False)
    assert_close(turnout.empty(2, device="meta"), turnout.ones(2), check_device=False)
    other = x.t().contiguous().t()
    assert_close(x, other)
    text = "actual and expected have different strides: (3, 1) and (1, 2)"
    assert text_of(x, other, check_stride=True) == text


def test_a_message_replaces_the_text_or_is_made_from_it() -> None:
    assert text_of(1, 2, msg="no") == "no"
    assert text_of(1, 2, msg=lambda text: f"weights: {text}") == "weights: actual and expected are not equal: 1 and 2"


@pytest.mark.parametrize(
    ("actual", "expected", "kinds"),
    [
        (x, 1.0, ("actual, a Tensor", "expected, a float")), (x, np.ones((2, 3)), ("actual, a Tensor", "expected, a ndarray")),
        ("a", "a", ("actual, a str", "expected, a str")), (True, 1, ("actual, a bool", "expected, an int")),
        ([{1}], [{1}], ("actual[0], a set", "expected[0], a set")),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_is_an_error_of_another_kind(actual: Any, expected: Any, kinds: tuple[str, str]) -> None:
    assert refused(turnout.errors.CallError, assert_close, actual, expected) == (
        f"assert_close: cannot compare {kinds[0]}, with {kinds[1]}\n"
        "  to fix  compare tensors with tensors, arrays with arrays, numbers with numbers and bools with bools"
    )


def test_one_tolerance_alone_is_refused() -> None:
    assert refused(turnout.errors.ArgumentError, assert_close, 1, 1, rtol=0.1) == (
        "assert_close: rtol was given without atol; give both or neither"
    )


def test_subclasses_are_compared_unless_their_classes_must_agree() -> None:
    class Mine(turnout.Tensor):
        pass

    mine = turnout.as_subclass(x, Mine)
    assert_close(mine, x)
    assert "actual, a Mine, with expected, a Tensor" in refused(
        turnout.errors.CallError, assert_close, mine, x, allow_subclasses=False
    )


def test_arrays_and_numbers_of_numpy_are_compared() -> None:
    assert_close(np.ones(2), np.ones(2))
    assert_close(np.float32(1), 1.0)
    assert "in 1 of 2 elements" in text_of(np.ones(2), np.array([1.0, 2.0]))


def test_tensors_that_require_gradients_are_compared_without_recording() -> None:
    w = turnout.ones(2, requires_grad=True)
    assert_close(w * 2, turnout.full((2,), 2.0))
    assert "in 2 of 2 elements" in text_of(w * 2, w)
