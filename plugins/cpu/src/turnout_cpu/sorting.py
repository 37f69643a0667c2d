"""Sorting with NumPy's vectorised sorts, which are not stable and give no indices: keys that hold both do the rest.

The key of a float32 or int32 is an int64: above, the bits of the number in an order that is that of the numbers, below, its
index. Sorted, it gives the indices of a stable sort (1 million float32: 200 ms with all conversions, where a stable argsort takes
415 ms and an argsort 285 ms). Other dtypes take the argsort.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from turnout_arrays.indexing import along
from turnout_arrays.numbers import store, widen

# Up to this many integers, sorting is as fast as anything else.
_FEW = 256
# Up to this many elements, making keys takes longer than the sort.
_FEW_TO_PACK = 64
_NAN = np.int32(0x7FC00000)


def sort(self: Any, stable: Any, dim: int, descending: bool, values: Any, indices: Any) -> None:
    """The kernel of sort.values_stable. nan is greater than any number."""
    if not self.shape:
        store(np, values, self)
        store(np, indices, np.zeros((), indices.dtype))
        return
    x = widen(np, self)
    many = x.size > _FEW_TO_PACK and x.shape[dim] < 1 << 31
    packed = _keys(x, dim, descending) if many and x.dtype.char in "fi" else None
    if packed is not None:
        packed.sort(dim)
        packed &= 0xFFFFFFFF
        at = packed
    else:  # for few elements, a stable sort gives the same indices with fewer calls
        at = _order(x, dim, bool(stable) or not many, descending)
    store(np, values, self[along(np, at.shape, dim % self.ndim, at)])
    store(np, indices, at)


def unique(general: Any) -> Any:
    """The kernel of _unique2. Where the integers of a tensor lie close together, each of them sets a mark at its place."""

    def kernel(self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Any, Any, Any]:
        # The places of uint64 are no int64.
        if return_inverse or return_counts or self.dtype.kind not in "iu" or self.dtype.char in "LQ" or self.size < _FEW:
            return general(self, sorted, return_inverse, return_counts)
        flat = self.reshape(-1)
        least = int(np.minimum.reduce(flat))
        reach = int(np.maximum.reduce(flat)) - least + 1
        if reach > 4 * flat.size:
            return general(self, sorted, return_inverse, return_counts)
        marks = np.zeros(reach, np.bool_)
        marks[np.subtract(flat, least, dtype=np.int64)] = True
        found = marks.nonzero()[0]
        found += least
        return found.astype(self.dtype, copy=False), np.empty(0, np.int64), np.empty(0, np.int64)

    return kernel


def _keys(x: Any, dim: int, descending: bool) -> Any:
    if x.dtype.kind == "f":
        x = x + np.float32(0)  # one zero: -0.0 is equal to 0.0
        bits = x.view(np.int32)
        bits[np.isnan(x)] = _NAN  # one nan, whatever its sign
        bits ^= (bits >> 31) & np.int32(0x7FFFFFFF)  # the order of negative numbers, turned round
    else:
        bits = x
    keys = (~bits if descending else bits).astype(np.int64)
    keys <<= 32
    keys |= np.arange(x.shape[dim]).reshape((-1,) + (1,) * (x.ndim - dim % x.ndim - 1))
    return keys


def _order(x: Any, dim: int, stable: bool, descending: bool) -> Any:
    kind: Literal["stable"] | None = "stable" if stable or x.dtype.itemsize < 4 else None
    if not descending:
        return x.argsort(dim, kind)
    # Reversed twice, so that equal elements keep their order.
    return np.flip(x.shape[dim] - 1 - np.argsort(np.flip(x, dim), dim, kind), dim)
