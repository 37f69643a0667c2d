"""Type promotion by rank and category, and what shape functions ask a kernel to convert."""

from __future__ import annotations

import pytest
from few_kernels import lists, made

from outcomes import refused
from turnout.dtypes import bool_, complex64, float32, float64, int8, int64, uint8
from turnout.errors import DTypeError
from turnout_aten.shapes import pointwise
from turnout_aten.shapes.promotion import fitted, result_type

pytestmark = pytest.mark.usefixtures("few")


def test_a_number_changes_the_dtype_only_by_its_category():
    assert result_type(made([1], int8), 300) is int8
    assert result_type(made([1], int8), 1.5) is float32
    assert result_type(made([1.0]), 2) is float32
    assert result_type(made([True]), 2) is int64
    assert result_type(made([1.0], float64), 1j).name == "complex128"


def test_a_tensor_without_dims_ranks_between_numbers_and_the_others():
    scalar = made(1.0, float64)
    assert result_type(made([1.0]), scalar) is float32
    assert result_type(made([1]), scalar) is float64
    assert result_type(scalar, 1) is float64
    assert result_type(made(True), 2.5, made([1])) is float32


def test_equal_dtypes_need_no_casts():
    answer = pointwise.add(made([1.0]), made([2.0]))
    assert (answer.shape, answer.dtype) == ((1,), float32)


def test_casts_are_named_for_the_tensors_that_need_them():
    result = pointwise.mul(made([1]), made([1.5]))
    assert result.casts == {"self": float32}


def test_a_number_that_the_dtype_cannot_hold_wraps():
    assert [fitted(v, int8) for v in (127, 128, 300, -129)] == [127, -128, 44, 127]
    assert fitted(-1, uint8) == 255
    assert lists(made([1], int8) + 300) == [45]


def test_alpha_must_not_be_of_a_higher_category_than_the_result():
    assert refused(DTypeError, pointwise.add, made([1]), made([2]), 0.5) == (
        "alpha must be an integer for a result of dtype int64, got 0.5"
    )


def test_subtracting_bools_names_what_to_use_instead():
    assert "subtraction is not defined for bool operands; use logical_xor" in refused(
        DTypeError, pointwise.sub, made([True]), made([False])
    )


def test_comparisons_give_bool_and_division_gives_floats():
    assert pointwise.equality(made([1]), made([1])).dtype is bool_
    assert pointwise.div(made([1]), made([2])).outs[0].dtype is float32
    assert pointwise.absolute(made([1.0])).dtype is float32
    assert complex64.to_real() is float32
