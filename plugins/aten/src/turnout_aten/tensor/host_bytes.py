"""Conversion between Python numbers and the bytes of a dtype, without an array library.

Bytes are little-endian and in row-major order: the format that `to_host` returns and `from_host` accepts.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from turnout.dtypes import BOOL, COMPLEX, FLOAT, INT, DType, bfloat16, dtype_named
from turnout.errors import DTypeError
from turnout_aten.dtypes import check_held, int_range

if TYPE_CHECKING:
    from collections.abc import Sequence

    Bytes = bytes | memoryview

# dtype -> its `struct` code; a complex number is a pair, bfloat16 is the upper half of a float32
CODES = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q",
    "uint64": "Q", "float16": "e", "float32": "f", "float64": "d", "bfloat16": "H", "complex64": "f", "complex128": "d",
}  # fmt: skip


def decode(data: Bytes, dtype: DType) -> list[Any]:
    """All elements as Python numbers."""
    code = CODES[dtype.name]
    count = len(data) // struct.calcsize(f"<{code}")
    values = struct.unpack(f"<{count}{code}", data)
    if dtype is bfloat16:
        return list(struct.unpack(f"<{count}f", struct.pack(f"<{count}I", *[v << 16 for v in values])))
    if dtype.category == COMPLEX:
        return [complex(re, im) for re, im in zip(values[::2], values[1::2], strict=True)]
    return list(values)


def decode_at(data: Bytes, dtype: DType, index: int) -> Any:
    """One element."""
    at = index * dtype.itemsize
    return decode(data[at : at + dtype.itemsize], dtype)[0]


def encode(values: Sequence[Any], dtype: DType) -> bytes:
    """Python numbers as the elements of a dtype.

    For an integer dtype, floats are truncated. Raises RangeError for a number that does not fit, and DTypeError for a complex
    number if the dtype is real.
    """
    numbers: Sequence[Any]
    if set(map(type, values)) == {OWN.get(dtype.category)}:
        numbers = values
    else:
        numbers = [_converted(v, dtype) for v in values]
    if dtype.category == COMPLEX:
        numbers = [part for number in numbers for part in (number.real, number.imag)]
    code = CODES[dtype.name]
    if dtype is bfloat16:
        numbers = [_bfloat16_bits(number) for number in numbers]
    try:
        return struct.pack(f"<{len(numbers)}{code}", *numbers)
    except (struct.error, OverflowError):
        if dtype.category == INT:
            low, high = int_range(dtype)
            for number in numbers:
                check_held(dtype, number, "tensor", "data")
            # The others are negative numbers, for an unsigned dtype.
            # differs from torch: `turnout.tensor` takes negative numbers modulo 2**64 for uint64, as `full` does in PyTorch too.
            return struct.pack(f"<{len(numbers)}{code}", *[n & high if n < low else n for n in numbers])
    return b"".join(_packed(code, number) for number in numbers)


OWN = {BOOL: bool, INT: int, FLOAT: float, COMPLEX: complex}  # category of a dtype -> Python's numbers that need no conversion


def _converted(value: Any, dtype: DType) -> Any:
    if dtype.category == BOOL:
        return bool(value)
    if dtype.category == COMPLEX:
        return complex(value)
    if isinstance(value, complex):
        raise DTypeError(f"{value} is complex and cannot be converted to {dtype.name}")
    if dtype.category == FLOAT:
        try:
            return float(value)
        except OverflowError:  # an int of more than 1,000 bits
            check_held(dtype, value, "tensor", "data")
    if isinstance(value, float):
        check_held(dtype, value, "tensor", "data")
    return int(value)


def _packed(code: str, number: float) -> bytes:
    """The bytes of a float; one that is too large becomes infinite, as in a dtype conversion."""
    try:
        return struct.pack(f"<{code}", number)
    except OverflowError:
        return struct.pack(f"<{code}", float("inf") if number > 0 else float("-inf"))


def _bfloat16_bits(number: float) -> int:
    """Rounded to the nearest, ties to even."""
    bits: int = struct.unpack("<I", _packed("f", number))[0]
    if number != number:
        return bits >> 16 | 0x40
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


# ---- other libraries' elements

# code in a buffer's format string -> dtype; the sizes of "l" and "L" depend on the platform
_FORMATS = {code: name for name, code in CODES.items() if name not in ("bfloat16", "complex64", "complex128")}
_FORMATS |= {"Zf": "complex64", "Zd": "complex128", "F": "complex64", "D": "complex128"}


def buffer_dtype(view: memoryview) -> DType | None:
    """The dtype of a buffer's elements, or None if no dtype has that format in this machine's byte order."""
    code = view.format.lstrip("@=<" if struct.pack("=H", 1) == struct.pack("<H", 1) else "@=>")
    if code in ("l", "L", "n", "N"):
        code = {4: "i", 8: "q"}[view.itemsize] if code in "ln" else {4: "I", 8: "Q"}[view.itemsize]
    name = _FORMATS.get(code)
    return dtype_named(name) if name is not None else None


def foreign_dtype(dtype: Any) -> DType | None:
    """The dtype with the name of another library's dtype object ("float32", "torch.float32"), or None."""
    name = str(getattr(dtype, "name", dtype)).rpartition(".")[2]
    try:
        return dtype_named(name)
    except DTypeError:
        return None
