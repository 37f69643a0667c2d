"""Arithmetic of complex64 on the device. Operators that are not here compute with complex numbers on the host."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from turnout.dtypes import bool_, complex64, float32
from turnout_aten.shapes.extents import dims_of
from turnout_opencl import pointwise, reductions
from turnout_opencl.arrays import ClArray, new_array
from turnout_opencl.grids import packed
from turnout_opencl.pointwise import operands
from turnout_opencl.reductions import dense_strides, split_of

Kernel = Callable[..., Any]

_PLUS, _MINUS, _ADD, _SUBTRACT, _TIMES, _OVER, _NEGATIVE, _CONJUGATE, _RECIPROCAL = range(9)  # the cases of `pairs`
_EQUAL, _UNEQUAL, _IS_NAN, _IS_INFINITE = range(4)  # and of `comparisons`
_RUNNING = 2  # added to the cases of `totals`
_PAIR = struct.Struct("<2f")


def bits(value: Any) -> int:
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
    call, count = packed(op, out.shape, (out.strides, *strides), (out.offset, *bases), numbers=[bits(v) for v in (*numbers, w)])
    out.place.start("complex", complex64, kernel, call, (out.buffer, *buffers), count)


def _unary(op: int, name: str = "pairs") -> Kernel:
    def kernel(self: Any, out: ClArray) -> None:
        _run(name, op, out, self)

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


def _sum_of_products(added: ClArray, first: ClArray, second: ClArray, beta: Any, alpha: Any, out: ClArray) -> None:
    """beta * added + alpha * first @ second; what is added is ignored if beta is 0, with its NaN."""
    made = new_array(out.place, out.shape, complex64)
    product(first, second, made)
    if beta == 0:
        _run("pairs", _TIMES, out, made, alpha)
    else:
        scaled = new_array(out.place, out.shape, complex64)
        _run("pairs", _TIMES, scaled, added, beta)
        _run("pairs", _ADD, out, scaled, made, alpha)


def _column(vec: ClArray) -> ClArray:
    return vec.view((*vec.shape, 1), (*vec.strides, 0), 0)


def matrix_vector(self: ClArray, vec: ClArray, out: ClArray) -> None:
    """(n, k) @ (k,)"""
    product(self, _column(vec), _column(out))


def dot(self: ClArray, tensor: ClArray, out: ClArray) -> None:
    """The sum of the products."""
    made = new_array(self.place, self.shape, complex64)
    _run("pairs", _TIMES, made, self, tensor)
    _total(0, made, None, out)


def _total(op: int, self: ClArray, dim: Any, out: ClArray, *, mean: bool = False) -> None:
    split = split_of(self, dims_of(len(self.shape), dim))
    nowhere = (0,) * len(split.inner)
    if mean and not split.count:
        _run("pairs", _OVER, out, 0, 0)  # NaN
        return
    call, count = packed(
        op, split.kept, (dense_strides(out, split.kept), split.kept_strides), (out.offset, self.offset),
        (split.inner, (nowhere, split.inner_strides)), extra=(split.count if mean else 0,),
    )  # fmt: skip
    out.place.start("complex", complex64, "totals", call, (out.buffer, self.buffer), count)


def _running(op: int) -> Kernel:
    def kernel(self: ClArray, dim: int, dtype: Any, out: ClArray) -> None:
        reductions.lines(self.place, "complex", "totals", op + _RUNNING, (out, self), dim)

    return kernel


def _of_truths(row: Any) -> Kernel:
    """A row of bools, for elements that count as themselves != 0."""

    def kernel(*args: Any) -> None:
        *given, out = args
        row.fn(*[pointwise.as_bool(each) if isinstance(each, ClArray) else each for each in given], out)

    return kernel


# fmt: off
KERNELS: dict[str, Kernel] = {
    **{name: _of_truths(reductions.KERNELS[name]) for name in (
        "any.all_out", "any.out", "any.dims_out", "all.all_out", "all.out", "all.dims_out",
    )},
    **{name: _of_truths(pointwise.KERNELS[name]) for name in (
        "logical_and.out", "logical_or.out", "logical_xor.out", "logical_not.out",
    )},
    "isnan.out":        _unary(_IS_NAN, "comparisons"),
    "isinf.out":        _unary(_IS_INFINITE, "comparisons"),
    "sum.out":          lambda self, dtype, out: _total(0, self, None, out),
    "sum.IntList_out":  lambda self, dim, keepdim, dtype, out: _total(0, self, dim, out),
    "mean.dtype_out":   lambda self, dtype, out: _total(0, self, None, out, mean=True),
    "mean.out":         lambda self, dim, keepdim, dtype, out: _total(0, self, dim, out, mean=True),
    "prod.out":         lambda self, dtype, out: _total(1, self, None, out),
    "prod.int_out":     lambda self, dim, keepdim, dtype, out: _total(1, self, dim, out),
    "cumsum.out":       _running(0),
    "cumprod.out":      _running(1),
    "mv.out":           matrix_vector,
    "dot.out":          dot,
    "addmm.out":        _sum_of_products,
    "baddbmm.out":      _sum_of_products,
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
    "eq.Tensor_out":    _binary(_EQUAL, "comparisons"),
    "ne.Tensor_out":    _binary(_UNEQUAL, "comparisons"),
}
# fmt: on


def serves(args: tuple[Any, ...]) -> bool:
    """Whether all operands of a call are complex64 here, or numbers. The last argument is the result."""
    *given, out = args
    return out.dtype in (complex64, bool_, float32) and all(a.dtype is complex64 for a in given if isinstance(a, ClArray))
