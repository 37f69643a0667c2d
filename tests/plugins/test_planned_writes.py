"""Calls that write take a planned path: what it writes, counts and refuses is what the general path does at the first call."""

from __future__ import annotations

import contextvars
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout
from turnout.errors import AliasError, DimError, DTypeError, ShapeError, UnknownOperatorError
from turnout.library import Library
from turnout_aten.functions.call_forms import packet

REPEATS = 4


def ramp(*shape: int) -> turnout.Tensor:
    return turnout.arange(float(np.prod(shape))).reshape(shape).clone()


@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (lambda o: turnout.exp(turnout.zeros(4), out=o), [1.0, 1.0, 1.0, 1.0]),
        (lambda o: turnout.add(o, o, out=o), [0.0, 2.0, 4.0, 6.0]),
        (lambda o: turnout.add(o, 1, alpha=2, out=o), [2.0, 3.0, 4.0, 5.0]),
        (lambda o: turnout.add(turnout.ones(4), turnout.ones(4, dtype=turnout.int64), out=o), [2.0, 2.0, 2.0, 2.0]),
        (lambda o: turnout.sum(ramp(2, 4), 0, out=o), [4.0, 6.0, 8.0, 10.0]),
        (lambda o: o.sigmoid_(), [0.5, 0.7310585975646973, 0.8807970285415649, 0.9525741338729858]),
        (lambda o: o.clamp_(1, 2), [1.0, 1.0, 2.0, 2.0]),
        (lambda o: o.lerp_(turnout.zeros(4), 0.5), [0.0, 0.5, 1.0, 1.5]),
        (lambda o: o.cumsum_(0), [0.0, 1.0, 3.0, 6.0]),
        (lambda o: o.index_put_([turnout.tensor([3, 0])], turnout.tensor([7.0, 8.0])), [8.0, 1.0, 2.0, 7.0]),
        (lambda o: o.copy_(turnout.ones(4)), [1.0, 1.0, 1.0, 1.0]),
    ],
)
def test_a_write_gives_the_same_numbers_and_one_version_at_every_call(write: Callable[[Any], Any], expected: list[float]) -> None:
    for _ in range(REPEATS):
        written = ramp(4)
        before = written.version()
        assert write(written) is written
        assert written.tolist() == expected
        assert written.version() == before + 1


def test_a_write_into_a_view_reaches_the_base_at_every_call() -> None:
    for _ in range(REPEATS):
        base = ramp(4)
        base[1:3].sigmoid_()
        turnout.exp(turnout.zeros(1), out=base[:1])
        assert base.tolist() == [1.0, 0.7310585975646973, 0.8807970285415649, 3.0]


def test_an_output_of_another_shape_is_resized_at_every_call() -> None:
    for _ in range(REPEATS):
        out = turnout.empty(0)
        turnout.exp(turnout.zeros(2, 2), out=out)
        assert out.tolist() == [[1.0, 1.0], [1.0, 1.0]]
        with pytest.warns(UserWarning, match="an output with 4 elements of shape"):
            turnout.exp(turnout.zeros(3), out=out)
        assert out.tolist() == [1.0, 1.0, 1.0]


def test_a_write_that_is_refused_is_refused_after_others_were_accepted() -> None:
    x = turnout.ones(4)
    for _ in range(REPEATS):
        turnout.add(x, x, out=turnout.empty(4))
        x.clone().add_(x)
        with pytest.raises(DTypeError, match="the result has dtype float32, which cannot be written into int64"):
            turnout.add(x, x, out=turnout.empty(4, dtype=turnout.int64))
        with pytest.raises(ShapeError, match=r"self of shape \[1\] cannot hold the result of shape \[4\]"):
            turnout.ones(1).lerp_(x, 0.5)
        with pytest.raises(AliasError, match="cannot write into an expanded tensor"):
            turnout.ones(1).expand(4).clamp_(0, 1)
        shared = turnout.ones(5)
        with pytest.raises(AliasError, match="the output and an input share part of their memory"):
            shared[1:].lerp_(shared[:4], 0.5)
        with pytest.raises(DimError, match="index 9 is out of bounds for a dimension of size 4"):
            x.clone().index_put_([turnout.tensor([9])], turnout.tensor(1.0))


def test_a_mask_writes_where_it_is_true_and_converts_one_number() -> None:
    for values in ([True, False, True], [False, False, False], [True, True, True]) * 2:
        mask = turnout.tensor(values)
        x = turnout.tensor([1, 2, 3])
        x[mask] = turnout.tensor(7.0)
        assert x.tolist() == [7 if chosen else v for v, chosen in zip([1, 2, 3], values, strict=True)]
        with pytest.raises(DimError, match=r"index: a mask of shape \[2\] does not fit shape \[3\] at dim 0"):
            x[turnout.tensor([True, False])] = 1
        with pytest.raises(DTypeError, match="index_put: 'values' must have dtype int64, got float32"):
            x[turnout.tensor([0])] = turnout.tensor(7.0)


def test_kernels_leave_what_the_program_told_numpy_about_errors() -> None:
    def overflow() -> dict[str, str]:
        with np.errstate(over="raise", invalid="call", divide="warn"):
            x = turnout.tensor([1e30, -1.0])
            turnout.lerp(x * x, x, 0.5)
            x.clone().lerp_(x * 1e30, 0.5)
            turnout.exp(x, out=turnout.empty(2))
            x.long()
            return np.geterr()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = np.geterr()
        assert contextvars.copy_context().run(overflow) | {"under": "ignore"} == {
            "over": "raise", "invalid": "call", "divide": "warn", "under": "ignore",
        }  # fmt: skip
        assert np.geterr() == before


def test_copies_of_composites_that_end_in_one_call_are_that_call() -> None:
    x = ramp(2, 2)
    for _ in range(REPEATS):
        assert x.contiguous() is x
        assert x.float() is x
        assert x.to(turnout.float32, copy=True) is not x
        assert x.t().contiguous().tolist() == [[0.0, 2.0], [1.0, 3.0]]
        assert x.to(turnout.int64).tolist() == [[0, 1], [2, 3]]
        assert (x @ x).tolist() == [[2.0, 3.0], [6.0, 11.0]]
        with pytest.raises(ShapeError, match="mm"):
            x @ turnout.ones(3, 2)
        assert turnout.logsumexp(x, 1).tolist() == pytest.approx([1.3132617, 3.3132617])


def test_a_call_by_keywords_is_found_until_its_overload_is_removed() -> None:
    with Library("planned_writes", "DEF") as library:
        library.define("f.one(Tensor x, *, int by) -> int")
        library.define("f.two(Tensor x, Tensor y, *, int by) -> int")
        library.impl("f.one", lambda x, *, by: by, "CompositeExplicitAutograd")
        library.impl("f.two", lambda x, y, *, by: -by, "CompositeExplicitAutograd")
        overloads = packet("planned_writes", "f")
        x = turnout.ones(2)
        assert [overloads(x, by=n) for n in (1, 2, 3)] == [1, 2, 3]
        assert [overloads(x, x, by=n) for n in (1, 2, 3)] == [-1, -2, -3]
    with pytest.raises(UnknownOperatorError, match="planned_writes::f"):
        overloads(x, by=1)
    out = turnout.empty(2)
    assert [turnout.add(x, x, out=out).tolist() for _ in range(3)] == [[2.0, 2.0]] * 3
    assert [turnout.sum(ramp(2, 2), dim=1, keepdim=True).shape for _ in range(3)] == [(2, 1)] * 3
