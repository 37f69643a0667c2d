"""Operators of `turnout.library` on tensors: writes are counted, results looked at, arrays wrapped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from handles import register, tensor, values

import turnout
from outcomes import refused
from turnout.errors.library import KernelResultError
from turnout.library import Library, custom_op
from turnout.registry import Registrations
from turnout_aten.tensor.tensor import Tensor, wrap


@pytest.fixture(autouse=True)
def _backend() -> Iterator[None]:
    with Registrations("the tests' backend") as library:
        register(library)
        yield


def cells(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


@pytest.fixture
def define() -> Iterator[object]:
    """`define(name, kernel, **options)` makes a custom operator that is gone after the test."""
    made = []

    def make(*args, **options):
        made.append(custom_op(*args, **options))
        return made[-1]

    yield make
    for op in made:
        op.undo()


def test_writes_of_a_kernel_are_counted(define):
    def kernel(x: Tensor, value: float) -> None:
        x.array[:] = value

    fill = define("t::fill", kernel, mutates_args=["x"])
    x = tensor([1.0])
    before = x._version
    assert fill(x, 3.0) is None
    assert values(x) == [3.0]
    assert x._version == before + 1


def test_a_kernel_on_arrays_may_write_what_the_schema_says():
    def fill(x, value):
        x[:] = value

    with Library("t", "DEF") as lib:
        lib.define("fill_(Tensor(a!) x, Scalar value) -> Tensor(a!)")
        lib.impl("fill_", fill, "Cells", arrays=True)
        x = tensor([1.0, 2.0])
        before = x._version
        assert turnout.ops.t.fill_(x, 7) is x
        assert values(x) == [7, 7]
        assert x._version == before + 1


def test_a_tensor_made_of_a_kernels_array_is_like_any_other():
    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: cells(0.0), "Cells", arrays=True)
        made, expected = turnout.ops.t.f(tensor([1.0])), tensor([0.0])
        slots = [name for cls in type(made).__mro__ for name in getattr(cls, "__slots__", ()) if name != "__weakref__"]
        unset = object()
        for name in slots:
            if name != "array":
                assert getattr(made, name, unset) == getattr(expected, name, unset), name


def test_a_warning_that_is_an_error_sends_a_kernel_on_arrays_to_the_quiet_path():
    calls = []

    def kernel(x):
        calls.append(x)
        if len(calls) == 1:
            raise RuntimeWarning("overflow")
        return cells(1.0)

    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", kernel, "Cells", arrays=True)
        assert values(turnout.ops.t.f(tensor([1.0]))) == [1.0]
        assert len(calls) == 2


@pytest.mark.parametrize(
    "kernel", [lambda x: x.new_alias(x.array, 0), lambda x: wrap(x.array, x.device)], ids=["alias", "the same array"]
)
def test_a_kernel_may_not_return_the_memory_of_an_input(define, kernel):
    f = define("t::f", kernel, mutates_args=(), schema="(Tensor x) -> Tensor")
    assert "the result shares memory with x" in refused(KernelResultError, f, tensor([1.0]))


def test_a_kernel_on_arrays_may_not_return_its_input(define):
    f = define("t::f", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor", arrays=True)
    assert "the result shares memory with x" in refused(KernelResultError, f, tensor([1.0]))


def test_an_array_kernel_that_returns_something_else_is_an_error(define):
    f = define("t::f", lambda x, n: None, mutates_args=(), schema="(Tensor x, int[] n) -> Tensor[]", arrays=True)
    assert refused(KernelResultError, f, tensor([1.0]), [1]).startswith(
        "t::f: its kernel must return a list of tensors as the result, got None"
    )
