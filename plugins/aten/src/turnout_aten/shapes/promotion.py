"""Type promotion: the dtype of a result, from tensors with dimensions, 0-dim tensors and Python numbers.

Three ranks: a tensor with dimensions outranks a 0-dim tensor, which outranks a number. A lower rank changes the result only
when its category (bool, integer, float, complex) is above that of the higher ones. Source of the rules: PyTorch's page on
type promotion; every pair is compared with `torch.result_type` in tests/oracle.
"""

from __future__ import annotations

from turnout.dtypes import BOOL, COMPLEX, FLOAT, INT, DType, bfloat16, bool_, float16, get_default_dtype, int64
from turnout.errors import CallError, DTypeError
from turnout.operators.values import is_symbol
from turnout_aten.dtypes import promote_types
from turnout_aten.functions.call_forms import python_number
from turnout_aten.tensor.host_bytes import decode, encode
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# Written whenever a promotion depends on the default dtype. Answers of shape functions that do are not kept (`kernels/plans.py`).
DEFAULT_READ: list[object] = [None]


def _default_dtype() -> DType:
    DEFAULT_READ[0] = None
    return get_default_dtype()


def number_dtype(value: bool | int | float | complex) -> DType:
    """The dtype a Python number has beside no tensor: bool, int64, the default dtype or its complex counterpart."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int) or is_symbol(value):
        return int64
    return _default_dtype().to_complex() if isinstance(value, complex) else _default_dtype()


def result_type(*values: Any) -> DType:
    """The dtype that an operator computes in for these tensors and numbers; None and absent ones do not count.

    Raises DTypeError for dtypes without a common one (see `turnout.promote_types`) and for no values at all.

    Arguments:
        values: tensors, numbers and None

    Example:
        >>> turnout.result_type(turnout.tensor([1]), 2.5)
        turnout.float32
    """
    with_dims: DType | None = None
    without: DType | None = None
    numbers: DType | None = None
    given: list[Any] = []
    for value in values:
        if isinstance(value, Tensor):
            dtype = value.dtype
            if value.array.shape:
                with_dims = dtype if with_dims is None else promote_types(with_dims, dtype)
            else:
                without = dtype if without is None else promote_types(without, dtype)
        elif value is not None:
            given.append(value)
    if given:
        floating = (with_dims is not None and with_dims.category >= FLOAT) or (without is not None and without.category >= FLOAT)
        for value in given:
            if floating and value.__class__ is float:
                continue  # it takes a tensor's dtype, whatever the default one is
            number = python_number(value)
            if not isinstance(number, (int, float, complex)) and not is_symbol(number):
                raise CallError(f"result_type: expected tensors and numbers, got {type(value).__name__}")
            dtype = number_dtype(number)
            numbers = dtype if numbers is None else promote_types(numbers, dtype)
    result = _combine(with_dims, _combine(without, numbers))
    if result is None:
        raise DTypeError("result_type needs at least one tensor or number")
    return result


def _combine(higher: DType | None, lower: DType | None) -> DType | None:
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.category == COMPLEX:
        return higher
    if higher.category == FLOAT:
        return higher.to_complex() if lower.category == COMPLEX else higher
    if lower.category == COMPLEX:
        return lower
    return promote_types(higher, lower) if higher.category == BOOL or lower.category == FLOAT else higher


def common_dtype(self: Any, other: Any) -> DType:
    """`result_type` of two operands; the usual pairs without its bookkeeping."""
    if isinstance(self, Tensor):
        dtype = self.device.backend.dtype_of(self.array)
        if isinstance(other, Tensor):
            if other.device.backend.dtype_of(other.array) is dtype:
                return dtype
        elif other.__class__ is float:
            if dtype.category >= FLOAT:
                return dtype
        elif other.__class__ is int and dtype.category >= INT:
            return dtype
    return result_type(self, other)


def float_dtype(dtype: DType) -> DType:
    """The dtype of an operator whose results are not integers: the default dtype for bool and integer operands."""
    return dtype if dtype.category >= FLOAT else _default_dtype()


def fitted(value: int, dtype: DType) -> int:
    """An int as an integer dtype holds it: modulo 2 ** bits."""
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.is_signed and value >> (bits - 1) else value


def rounded(value: Any, dtype: DType) -> Any:
    """A number as the two-byte float that is nearest to it; the number itself for any other dtype, and where nothing is lost."""
    if (dtype is not float16 and dtype is not bfloat16) or value.__class__ not in (float, int):
        return value
    held = decode(encode([value], dtype), dtype)[0]
    return value if held == value else held
