"""What public functions and methods call when the common case missed."""

from __future__ import annotations

import pytest

from turnout.errors import CallError
from turnout_aten.functions import call_forms


class Scalar:
    """A NumPy scalar as seen from outside."""

    dtype = "int64"
    shape = ()

    def item(self):
        return 3


class Array(Scalar):
    shape = (2,)


def called(*names):
    return [lambda a, b, n=name: (n, b) for name in names]


@pytest.mark.parametrize("number", [1, 1.5, True, 2j])
def test_numbers_go_to_the_scalar_overload(number):
    tensors, scalar = called("tensors", "scalar")
    assert call_forms.binary(object(), number, tensors, scalar) == ("scalar", number)
    assert call_forms.binary(object(), number, tensors, None) is NotImplemented


def test_numpy_scalars_are_numbers_and_arrays_are_not():
    tensors, scalar = called("tensors", "scalar")
    number = Scalar()
    assert call_forms.binary(object(), number, tensors, scalar) == ("scalar", number)
    for other in (Array(), "text", None, [1]):
        assert call_forms.binary(object(), other, tensors, scalar) is NotImplemented


def test_ints_written_one_by_one():
    assert call_forms.all_ints((0, -1))
    assert not call_forms.all_ints((0, True))
    assert not call_forms.all_ints((0, 1.0))
    assert call_forms.spread((2, 3)) == (2, 3)
    assert call_forms.spread(((2, 3),)) == (2, 3)
    assert call_forms.spread((2,)) == (2,)


def test_out_of_several_outputs_is_a_tuple_of_that_length():
    assert call_forms.out_tuple("f", (1, 2), 2) == (1, 2)
    for wrong in (3, (1,), "ab"):
        with pytest.raises(CallError) as caught:
            call_forms.out_tuple("f", wrong, 2)
        assert str(caught.value) == f"f: argument 'out' must be a tuple of 2 tensors, got {type(wrong).__name__}"


def test_a_dtype_of_numbers():
    assert [call_forms.number_dtype(v).name for v in (True, 1, 1.5, 1j)] == ["bool", "int64", "float32", "complex64"]
