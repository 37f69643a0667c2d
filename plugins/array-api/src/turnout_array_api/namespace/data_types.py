"""Functions of data types."""

from __future__ import annotations

from functools import reduce

from turnout.dtypes import BOOL, COMPLEX, FLOAT, INT, DType
from turnout.errors import ArgumentError, CallError, DTypeError
from turnout.operators.arguments import as_dtype
from turnout_array_api.namespace.promotion import number_dtype, promote
from turnout_aten.errors import arguments as texts
from turnout_aten.functions import limits
from turnout_aten.functions.call_forms import is_number, python_number
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.devices import Device

# Kind -> categories.
KINDS = {
    "bool": (BOOL,),
    "signed integer": (INT,),
    "unsigned integer": (INT,),
    "integral": (INT,),
    "real floating": (FLOAT,),
    "complex floating": (COMPLEX,),
    "numeric": (INT, FLOAT, COMPLEX),
}


def _dtype(value: DType | Tensor) -> DType:
    return value.dtype if isinstance(value, Tensor) else value


def astype(x: Tensor, dtype: DType | type, /, *, copy: bool = True, device: str | Device | None = None) -> Tensor:
    """x in another dtype or on another device. With copy=False, x itself if nothing changes.

    Raises DTypeError for complex to real because the imaginary part would be lost; use `real` or `abs`.

    Arguments:
        x: an array
        dtype: the dtype
        copy: whether to copy even if nothing changes
        device: the device

    Example:
        >>> turnout.array_api.astype(turnout.tensor([1, 2]), turnout.float32)
        tensor([1., 2.])
    """
    dtype = as_dtype("astype", "dtype", dtype)
    if x.dtype.category == COMPLEX != dtype.category:
        raise DTypeError(f"astype: cannot convert {x.dtype.name} to {dtype.name}; take real, imag or abs first")
    return x.to(dtype=dtype, device=x.device if device is None else device, copy=copy)


def can_cast(from_: DType | Tensor, to: DType, /) -> bool:
    """Whether the standard's promotion converts a dtype to `to`. It never crosses kinds.

    Arguments:
        from_: a dtype, or an array that has it
        to: the dtype to convert to

    Example:
        >>> turnout.array_api.can_cast(turnout.int32, turnout.int64)
        True
    """
    source = _dtype(from_)
    if source is to:
        return True
    if BOOL in (source.category, to.category) or (source.category == INT) != (to.category == INT):
        return False
    try:
        return promote(source, to) is to
    except DTypeError:
        return False


def finfo(type: DType | Tensor, /) -> limits.finfo:
    """The limits of a floating-point dtype, or of the parts of a complex dtype. Raises DTypeError for others.

    Arguments:
        type: a dtype, or an array that has it

    Example:
        >>> turnout.array_api.finfo(turnout.float32).bits
        32
    """
    return limits.finfo(_dtype(type))


def iinfo(type: DType | Tensor, /) -> limits.iinfo:
    """The limits of an integer dtype. Raises DTypeError for others.

    Arguments:
        type: a dtype, or an array that has it

    Example:
        >>> turnout.array_api.iinfo(turnout.int8).max
        127
    """
    return limits.iinfo(_dtype(type))


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> bool:
    """Whether a dtype equals a dtype, belongs to a kind, or matches any of several of these.

    Raises ArgumentError for an unknown kind, CallError for any other object, as `dtype` too.

    Arguments:
        dtype: the dtype
        kind: a dtype, the name of a kind such as "integral", or several of these

    Example:
        >>> turnout.array_api.isdtype(turnout.int32, "integral")
        True
    """
    if not isinstance(dtype, DType):
        raise CallError(f"isdtype: takes a dtype of Turnout, got {dtype!r}")
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if isinstance(kind, DType):
        return dtype is kind
    if not isinstance(kind, str):
        raise CallError(f"isdtype: kind must be a dtype, a string or a tuple of them, got {kind!r}")
    if kind not in KINDS:
        raise ArgumentError(texts.not_one_of("isdtype", "kind", KINDS, kind))
    if dtype.category not in KINDS[kind]:
        return False
    return dtype.is_signed == kind.startswith("signed") if kind.endswith("signed integer") else True


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The common dtype of arrays and dtypes by the standard's tables. Python numbers adapt to it.

    Raises CallError without an array or dtype or for any other object, DTypeError if there is no common dtype.

    Arguments:
        arrays_and_dtypes: arrays, dtypes and numbers

    Example:
        >>> turnout.array_api.result_type(turnout.tensor([1]), turnout.float32)
        turnout.float32
    """
    numbers = [python_number(each) for each in arrays_and_dtypes if is_number(each)]
    others = [_dtype(each) for each in arrays_and_dtypes if not is_number(each)]
    for each in others:
        if not isinstance(each, DType):
            raise CallError(f"result_type: takes arrays, dtypes and Python numbers, got {each.__class__.__name__}")
    if not others:
        raise CallError("result_type: needs at least one array or dtype")
    return reduce(lambda found, number: number_dtype(number, found), numbers, reduce(promote, others))
