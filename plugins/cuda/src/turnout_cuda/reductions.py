"""Extremes with their indices, variances and norms: one launch in place of several that read or write all elements.

The dims that are reduced must be neighbours. Where few long lines are left, their blocks would leave most of a GPU idle: those of
norms are cut into parts, whose results a second launch joins; the others stay with the shared rows.
"""

from __future__ import annotations

from math import inf, prod
from typing import Any

from turnout_aten.shapes.extents import degrees_of_freedom, dims_of
from turnout_cuda.floats import Arrays, computed, kind
from turnout_cuda.programs import Programs, name_of

Table = dict[str, Any]
_COLUMN_BLOCK = (32, 8)  # as in the text: columns, and threads for each
FEW_ROWS, LONG_ROW = 64, 1 << 15
FEW_COLUMNS, LONG_COLUMN = 1 << 10, 1 << 12
_PARTS = 1024  # parts of all rows together
_LARGEST, _SUM, _ROOT = range(3)
_ORDERS = {1: _SUM, 2: _ROOT, inf: _LARGEST}

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


def is_idle(outer: int, length: int, inner: int) -> bool:
    """Whether the kernels would keep only a small part of a GPU busy, for long."""
    if inner == 1:
        return outer < FEW_ROWS and length > LONG_ROW
    return outer * inner < FEW_COLUMNS and length > LONG_COLUMN


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
            programs.start(f"{name}_columns", dtype, (-(-columns // _COLUMN_BLOCK[0]),), _COLUMN_BLOCK, args)

    def served(self: Any, dim: Any) -> Lines | None:
        found = lines(self, dim) if kind(self) else None
        return None if found is None or is_idle(*found) else found

    def both(name: str, sign: int) -> Any:
        def kernel(self: Any, dim: int, keepdim: bool, values: Any, indices: Any) -> Any:
            found = served(self, dim)
            if found is None:
                return NotImplemented
            made, places = arrays.target(values, self.dtype), arrays.target(indices, xp.dtype("int64"))
            start("extreme", name_of(self), (arrays.packed(self), made, places), found, (sign, 1))
            arrays.deliver(made, values)
            arrays.deliver(places, indices)
            return None

        kernel.__name__ = kernel.__qualname__ = name
        return kernel

    def where(name: str, sign: int) -> Any:
        def kernel(self: Any, dim: int | None, keepdim: bool, out: Any) -> Any:
            found = served(self, dim)
            if found is None:
                return NotImplemented
            x, places = arrays.packed(self), arrays.target(out, xp.dtype("int64"))
            start("extreme", name_of(self), (x, x, places), found, (sign, 0))
            return arrays.deliver(places, out)

        kernel.__name__ = kernel.__qualname__ = name
        return kernel

    def spread(name: str, *, root: bool) -> Any:
        def kernel(self: Any, dim: Any, correction: Any, keepdim: bool, out: Any) -> Any:
            found = served(self, dim)
            if found is None:
                return NotImplemented
            freedom = float(max(degrees_of_freedom(found[1], correction), 0))
            made = arrays.target(out, self.dtype)
            start("spread", name_of(self), (arrays.packed(self), made), found, (int(root), freedom))
            return arrays.deliver(made, out)

        kernel.__name__ = kernel.__qualname__ = name
        return kernel

    def vector_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
        found = lines(self, dim) if kind(self, out) and ord in _ORDERS else None
        if found is None:
            return NotImplemented
        (outer, length, inner), order, name = found, _ORDERS[ord], name_of(self)
        idle = is_idle(*found)
        if idle and inner > 1:
            return NotImplemented
        x, made = arrays.packed(self), arrays.target(out, self.dtype)
        if idle:
            count = -(-_PARTS // outer)
            parts = xp.empty((outer, count), computed(name))
            programs.start("norm_parts", name, (count, outer), (256,), (x, parts, length, order))
            programs.start("norm_total", name, (outer,), (256,), (parts, made, count, order))
        else:
            start("norm", name, (x, made), found, (order,))
        return arrays.deliver(made, out)

    return {
        "max.dim_max": both("max", 1),
        "min.dim_min": both("min", -1),
        "argmax.out": where("argmax", 1),
        "argmin.out": where("argmin", -1),
        "var.correction_out": spread("var", root=False),
        "std.correction_out": spread("std", root=True),
        "linalg_vector_norm.out": vector_norm,
    }
