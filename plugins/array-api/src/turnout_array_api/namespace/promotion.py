"""The standard's rules for arguments: the common dtype of operands, Python numbers next to arrays, and axes.

Turnout's operators promote as PyTorch does: a 0-dim tensor adapts to a tensor with dimensions. In the standard only Python
numbers adapt, so the functions of this namespace convert their operands first.
"""

from __future__ import annotations

from turnout.dtypes import COMPLEX, DTYPES, FLOAT, INT, DType, bool_, get_default_dtype, int64, uint64
from turnout.errors import ArgumentError, CallError, DTypeError
from turnout_aten.dtypes import promote_types
from turnout_aten.errors.arguments import repeated_dim
from turnout_aten.functions.call_forms import is_number, python_number
from turnout_aten.functions.limits import iinfo
from turnout_aten.generated import functions as fn
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Number = bool | int | float | complex
    Axis = int | Sequence[int] | None


def promote(a: DType, b: DType) -> DType:
    """The common dtype of two dtypes by the standard's tables. For other pairs (an integer and a float), as operators promote.

    Raises DTypeError for uint64 and a signed integer.
    """
    if a.category != INT or b.category != INT or a is b:
        return promote_types(a, b)
    if a.is_signed == b.is_signed:
        return a if a.itemsize > b.itemsize else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned is uint64:
        raise DTypeError(f"{a.name} and {b.name} have no common dtype in the array API standard; convert one with astype")
    return DTYPES[f"int{16 * unsigned.itemsize}"]


def number_dtype(value: Number, dtype: DType) -> DType:
    """The dtype of a Python number next to an array of `dtype`: that of the array, unless the number's kind is higher."""
    if isinstance(value, bool):
        return dtype
    if isinstance(value, int):
        return dtype if dtype.category >= INT else int64
    if isinstance(value, float):
        return dtype if dtype.category >= FLOAT else get_default_dtype()
    return dtype if dtype.category == COMPLEX else (dtype if dtype.category == FLOAT else get_default_dtype()).to_complex()


def as_array(value: Tensor | Number, dtype: DType, like: Tensor) -> Tensor:
    """An operand in the common dtype; a number becomes a 0-dim tensor. Raises ArgumentError for an int out of range."""
    if isinstance(value, Tensor):
        return value if value.dtype is dtype else value.to(dtype)
    value = python_number(value)
    if dtype.category == INT and not iinfo(dtype).min <= value <= iinfo(dtype).max:  # type: ignore[operator]
        raise ArgumentError(f"{value} does not fit in {dtype.name}, the dtype of the other operand")
    return fn.full((), value, dtype=dtype, device=like.device)


def common(name: str, *operands: Tensor | Number) -> DType:
    """The common dtype of operands. Raises CallError if none is an array, or if one is neither an array nor a number."""
    found: DType | None = None
    for each in operands:
        if isinstance(each, Tensor):
            found = each.dtype if found is None else promote(found, each.dtype)
        elif not is_number(each):
            raise CallError(f"{name}: operands must be arrays or Python numbers, got {type(each).__name__}")
    if found is None:
        raise CallError(f"{name}: at least one operand must be an array")
    for each in operands:
        if not isinstance(each, Tensor):
            found = number_dtype(python_number(each), found)
    return found


def pair(name: str, x1: Tensor | Number, x2: Tensor | Number) -> tuple[Tensor, Tensor]:
    """Two operands in their common dtype. Raises as `common` and `as_array` do."""
    dtype = common(name, x1, x2)
    like = x1 if isinstance(x1, Tensor) else x2
    assert isinstance(like, Tensor)  # `common` requires one
    return as_array(x1, dtype, like), as_array(x2, dtype, like)


def widened(dtype: DType) -> DType:
    """The dtype of sums and products: small integers use the widest integer of their signedness."""
    if dtype is bool_:
        return int64
    if dtype.category != INT:
        return dtype
    return int64 if dtype.is_signed else uint64


def axes_of(name: str, x: Tensor, axis: Axis) -> tuple[int, ...]:
    """Axes counted from 0; None means all axes, () means none. Raises DimError, or ArgumentError for a repeated axis."""
    if axis is None:
        return tuple(range(x.ndim))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    found = tuple([wrap_dim(each, x.ndim) for each in given])
    if len(set(found)) < len(found):
        raise ArgumentError(repeated_dim(name, given))
    return found
