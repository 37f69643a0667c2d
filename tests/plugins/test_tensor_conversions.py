"""The short names of conversions, tensors made like another, and T and mT."""

from __future__ import annotations

import pytest

import turnout
from turnout.errors import AliasError, ArgumentError, CallError, ShapeError


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("half", "float16"), ("bfloat16", "bfloat16"), ("float", "float32"), ("double", "float64"), ("short", "int16"),
     ("int", "int32"), ("long", "int64"), ("bool", "bool")],
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
    with pytest.raises(ShapeError, match=r"mT needs at least 2 dimensions, this tensor has shape \[4\]"):
        turnout.ones(4).mT


def test_data_shares_memory_and_version_but_no_history():
    x = turnout.ones(2, requires_grad=True)
    x.data.add_(1)
    assert x.tolist() == [2.0, 2.0]
    assert not x.data.requires_grad
    assert x._version == 1


def test_data_is_written_by_assignments_in_place_and_never_exchanged():
    x = turnout.ones(3, requires_grad=True)
    x.data -= 0.5
    x.data[0] = 7
    x.data = x.data
    assert (x.tolist(), x.requires_grad, x.is_leaf, x._version) == ([7.0, 0.5, 0.5], True, True, 2)
    exchanged = (
        "data: the memory of a tensor cannot be exchanged, for what was saved of it would not notice\n"
        "  to fix  write into it: x.data.copy_(other)"
    )
    for other in (turnout.ones(3), x.detach()[:2], x.detach().view(3, 1), x.detach().view(dtype=turnout.int32)):
        with pytest.raises(AliasError) as caught:
            x.data = other
        assert str(caught.value) == exchanged
    with pytest.raises(CallError) as refused:
        x.data = None
    assert str(refused.value) == "data must be a tensor, not NoneType"


def test_only_one_element_has_a_truth_value_and_only_numbers_and_tensors_are_looked_for():
    x = turnout.tensor([1.0, 2.0])
    for many, count in ((x, 2), (turnout.ones(0), 0)):
        with pytest.raises(ArgumentError) as caught:
            bool(many)
        assert (
            str(caught.value) == f"the truth value of a tensor with {count} elements is ambiguous; use .any() or .all()"
        )
    assert (2 in x, 3.0 in x, turnout.tensor(1.0) in x) == (True, False, True)
    with pytest.raises(ArgumentError) as caught:
        assert "a" in x
    assert str(caught.value) == "a tensor holds numbers, and can be asked for a number or a tensor; got str"
