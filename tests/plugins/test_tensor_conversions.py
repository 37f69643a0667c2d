"""The short names of conversions, tensors made like another, and T and mT."""

from __future__ import annotations

import math

import pytest

import turnout
from turnout.errors import ArgumentError


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("half", "float16"), ("bfloat16", "bfloat16"), ("float", "float32"), ("double", "float64"), ("short", "int16"),
     ("int", "int32"), ("long", "int64"), ("bool", "bool"), ("byte", "uint8"), ("char", "int8"), ("cfloat", "complex64"),
     ("cdouble", "complex128")],
)  # fmt: skip
def test_each_short_name_gives_its_dtype(name, dtype):
    made = getattr(turnout.tensor([0, 1, 2]), name)()
    assert made.dtype.name == dtype
    assert made.tolist() == [bool(v) if name == "bool" else v for v in (0, 1, 2)]


def test_a_conversion_to_what_it_is_returns_the_tensor_itself():
    x = turnout.ones(2)
    assert x.float() is x
    assert x.cpu() is x
    assert x.type_as(turnout.ones(1)) is x


def test_a_new_tensor_of_the_same_kind_may_require_a_gradient():
    x = turnout.ones(2, dtype=turnout.float64)
    made = [x.new_ones(2, requires_grad=True), x.new_zeros((2,), requires_grad=True), x.new_empty(2, requires_grad=True),
            x.new_full((2,), 3.0, requires_grad=True), x.new_empty_strided((2,), (1,), requires_grad=True)]  # fmt: skip
    assert all(t.requires_grad and t.is_leaf and t.dtype is x.dtype for t in made)
    assert not x.new_ones(2).requires_grad


def test_T_reverses_the_dimensions_and_mT_exchanges_the_last_two():
    x = turnout.ones(2, 3, 4)
    assert x.T.shape == (4, 3, 2)
    assert x.mT.shape == (2, 4, 3)


def test_only_numbers_and_tensors_are_looked_for_in_a_tensor():
    x = turnout.tensor([1.0, 2.0])
    assert (2 in x, 3.0 in x, turnout.tensor(1.0) in x) == (True, False, True)
    with pytest.raises(ArgumentError) as caught:
        assert "a" in x
    assert str(caught.value) == "'value in tensor' needs a number or a tensor, got str"


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 2), (2, 0)])
def test_a_reversed_tensor_is_a_tensor(shape: tuple[int, ...]) -> None:
    x = turnout.arange(math.prod(shape)).reshape(shape)
    assert isinstance(reversed(x), turnout.Tensor)
    assert reversed(x).equal(x.flip(0) if shape else x)
