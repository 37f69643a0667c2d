"""The CPU's table: the shared kernel library on NumPy, its hottest rows shared among threads when arrays are large."""

from __future__ import annotations

from typing import Any

import numpy as np

import turnout_arrays
from turnout_arrays.numbers import is_half_beside_number
from turnout_aten.kernels.rows import ALWAYS, SAME, Accepts, Row, Sizes
from turnout_cpu import blocks, decompositions, halves, rows, scattering, special
from turnout_cpu.pool import LARGE, Pool


def kernels(pool: Pool) -> dict[str, Any]:
    """Operator -> kernel."""
    shared = turnout_arrays.kernels(np) | decompositions.kernels() | special.kernels()
    shared |= blocks.kernels(pool, shared) | scattering.kernels(shared)
    # fmt: off
    return shared | rows.kernels(pool, shared) | {
        "add.out":  scaled(pool, np.add, shared["add.out"].fn),
        "sub.out":  scaled(pool, np.subtract, shared["sub.out"].fn),
        "mul.out":  binary(pool, np.multiply, shared["mul.out"].fn),
        "div.out":  binary(pool, np.true_divide, shared["div.out"].fn),
        "neg.out":  _row(negative, np.negative),
        "exp.out":  unary(pool, np.exp),
        "log.out":  unary(pool, np.log),
        "sqrt.out": unary(pool, np.sqrt),
        "sin.out":  unary(pool, np.sin),
        "cos.out":  unary(pool, np.cos),
        "tanh.out": unary(pool, np.tanh),
    }
    # fmt: on


def negative(self: Any, out: Any = None) -> Any:
    """-self; for an output with gaps through a new array, because NumPy 2.4 then reads wrong elements at every eighth float64."""
    if out is None or out.flags.c_contiguous:
        return np.negative(self, out)
    np.copyto(out, np.negative(self))
    return out


def scaled(pool: Pool, ufunc: Any, general: Any) -> Row:
    """A sum with `alpha`; 1, the usual one, goes to the ufunc at once."""

    def kernel(self: Any, other: Any, alpha: Any = 1, out: Any = None) -> Any:
        if alpha != 1 or alpha is True:
            return general(self, other, alpha, out)
        try:
            if self.size > halves.SMALL and (self.size > LARGE or self.dtype.kind == "V"):
                made = _shared(pool, ufunc, self, other, out)
                if made is not None:
                    return made
            return ufunc(self, other, out)
        except (OverflowError, TypeError):
            if out is None:
                raise
        return general(self, other, 1, out)

    return _row(kernel, ufunc)


def binary(pool: Pool, ufunc: Any, general: Any) -> Row:
    """A ufunc of two arguments, the first an array."""

    def kernel(self: Any, other: Any, out: Any = None) -> Any:
        if is_half_beside_number(self, other, out):
            return general(self, other, out)
        try:
            if self.size > halves.SMALL and (self.size > LARGE or self.dtype.kind == "V"):
                made = _shared(pool, ufunc, self, other, out)
                if made is not None:
                    return made
            return ufunc(self, other, out)
        except (OverflowError, TypeError):
            if out is None:
                raise
        return general(self, other, out)

    return _row(kernel, ufunc)


def _shared(pool: Pool, ufunc: Any, self: Any, other: Any, out: Any) -> Any:
    """A ufunc of two large arrays, in pieces; None if that does not serve them."""
    made = halves.apply(ufunc, self, other, out) if self.dtype.kind == "V" else None
    return pool.apply(ufunc, (self, other), out) if made is None and self.size > LARGE else made


def unary(pool: Pool, ufunc: Any) -> Row:
    """A ufunc of one argument."""

    def kernel(self: Any, out: Any = None) -> Any:
        if self.size > LARGE:
            made = pool.apply(ufunc, (self,), out)
            if made is not None:
                return made
        return ufunc(self, out)

    return _row(kernel, ufunc)


def _row(kernel: Any, ufunc: Any) -> Row:
    always = ufunc in (np.add, np.subtract, np.multiply)
    of_floats = not always and ufunc is not np.negative  # whole numbers give floats
    return Row(
        kernel,
        ALWAYS if always else SAME,
        pointwise=True,
        accepts=Accepts("biu" if of_floats else "", bools=ufunc is not np.subtract),
        sizes=Sizes(LARGE, simple=ufunc),
    )
