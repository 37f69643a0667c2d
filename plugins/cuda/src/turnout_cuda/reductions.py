"""Sums, extremes, variances, norms and logarithms of sums: one launch over all elements.

The dims that are reduced must be neighbours. Where few long lines are left, their blocks would leave most of a GPU idle: those of
folds (sums, means, norms, extremes without indices) are cut into parts, whose results a second launch joins; the others stay with
the shared rows.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any

from turnout_aten.shapes.extents import degrees_of_freedom, dims_of
from turnout_aten.shapes.losses import MEAN, NONE
from turnout_cuda.floats import Arrays, computed, kind
from turnout_cuda.programs import Programs, name_of

Table = dict[str, Any]
COLUMN_BLOCK = (32, 8)  # as in the text: columns, and threads for each
FEW_ROWS, LONG_ROW = 64, 1 << 15
FEW_COLUMNS, LONG_COLUMN = 1 << 10, 1 << 12
_LONG_FOLD = 1 << 10  # a column that a second launch is worth
_BLOCKS, _PARTS = 1 << 10, 1 << 11  # blocks that keep a GPU busy, and those of all lines together that are cut
_THREADS, _LEAST = 256, 16  # of a block with a part of a line, and the elements of each of its threads
_LARGEST, _SMALLEST, _LARGEST_SIZE, _SUM, _SUM_OF_SIZES, _SUM_OF_SQUARES, _ROOT = range(7)
_ORDERS = {1: _SUM_OF_SIZES, 2: _ROOT, inf: _LARGEST_SIZE}

Lines = tuple[int, int, int]


def lines(self: Any, dim: Any) -> Lines | None:
    """(outer, length, inner) for neighbouring dims, all for None or []; None for other dims, and where there are no elements."""
    if not self.ndim or not self.size:
        return None
    dims = dims_of(self.ndim, dim)
    first, last = dims[0], dims[-1] + 1
    if any(i not in dims and self.shape[i] != 1 for i in range(first, last)):
        return None
    return prod(self.shape[:first]), prod(self.shape[first:last]), prod(self.shape[last:])


def laid(self: Any, dim: Any) -> tuple[Any, Lines | None]:
    """The array with its dims in the order in which they lie in memory, and its lines, if those that are left keep their order;
    else the array itself. An array that repeats is left to CuPy: a copy could be larger than the memory."""
    if self.flags.c_contiguous:
        return self, lines(self, dim)
    if 0 in self.strides:
        return self, None
    order = sorted(range(self.ndim), key=lambda d: -self.strides[d])
    dims = dims_of(self.ndim, dim)
    left = [d for d in order if d not in dims]
    moved = self.transpose(order)
    if left != sorted(left) or not moved.flags.c_contiguous:
        return self, lines(self, dim)
    return moved, lines(moved, [order.index(d) for d in dims])


def is_idle(outer: int, length: int, inner: int) -> bool:
    """Whether the kernels would keep only a small part of a GPU busy, for long."""
    if inner == 1:
        return outer < FEW_ROWS and length > LONG_ROW
    return outer * inner < FEW_COLUMNS and length > LONG_COLUMN


def parts_of(outer: int, length: int, inner: int) -> int:
    """Into how many parts each line of a fold is cut; 1 where one launch is as good."""
    width, steps = COLUMN_BLOCK
    blocks, long, each = (outer, LONG_ROW, _THREADS) if inner == 1 else (-(-outer * inner // width), _LONG_FOLD, steps)
    return min(-(-_PARTS // blocks), -(-length // (each * _LEAST))) if blocks < _BLOCKS and length > long else 1


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    arrays = Arrays(xp)

    def start(name: str, dtype: str, given: tuple[Any, ...], found: Lines, rest: tuple[Any, ...]) -> None:
        """Start the kernel for rows or for columns."""
        outer, length, inner = found
        if inner == 1:
            programs.over_rows(f"{name}_rows", dtype, outer, length, (*given, outer, length, *rest))
        else:
            columns = outer * inner
            args = (*given, columns, length, inner, *rest)
            programs.start(f"{name}_columns", dtype, (-(-columns // COLUMN_BLOCK[0]),), COLUMN_BLOCK, args)

    def served(self: Any, dim: Any) -> Lines | None:
        found = lines(self, dim) if kind(self) else None
        return None if found is None or is_idle(*found) else found

    def both(sign: int) -> Any:
        def kernel(self: Any, dim: int, keepdim: bool, values: Any, indices: Any) -> Any:
            found = served(self, dim)
            if found is None:
                return NotImplemented
            made, places = arrays.target(values, self.dtype), arrays.target(indices, xp.dtype("int64"))
            start("extreme", name_of(self), (arrays.packed(self), made, places), found, (sign, 1))
            arrays.deliver(made, values)
            arrays.deliver(places, indices)
            return None

        return kernel

    def where(sign: int) -> Any:
        def kernel(self: Any, dim: int | None, keepdim: bool, out: Any) -> Any:
            found = served(self, dim)
            if found is None:
                return NotImplemented
            x, places = arrays.packed(self), arrays.target(out, xp.dtype("int64"))
            start("extreme", name_of(self), (x, x, places), found, (sign, 0))
            return arrays.deliver(places, out)

        return kernel

    def spread(*, root: bool) -> Any:
        def kernel(self: Any, dim: Any, correction: Any, keepdim: bool, out: Any) -> Any:
            found = served(self, dim)
            if found is None:
                return NotImplemented
            freedom = float(max(degrees_of_freedom(found[1], correction), 0))
            made = arrays.target(out, self.dtype)
            start("spread", name_of(self), (arrays.packed(self), made), found, (int(root), freedom))
            return arrays.deliver(made, out)

        return kernel

    def fold(self: Any, found: Lines, order: int, out: Any, divisor: int = 1) -> Any:
        """Start the kernel of a fold, or those of parts and of their total."""
        (outer, length, inner), name, count = found, name_of(self), parts_of(*found)
        x, made = arrays.packed(self), arrays.target(out, self.dtype)
        if count == 1:
            start("fold", name, (x, made), found, (order, float(divisor)))
            return arrays.deliver(made, out)
        parts = xp.empty((outer * inner, count), computed(name))
        if inner == 1:
            programs.start("fold_parts_of_rows", name, (count, outer), (_THREADS,), (x, parts, length, order))
        else:
            grid = (-(-outer * inner // COLUMN_BLOCK[0]), count)
            programs.start("fold_parts_of_columns", name, grid, COLUMN_BLOCK, (x, parts, outer * inner, length, inner, order))
        programs.over_groups("fold_total", name, outer * inner, count, (parts, made, count, order, float(divisor)))
        return arrays.deliver(made, out)

    def summed(self: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
        x, found = laid(self, dim) if kind(self, out) else (self, None)
        return NotImplemented if found is None else fold(x, found, _SUM, out)

    def mean(self: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
        x, found = laid(self, dim) if kind(self, out) else (self, None)
        return NotImplemented if found is None else fold(x, found, _SUM, out, found[1])

    def extreme(order: int) -> Any:
        def kernel(self: Any, dim: Any, keepdim: bool, out: Any) -> Any:
            x, found = laid(self, dim) if kind(self, out) else (self, None)
            return NotImplemented if found is None else fold(x, found, order, out)

        return kernel

    def vector_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
        found = lines(self, dim) if kind(self, out) and ord in _ORDERS else None
        return NotImplemented if found is None else fold(self, found, _ORDERS[ord], out)

    def sum_all(self: Any, dtype: Any, out: Any) -> Any:
        return summed(self, None, False, dtype, out)

    def mean_all(self: Any, dtype: Any, out: Any) -> Any:
        return mean(self, None, False, dtype, out)

    amax, amin = extreme(_LARGEST), extreme(_SMALLEST)

    def max_all(self: Any, out: Any) -> Any:
        return amax(self, None, False, out)

    def min_all(self: Any, out: Any) -> Any:
        return amin(self, None, False, out)

    def logsumexp(self: Any, dim: Any, keepdim: bool) -> Any:
        if not self.ndim or any(not -self.ndim <= d < self.ndim for d in dim):
            return NotImplemented
        found, dims = served(self, dim), dims_of(self.ndim, dim)
        if found is None or len({*dims}) < len(dims):
            return NotImplemented
        shape = [1 if i in dims else n for i, n in enumerate(self.shape) if keepdim or i not in dims]
        made = xp.empty(tuple(shape), self.dtype)
        start("log_of_sum", name_of(self), (arrays.packed(self), made), found, ())
        return made

    def mse_loss(self: Any, target: Any, reduction: int, out: Any) -> Any:
        if reduction == NONE or not self.size or self.shape != target.shape or kind(self, target, out) is None:
            return NotImplemented
        length, name, made = self.size, name_of(self), arrays.target(out, self.dtype)
        count = parts_of(1, length, 1)
        divisor = float(length if reduction == MEAN else 1)
        parts = made if count == 1 and name == computed(name) else xp.empty(count, computed(name))
        given = (arrays.packed(self), arrays.packed(target), made, parts, length, divisor)
        programs.start("squared_distance", name, (count,), (_THREADS,), given)
        if count > 1:
            programs.over_groups("fold_total", name, 1, count, (parts, made, count, _SUM_OF_SQUARES, divisor))
        return arrays.deliver(made, out)

    return {
        "max.dim_max": both(1),
        "min.dim_min": both(-1),
        "argmax.out": where(1),
        "argmin.out": where(-1),
        "var.correction_out": spread(root=False),
        "std.correction_out": spread(root=True),
        "linalg_vector_norm.out": vector_norm,
        "sum.out": sum_all,
        "sum.IntList_out": summed,
        "mean.dtype_out": mean_all,
        "mean.out": mean,
        "amax.out": amax,
        "amin.out": amin,
        "max.unary_out": max_all,
        "min.unary_out": min_all,
        "logsumexp": logsumexp,
        "mse_loss.out": mse_loss,
    }
