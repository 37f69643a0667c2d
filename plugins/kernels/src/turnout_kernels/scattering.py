"""Rows of operators that add at indices: contiguous float32 and float64. Two-byte floats come as copies.

An index out of range is found while elements are added. The call then goes to the kernel below, which raises the error.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Move, Row
from turnout_kernels.indexing import is_index
from turnout_kernels.layouts import any_floats, deliver, packed, width_of
from turnout_kernels.native import FEW, FLOATS, GRAIN, code, parts_of, plain, run, whole


def _start(self: Any, out: Any) -> Any:
    """What an output of sums begins as: `self` if it is contiguous, one element if all are the same one in memory, such as
    expanded zeros, else None."""
    if self.dtype is not out.dtype or whole(self):
        return self if self.dtype is out.dtype else None
    if any(s and n > 1 for s, n in zip(self.strides, self.shape, strict=True)):
        return None
    first = self[(slice(1),) * self.ndim].reshape(1)
    return first if whole(first) else None


def _summed(source: Any, out: Any) -> bool:
    """Whether the kernels of sums write into `out` and `source` has its dtype. The source may lie anyhow, and is then copied."""
    return source.dtype is out.dtype and plain(out)


def scatter_add(self: Any, dim: int, index: Any, src: Any, out: Any) -> Any:
    if not self.ndim or not self.size or index.size <= FEW or not _summed(src, out) or not is_index(index):
        return NotImplemented
    dim %= self.ndim
    outside = [i for i in range(self.ndim) if i != dim]
    if src.shape != index.shape or any(self.shape[i] != index.shape[i] for i in outside) or out is self:
        return NotImplemented
    start = _start(self, out)
    if start is None:
        return NotImplemented
    parts = parts_of(max(index.size, self.size))
    wrong = np.zeros(parts, np.uint8)
    ints = (code(out), self.shape[dim], prod(self.shape[dim + 1 :]), index.shape[dim])
    run("add_at", (out, wrong), (index, packed(src, out.dtype.char), start), ints, parts=parts)
    return NotImplemented if wrong.any() else out


# Rows of fewer elements are added by one part: sorting them would cost more than adding them.
_NARROW = 8
# Elements that a part adds at most, where many rows are added to few; it then has some of the columns.
_MOST = 4 * GRAIN


def _add(start: Any, index: Any, source: Any, factor: float, out: Any) -> Any:
    """out[index[k]] += factor source[k], in the order of k, for an output that begins as `start`.

    Stretches of rows of the output are parts, so that what is added to is in the cache; the index is sorted by them first.
    """
    if index.dtype != np.int64 or not whole(index):
        return NotImplemented
    rows, width = out.shape[0], prod(out.shape[1:])
    high = rows if width < _NARROW else GRAIN // width
    shift = max(high, rows >> 10, 1).bit_length() - (width >= _NARROW)
    order, begins, wrong = np.empty(index.size, np.int64), np.empty((-(-rows >> shift)) + 1, np.int64), np.zeros(1, np.uint8)
    run("by_stretches", (order, begins, wrong), (index,), (rows, shift), parts=1)
    if wrong.any():
        return NotImplemented
    busiest = int((begins[1:] - begins[:-1]).max()) * width
    blocks = max(1, min(-(-busiest // _MOST), width // 64))
    ints = (code(out), rows, width, shift, blocks)
    source = packed(source, out.dtype.char)
    run("add_rows_at", (out,), (index, order, begins, source, start), ints, (factor,), parts=(begins.size - 1) * blocks)
    return out


def index_add(self: Any, dim: int, index: Any, source: Any, alpha: Any, out: Any) -> Any:
    if self.ndim < 2 or dim % self.ndim or source.size <= FEW or not _summed(source, out) or out is self:
        return NotImplemented
    start = _start(self, out)
    if start is None or alpha.__class__ not in (int, float) or index.ndim != 1 or not index.size or not out.size:
        return NotImplemented
    return _add(start, index, source, float(alpha), out)


def index_put(self: Any, indices: Any, values: Any, accumulate: bool, out: Any) -> Any:
    if not accumulate or len(indices) != 1 or indices[0] is None or self.ndim < 2 or out is self:
        return NotImplemented
    index = indices[0]
    if values.shape != (*index.shape, *self.shape[1:]) or values.size <= FEW or not _summed(values, out):
        return NotImplemented
    start = _start(self, out)
    return NotImplemented if start is None or not out.size else _add(start, index, values, 1.0, out)


def embedding_dense_backward(grad_output: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    if padding_idx >= 0 or scale_grad_by_freq or grad_output.size <= FEW or grad_output.dtype.char not in FLOATS:
        return NotImplemented
    if grad_output.shape[:-1] != indices.shape or not num_weights:
        return NotImplemented
    char, shape = width_of(grad_output), (num_weights, grad_output.shape[-1])
    made = _add(np.zeros(1, char), indices, packed(grad_output, char), 1.0, np.empty(shape, char))
    if made is NotImplemented or grad_output.dtype is made.dtype:
        return made
    return deliver(made, np.empty(shape, grad_output.dtype))


# fmt: off
KERNELS: dict[str, Any] = {
    "scatter_add.out":          any_floats(scatter_add),
    "index_add.out":            any_floats(index_add),
    "index_put.out":            Row(any_floats(index_put), program=Move.PUT),
    "embedding_dense_backward": embedding_dense_backward,
}
# fmt: on
