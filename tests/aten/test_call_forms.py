"""What public functions and methods call when the common case missed."""

from __future__ import annotations

import pytest

import turnout
from outcomes import refused
from turnout.errors import CallError, TurnoutError
from turnout_aten.functions import call_forms


class Kind:
    """A NumPy dtype as seen from outside."""

    def __init__(self, kind):
        self.kind = kind


class Scalar:
    """A NumPy scalar as seen from outside; it has a device and the interface of arrays, but its item cannot be set."""

    shape = ()
    device = "cpu"
    __array_interface__ = {}
    __array_priority__ = -1000000.0

    def __init__(self, kind="i"):
        self.dtype = Kind(kind)

    def item(self):
        return 3


class Array(Scalar):
    shape = (2,)
    __array_priority__ = 0.0

    def __setitem__(self, index, value):
        raise AssertionError


class MaskedArray(Array):
    __array_priority__ = 15


class Operand:
    """A tensor as `binary` uses it."""

    def _operand(self, array):
        return ("tensor of", array)


def called(*names):
    return [lambda a, b, n=name: (n, b) for name in names]


@pytest.mark.parametrize("number", [1, 1.5, True, 2j])
def test_numbers_go_to_the_scalar_overload(number):
    tensors, scalar = called("tensors", "scalar")
    assert call_forms.binary(object(), number, tensors, scalar) == ("scalar", number)
    assert call_forms.binary(object(), number, tensors, None) is NotImplemented


def test_numpy_scalars_are_numbers_and_arrays_are_not():
    tensors, scalar = called("tensors", "scalar")
    for kind in "biufcV":
        assert call_forms.binary(object(), Scalar(kind), tensors, scalar) == ("scalar", 3)
        assert call_forms.reflected(object(), Scalar(kind), tensors, scalar) == ("scalar", 3)
    assert call_forms.binary(object(), Scalar(), tensors, None) is NotImplemented
    for other in (MaskedArray(), Scalar("U"), Scalar("M"), "text", None, [1]):
        assert call_forms.binary(object(), other, tensors, scalar) is NotImplemented
        assert call_forms.reflected(object(), other, tensors, scalar) is NotImplemented


def test_an_array_on_the_right_becomes_a_tensor_and_one_on_the_left_is_an_error():
    tensors, scalar = called("tensors", "scalar")
    array = Array()
    assert call_forms.binary(Operand(), array, tensors, scalar) == ("tensors", ("tensor of", array))
    assert refused(CallError, call_forms.reflected, Operand(), array, tensors, scalar) == (
        "an operator with Array on the left and Tensor on the right: either library could compute it\n"
        "  to fix  make the array a tensor with turnout.from_numpy(array), or the tensor an array with tensor.numpy()"
    )


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
        assert refused(CallError, call_forms.out_tuple, "f", wrong, 2) == (
            f"f: argument 'out' must be a tuple of 2 tensors, got {type(wrong).__name__}"
        )


def test_a_dtype_of_numbers():
    assert [call_forms.number_dtype(v).name for v in (True, 1, 1.5, 1j)] == ["bool", "int64", "float32", "complex64"]


class Unequal:
    """As an array of NumPy or a column of a table: what it is compared with is never a bool."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        raise AssertionError("an argument was compared")


def test_no_function_compares_its_arguments_to_find_which_are_given() -> None:
    x, compared = turnout.ones(2, 3), []
    for name in sorted({*dir(turnout)} & {*dir(turnout.ops.aten)}):
        for count in range(1, 5):
            for place in range(count):
                arguments = [x] * count
                arguments[place] = Unequal()
                try:
                    getattr(turnout, name)(*arguments)
                except AssertionError:
                    compared.append((name, count, place))
                except (TurnoutError, TypeError):
                    continue
    # Its argument is a word, which is compared with the words that there are.
    assert {name for name, *_ in compared} <= {"sym_is_contiguous"}
