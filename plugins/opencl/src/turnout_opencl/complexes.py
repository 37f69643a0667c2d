"""Arithmetic of complex64 on the device. Operators that are not here compute with complex numbers on the host."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from turnout.dtypes import complex64
from turnout_opencl.arrays import ClArray
from turnout_opencl.grids import packed
from turnout_opencl.pointwise import operands

Kernel = Callable[..., Any]

_PLUS, _MINUS, _ADD, _SUBTRACT, _TIMES, _OVER, _NEGATIVE, _CONJUGATE, _RECIPROCAL = range(9)  # the cases of `pairs`
_PAIR = struct.Struct("<2f")


def _bits(value: Any) -> int:
    """A number as the integer that `Call.number` holds. A part beyond float32 is infinite, as it is in a conversion."""
    value = complex(value)
    return int.from_bytes(_PAIR.pack(_float(value.real), _float(value.imag)), "little", signed=True)


def _float(part: float) -> float:
    try:
        _PAIR.pack(part, 0.0)
    except OverflowError:
        return float("inf") if part > 0 else -float("inf")
    return part


def _run(kernel: str, op: int, out: ClArray, x: Any, y: Any = 0, w: Any = 1) -> None:
    buffers, strides, bases, numbers = operands(out, (x, y))
    call, count = packed(op, out.shape, (out.strides, *strides), (out.offset, *bases), numbers=[_bits(v) for v in (*numbers, w)])
    out.place.start("complex", complex64, kernel, call, (out.buffer, *buffers), count)


def _unary(op: int) -> Kernel:
    def kernel(self: Any, out: ClArray) -> None:
        _run("pairs", op, out, self)

    return kernel


def _binary(op: int, name: str = "pairs") -> Kernel:
    def kernel(self: Any, other: Any, out: ClArray) -> None:
        _run(name, op, out, self, other)

    return kernel


def _scaled(plain: int, general: int) -> Kernel:
    def kernel(self: Any, other: Any, alpha: Any, out: ClArray) -> None:
        _run("pairs", plain if alpha == 1 else general, out, self, other, alpha)

    return kernel


def reversed_difference(self: Any, other: Any, alpha: Any, out: ClArray) -> None:
    """other - alpha * self"""
    _run("pairs", _MINUS if alpha == 1 else _SUBTRACT, out, other, self, alpha)


def product(self: ClArray, other: ClArray, out: ClArray) -> None:
    """The product of two matrices, or of each in two batches of them."""
    rows, columns = (*self.strides[:-1], 0), (*other.strides[:-2], 0, other.strides[-1])
    call, count = packed(
        0, out.shape, (out.strides, rows, columns), (out.offset, self.offset, other.offset),
        (self.shape[-1:], ((0,), self.strides[-1:], other.strides[-2:-1])),
    )  # fmt: skip
    out.place.start("complex", complex64, "products", call, (out.buffer, self.buffer, other.buffer), count)


def absolute(self: Any, out: ClArray) -> None:
    """The length of each pair."""
    _run("lengths", 0, out, self)


# fmt: off
KERNELS: dict[str, Kernel] = {
    "add.out":          _scaled(_PLUS, _ADD),
    "sub.out":          _scaled(_MINUS, _SUBTRACT),
    "rsub.Tensor_out":  reversed_difference,
    "mul.out":          _binary(_TIMES),
    "div.out":          _binary(_OVER),
    "neg.out":          _unary(_NEGATIVE),
    "conj_physical.out": _unary(_CONJUGATE),
    "reciprocal.out":   _unary(_RECIPROCAL),
    "abs.out":          absolute,
    "mm.out":           product,
    "bmm.out":          product,
    "eq.Tensor_out":    _binary(0, "comparisons"),
    "ne.Tensor_out":    _binary(1, "comparisons"),
}
# fmt: on


def serves(args: tuple[Any, ...]) -> bool:
    """Whether all operands of a call are complex64 here, or numbers. The last argument is the result."""
    *given, _out = args
    return all(a.dtype is complex64 for a in given if isinstance(a, ClArray))
