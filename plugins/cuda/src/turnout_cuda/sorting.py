"""Sorting, and the first elements in order, of rows that fit into shared memory: values and indices in one launch."""

from __future__ import annotations

from typing import Any

from turnout_cuda.floats import Arrays, kind
from turnout_cuda.programs import Programs, name_of

Table = dict[str, Any]
_MOST = 2048  # elements of a row, as in the text
_THREADS = 512


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    arrays = Arrays(xp)

    def ordered(self: Any, dim: int, descending: bool, values: Any, indices: Any) -> Any:
        """The first elements along a dim, as many as the outputs have."""
        if kind(self, values) is None or not self.ndim or not values.size or self.shape[dim] > _MOST:
            return NotImplemented
        dim %= self.ndim
        is_last = dim == self.ndim - 1
        rows = arrays.packed(self if is_last else xp.moveaxis(self, dim, -1))
        length, count = self.shape[dim], values.shape[dim]
        shape, index = (*rows.shape[:-1], count), xp.dtype("int64")
        made = arrays.target(values, self.dtype) if is_last else xp.empty(shape, self.dtype)
        places = arrays.target(indices, index) if is_last else xp.empty(shape, index)
        padded = max(1 << (length - 1).bit_length(), 2)
        keep = min(1 << (count - 1).bit_length(), padded)
        threads = min(max(padded // 2, 32), _THREADS)
        args = (rows, made, places, length, padded, keep, count, int(descending))
        programs.start("sort_rows", name_of(self), (rows.size // length,), (threads,), args)
        for own, out in ((made, values), (places, indices)):
            arrays.deliver(own if is_last else xp.moveaxis(own, -1, dim), out)
        return None

    def sort(self: Any, stable: Any, dim: int, descending: bool, values: Any, indices: Any) -> Any:
        return ordered(self, dim, descending, values, indices)

    def topk(self: Any, k: int, dim: int, largest: bool, sorted: bool, values: Any, indices: Any) -> Any:
        return ordered(self, dim, largest, values, indices)

    return {"sort.values_stable": sort, "topk.values": topk}
