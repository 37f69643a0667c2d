"""Cumulative operators, and those that pick one element along a dim: medians, modes, k-th values."""

from __future__ import annotations

from functools import partial
from typing import Any

from turnout_arrays.numbers import PREPARED, store, store_single, widen
from turnout_aten.kernels.rows import Row

Table = dict[str, Any]


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    return cumulative(xp) | picking(xp)


def cumulative(xp: Any) -> Table:
    """Running sums, products and extremes. A 0-dim array is its own.

    Sums and products of floats run in double precision, because the error of a running sum grows with its length.
    """

    def wide(dtype: Any) -> Any:
        """The dtype in which a running result is kept."""
        return xp.dtype({"f": "f8", "V": "f8", "c": "c16"}[dtype.kind]) if dtype.kind in "fVc" else dtype

    def running(ufunc: Any, name: str) -> Row:
        # Not all array modules have it; those that do take less time for it than for the method.
        accumulate = getattr(ufunc, "accumulate", None) or (lambda array, dim, kind: getattr(array, name)(dim, kind))

        def kernel(self: Any, dim: int, dtype: Any, out: Any) -> Any:
            if not self.shape:
                return store(xp, out, self)
            kind = wide(out.dtype)
            if self.size <= PREPARED and self.dtype is not kind and self.dtype.kind in "biuf":
                self = self.astype(kind)  # of few elements at once: the function converts them in a buffer, 400 ns more
            return store(xp, out, accumulate(self, dim, kind))

        return Row(kernel, prepares=partial(prepared, accumulate))

    def prepared(accumulate: Any, outs: Any, self: Any, dim: int, dtype: Any) -> Any:
        """Of few real numbers of the dtype of the result."""
        if not self.shape or self.size > PREPARED or self.dtype.kind not in "fiu" or outs[0].dtype.name != self.dtype.name:
            return None
        kind = wide(self.dtype)

        def accumulated(self: Any, dim: int, dtype: Any, out: Any) -> Any:
            out[...] = accumulate(self if self.dtype is kind else self.astype(kind), dim, kind)
            return out

        return accumulated

    def logcumsumexp(self: Any, dim: int, out: Any) -> Any:
        if not self.shape or not self.size:
            return store(xp, out, self)
        x = self.astype(wide(self.dtype))
        if x.dtype.kind != "c":
            return store(xp, out, xp.logaddexp.accumulate(x, dim))
        rows = xp.moveaxis(x, dim, 0)
        for i in range(1, len(rows)):  # log(exp(a) + exp(b)) = b + log(1 + exp(a - b)), with b the larger
            swap = rows[i - 1].real > rows[i].real
            larger, smaller = xp.where(swap, rows[i - 1], rows[i]), xp.where(swap, rows[i], rows[i - 1])
            rows[i] = larger + xp.log1p(xp.exp(smaller - larger))
        return store(xp, out, xp.moveaxis(rows, 0, dim))

    def extreme(ufunc: Any) -> Any:
        def kernel(self: Any, dim: int, values: Any, indices: Any) -> None:
            if not self.shape or not self.size:
                return store_single(xp, self, values, indices)
            found = ufunc.accumulate(self, dim)
            # Of equal elements the newest is meant; nan follows only upon nan.
            taken = (self == found) | (self != self)
            place = xp.arange(self.shape[dim]).reshape((-1,) + (1,) * (self.ndim - dim % self.ndim - 1))
            store(xp, values, found)
            store(xp, indices, xp.maximum.accumulate(xp.where(taken, place, 0), dim))

        return kernel

    # fmt: off
    return {
        "cumsum.out":       running(xp.add, "cumsum"),
        "cumprod.out":      running(xp.multiply, "cumprod"),
        "logcumsumexp.out": Row(logcumsumexp),
        "cummax.out":       Row(extreme(xp.maximum)),
        "cummin.out":       Row(extreme(xp.minimum)),
    }
    # fmt: on


def picking(xp: Any) -> Table:
    """One element along a dim, and its index. Among equal elements the first one wins; for `mode` the last."""

    def missing(self: Any) -> Any:
        return self != self

    def picked(choose: Any) -> Any:
        """A kernel from a function that gives the positions along the last dim of an array with at least one."""

        def kernel(self: Any, *rest: Any) -> None:
            *given, dim, keepdim, values, indices = rest
            if not self.shape:
                return store_single(xp, self, values, indices)
            last = xp.moveaxis(self, dim, -1)
            at = choose(last, *given)[..., None] if last.size else xp.zeros((*last.shape[:-1], 1), xp.int64)
            found = xp.take_along_axis(last, at, -1) if last.size else xp.zeros(at.shape, self.dtype)
            for out, value in ((values, found), (indices, at)):
                store(xp, out, xp.moveaxis(value, -1, dim) if keepdim else value[..., 0])

        return kernel

    def first_equal(x: Any, value: Any) -> Any:
        return xp.argmax((x == value) | (missing(x) & missing(value)), -1)

    def smallest(x: Any, k: int) -> Any:
        """The k-th smallest, counted from 0; nan is above all numbers."""
        # Two-byte floats of kind "V" are ordered as the float32 that they are.
        wide = widen(xp, x)
        return first_equal(wide, xp.partition(wide, k, -1)[..., k : k + 1])

    def kthvalue(x: Any, k: int) -> Any:
        return smallest(x, k - 1)

    def median(x: Any) -> Any:
        at = smallest(x, (x.shape[-1] - 1) // 2)
        gaps = missing(x)
        return xp.where(xp.any(gaps, -1), xp.argmax(gaps, -1), at) if x.dtype.kind in "fV" else at

    def nanmedian(x: Any) -> Any:
        if x.dtype.kind not in "fV":
            return median(x)
        ordered = xp.sort(widen(xp, x), -1)
        numbers = xp.add.reduce(~missing(ordered), -1, keepdims=True)
        middle = xp.maximum(numbers - 1, 0) // 2
        return first_equal(widen(xp, x), xp.take_along_axis(ordered, middle, -1))

    def mode(x: Any) -> Any:
        wide = widen(xp, x)
        order = xp.argsort(wide, -1, kind="stable")
        ordered = xp.take_along_axis(wide, order, -1)
        place = xp.arange(x.shape[-1])
        begins = xp.concatenate([xp.ones_like(ordered[..., :1], bool), ordered[..., 1:] != ordered[..., :-1]], -1)
        run = place - xp.maximum.accumulate(xp.where(begins, place, 0), -1)
        return xp.take_along_axis(order, xp.argmax(run, -1)[..., None], -1)[..., 0]

    # fmt: off
    return {
        "median.dim_values":    Row(picked(median)),
        "nanmedian.dim_values": Row(picked(nanmedian)),
        "mode.values":          Row(picked(mode)),
        "kthvalue.values":      Row(picked(kthvalue)),
    }
    # fmt: on
