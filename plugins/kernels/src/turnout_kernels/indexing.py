"""Rows of operators that move elements: indexing, gathering, masks, reversal, triangles, copies, conversions.

An index out of range is found while elements are moved. The call then goes to the kernel below, which raises the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Move, Row, Sizes
from turnout_kernels.few import compiled
from turnout_kernels.layouts import MOVED_SIZES, row_major
from turnout_kernels.native import CODES, FEW, FLOATS, MAX_ARRAYS, buffer, parts_of, run, whole
from turnout_kernels.pointwise import SMALL, apply


def _movable(*arrays: Any) -> bool:
    """Whether all are contiguous, of one dtype, with elements of a size that C moves."""
    dtype = arrays[0].dtype
    return dtype.itemsize in MOVED_SIZES and all(a.dtype is dtype and whole(a) for a in arrays)


def is_index(index: Any) -> bool:
    """Whether the kernels read an index."""
    return bool(index.dtype == np.int64 and whole(index) and index.size)


def gather(self: Any, dim: int, index: Any, sparse_grad: bool, out: Any) -> Any:
    if not self.ndim or not self.size or index.size <= FEW or not _movable(self, out) or not is_index(index):
        return NotImplemented
    dim %= self.ndim
    if any(n != m for i, (n, m) in enumerate(zip(self.shape, index.shape, strict=True)) if i != dim):
        return NotImplemented
    parts = parts_of(index.size)
    wrong = np.zeros(parts, np.uint8)
    ints = (self.itemsize, self.shape[dim], prod(self.shape[dim + 1 :]), index.shape[dim])
    run("gather", (buffer(out), wrong), (index, buffer(self)), ints, parts=parts)
    return NotImplemented if wrong.any() else out


def _select(self: Any, index: Any, out: Any) -> Any:
    """out[k] = self[index[k]]"""
    parts = parts_of(out.size)
    wrong = np.zeros(parts, np.uint8)
    size = prod(self.shape[1:]) * self.itemsize
    run("select_rows", (buffer(out), wrong), (index, buffer(self)), (size, self.shape[0]), parts=parts)
    return NotImplemented if wrong.any() else out


def index_select(self: Any, dim: int, index: Any, out: Any) -> Any:
    if not self.ndim or dim % self.ndim or not self.size or out.size <= FEW or not _movable(self, out) or not is_index(index):
        return NotImplemented
    return _select(self, index, out)


def index(self: Any, indices: Any, out: Any) -> Any:
    if len(indices) != 1 or indices[0] is None or indices[0].dtype != np.int64 or not self.size or out.size <= FEW:
        return NotImplemented
    return _select(self, indices[0], out) if _movable(self, out) and is_index(indices[0]) else NotImplemented


_AT_ONCE = MAX_ARRAYS - 1  # inputs, beside the output


def cat(tensors: Sequence[Any], dim: int, out: Any) -> Any:
    if out.size <= FEW or not _movable(out, *tensors):
        return NotImplemented
    dim %= out.ndim
    rows, each = prod(out.shape[:dim]), prod(out.shape[dim + 1 :]) * out.itemsize
    pitch, at = out.shape[dim] * each, 0
    for first in range(0, len(tensors), _AT_ONCE):
        some = tensors[first : first + _AT_ONCE]
        sizes = [a.shape[dim] * each for a in some]
        width = sum(sizes)
        parts = parts_of(rows * width // out.itemsize)
        if width:
            run("join", (buffer(out),), tuple(map(buffer, some)), (rows, pitch, at, *sizes), parts=parts)
        at += width
    return out


def masked_select(self: Any, mask: Any) -> Any:
    if mask.dtype.char != "?" or self.shape != mask.shape or self.size <= FEW or not _movable(self):
        return NotImplemented
    if not whole(mask):
        return NotImplemented
    parts = parts_of(self.size)
    counts = np.empty(parts, np.int64)
    run("masked_count", (counts,), (mask,), parts=parts)
    starts = np.cumsum(counts) - counts
    made = np.empty(int(counts.sum()), self.dtype)
    if made.size:
        run("masked_take", (buffer(made),), (mask, buffer(self), starts), (self.itemsize,), parts=parts)
    return made


def nonzero(self: Any) -> Any:
    if self.dtype.char != "?" or self.size <= FEW or not whole(self):
        return NotImplemented
    parts = parts_of(self.size)
    counts = np.empty(parts, np.int64)
    run("masked_count", (counts,), (self,), parts=parts)
    made = np.empty((int(counts.sum()), self.ndim), np.int64)
    if made.size:
        run("coordinates", (made,), (self, np.cumsum(counts) - counts), parts=parts)
    return made


def flip(self: Any, dims: Sequence[int], out: Any) -> Any:
    if len(dims) != 1 or self.size <= FEW or not _movable(self, out):
        return NotImplemented
    dim = dims[0] % self.ndim
    run("flip", (buffer(out),), (buffer(self),), (self.itemsize, self.shape[dim], prod(self.shape[dim + 1 :])))
    return out


def triangle_of(*, upper: bool) -> Any:
    """tril or triu."""

    def kernel(self: Any, diagonal: int, out: Any) -> Any:
        if self.ndim < 2 or self.size <= FEW or not _movable(self, out) or abs(diagonal) >= 1 << 40:
            return NotImplemented
        run("triangle", (buffer(out),), (buffer(self),), (self.itemsize, *self.shape[-2:], diagonal, int(upper)))
        return out

    return kernel


# ---- copies and conversions

# Up to this many elements NumPy is as fast.
_FEW_TO_COPY = 1 << 16


def clone(self: Any, memory_format: Any) -> Any:
    """A row-major copy. Another layout, and dims of length 1, whose strides a copy keeps, are left to the kernel below."""
    if self.size <= _FEW_TO_COPY or self.itemsize not in MOVED_SIZES:
        return NotImplemented
    kept = memory_format in (None, "preserve_format") and self.flags.c_contiguous and 1 not in self.shape
    return row_major(self) if kept or memory_format == "contiguous_format" else NotImplemented


def to_copy(self: Any, dtype: Any, layout: Any, device: Any, pin_memory: Any, non_blocking: Any, memory_format: Any) -> Any:
    if dtype is None or device is not None or layout is not None or pin_memory or self.size <= SMALL:
        return NotImplemented
    if self.dtype.char not in FLOATS or 0 in self.strides or memory_format not in (None, "preserve_format"):
        return NotImplemented
    native = _native(dtype.name)
    if native is None or CODES[native.char] == CODES[self.dtype.char]:
        return NotImplemented
    return apply("copy", (self,), np.empty_like(self, native))


@cache
def _native(name: str) -> Any:
    """NumPy's dtype for a float dtype; None for any other one."""
    if name == "bfloat16":
        from ml_dtypes import bfloat16

        return np.dtype(bfloat16)
    return np.dtype(name) if name in ("float16", "float32", "float64") else None


# fmt: off
KERNELS: dict[str, Any] = {
    "cat.out":           Row(cat, quiet=True, program=Move.JOIN),
    "gather.out":        Row(gather, quiet=True, sizes=Sizes(FEW), program=compiled("gather")),
    "index_select.out":  Row(index_select, quiet=True, sizes=Sizes(FEW), program=compiled("select")),
    "index.Tensor_out":  Row(index, quiet=True, sizes=Sizes(FEW)),
    "masked_select":     Row(masked_select, sizes=Sizes(FEW)),
    "nonzero":           Row(nonzero, sizes=Sizes(FEW)),
    "flip.out":          Row(flip, quiet=True, sizes=Sizes(FEW), program=compiled("flip")),
    "tril.out":          Row(triangle_of(upper=False), quiet=True, sizes=Sizes(FEW), program=compiled("lower")),
    "triu.out":          Row(triangle_of(upper=True), quiet=True, sizes=Sizes(FEW), program=compiled("upper")),
    "clone":             Row(clone, sizes=Sizes(_FEW_TO_COPY)),
    "_to_copy":          Row(to_copy, sizes=Sizes(SMALL)),
}
# fmt: on
