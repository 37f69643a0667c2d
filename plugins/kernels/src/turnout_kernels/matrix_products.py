"""Rows of matrix products and of gradients of views: rows with rows, batches of small matrices shared among threads, or one call
of NumPy in place of several operators."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Row, Sizes, Steps
from turnout_kernels import native
from turnout_kernels.native import code, run

# Elements of a second matrix that BLAS rearranges in no time.
FEW_WEIGHTS = 1 << 13
# The most rows of a first matrix: for more of them, BLAS does not mind to rearrange the second one.
MANY_ROWS = 64
# Elements of a row that are worth the sums of lanes at its end; bytes of one, of which a few stay in the first-level cache.
SHORT, LONG = 128, 16384
# Products of numbers in a part: 40 us.
PART = 1 << 21
# The least extents of matrices of a batch for which a tile is as fast as BLAS; the most products that are added up; the most
# bytes of two matrices and their product, which stay in the second-level cache.
LEAST_OF_BATCH, DEEPEST, MOST_BYTES = 32, 512, 1 << 20
# Rows of a tile, as in native/batches.h, and bytes of a register of its columns, as in native/module.c
_ROWS, _BYTES = 6, 64


def linalg_matmul(self: Any, other: Any) -> Any:
    """Products of floats. Batches are broadcast in place; where only self has them, its rows make one large product.

    `matmul` itself stays composed: for two matrices, the usual call, `mm` is faster than a kernel that may leave the call.
    """
    if self.dtype.char not in "fd" or self.dtype is not other.dtype or not self.ndim or not other.ndim:
        return NotImplemented
    if self.shape[-1] != other.shape[-2 if other.ndim > 1 else 0]:
        return NotImplemented
    if self.ndim > 2 and other.ndim == 2 and self.flags.c_contiguous:
        flat = np.matmul(self.reshape(prod(self.shape[:-1]), self.shape[-1]), other)
        return flat.reshape(*self.shape[:-1], other.shape[1])
    for length, other_length in zip(self.shape[-3::-1], other.shape[-3::-1], strict=False):
        if length != other_length and 1 not in (length, other_length):
            return NotImplemented
    made = np.matmul(self, other)
    return made if made.flags.c_contiguous else np.ascontiguousarray(made)  # NumPy lays batches out as those of self are


def mm(self: Any, mat2: Any, out: Any = None) -> Any:
    return rows_with_rows(self, mat2, None, out)


def addmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any, out: Any = None) -> Any:
    return rows_with_rows(mat1, mat2, self, out) if beta == 1 and alpha == 1 else NotImplemented


def rows_with_rows(first: Any, second: Any, added: Any, out: Any) -> Any:
    """The product of a matrix of few rows with a transposed one, plus what is added. NotImplemented where BLAS is as fast."""
    if second.size <= FEW_WEIGHTS or native.instructions() != "avx512":  # with fewer registers BLAS is faster
        return NotImplemented
    (rows, depth), size = first.shape, first.itemsize
    if not 1 < rows <= MANY_ROWS or depth < SHORT or depth * size > LONG or second.shape[0] != depth:
        return NotImplemented
    if first.dtype.char not in "fd" or second.dtype is not first.dtype or not (first.flags.aligned and second.flags.aligned):
        return NotImplemented
    if first.strides[1] != size or second.strides[0] != size:
        return NotImplemented
    shape = rows, second.shape[1]
    if added is not None:
        own = added.shape
        if added.dtype is not first.dtype or len(own) > 2 or not added.flags.aligned:
            return NotImplemented
        for length, whole in zip(own[::-1], shape[::-1], strict=False):
            if length not in (1, whole):
                return NotImplemented
    made = out
    if out is None or out.dtype is not first.dtype or not native.whole(out):
        made = np.empty(shape, first.dtype)
    parts = max(1, min(rows * second.size // PART, 64))
    inputs = (first, second.T) if added is None else (first, second.T, added)
    run("matrix_products", (made,), inputs, (code(first), added is not None), parts=parts)
    if out is not None and made is not out:
        np.copyto(out, made, "unsafe")
        return out
    return made


def bmm(self: Any, mat2: Any, out: Any = None) -> Any:
    """Each thread multiplies whole matrices. BLAS shares each product among its own threads, which wait for each other in each:
    with another program on the same processors, a call took ten times as long."""
    if not _tiles(self, mat2):
        return NotImplemented
    shape = (*self.shape[:2], mat2.shape[2])
    fits = out is not None and out.dtype is self.dtype and out.shape == shape and native.whole(out)
    apart = fits and not (np.may_share_memory(out, self) or np.may_share_memory(out, mat2))
    made = out if apart else np.empty(shape, self.dtype)
    parts = min(len(self), native.MOST_PARTS)
    failed = np.zeros(parts, np.uint8)
    run("batches", (made, failed), (self, mat2), (code(self),), parts=parts)
    if failed.any():
        return NotImplemented
    if out is not None and made is not out:
        np.copyto(out, made, "unsafe")
        return out
    return made


def multiply(first: Any, second: Any, out: Any) -> None:
    """The product of matrices or of batches, by tiles where they are as fast as BLAS."""
    if bmm(first, second, out) is NotImplemented:
        np.matmul(first, second, out)


def _tiles(first: Any, second: Any) -> bool:
    """Whether these are batches of float matrices for which tiles are as fast as BLAS on one thread."""
    if first.ndim != 3 or second.ndim != 3:
        return False
    (batch, rows, depth), size = first.shape, first.itemsize
    if native.instructions() != "avx512" or first.dtype.char not in "fd" or second.dtype is not first.dtype or batch < 4:
        return False
    columns = second.shape[2]
    if second.shape[:2] != (batch, depth) or not LEAST_OF_BATCH <= depth <= DEEPEST or min(rows, columns) < LEAST_OF_BATCH:
        return False
    if (
        not (first.flags.aligned and second.flags.aligned)
        or (rows * depth + depth * columns + rows * columns) * size > MOST_BYTES
    ):
        return False
    if size == 8 and first.strides[2] != size:  # a tile would use too little of each line of the cache
        return False
    # What a tile computes beside the product, at the ends of rows and columns, is an eighth at most.
    computed = -(-rows // _ROWS) * _ROWS * -(-columns * size // _BYTES) * _BYTES
    return 7 * computed <= 8 * rows * columns * size


def _place(ndim: int, dim: int, index: Any) -> tuple[Any, ...] | None:
    """The index of one dim; None where the dim is out of range."""
    return (*(slice(None),) * (dim % ndim), index) if -ndim <= dim < ndim else None


def slice_backward(grad_output: Any, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int) -> Any:
    place = _place(len(input_sizes), dim, slice(start, end, step))
    return NotImplemented if place is None or step < 1 else _scattered(grad_output, input_sizes, place)


def select_backward(grad_output: Any, input_sizes: Sequence[int], dim: int, index: int) -> Any:
    place = _place(len(input_sizes), dim, index)
    if place is None or not -input_sizes[dim] <= index < input_sizes[dim]:
        return NotImplemented
    return _scattered(grad_output, input_sizes, place)


def _scattered(grad: Any, shape: Sequence[int], place: tuple[Any, ...]) -> Any:
    made = np.zeros(shape, grad.dtype)
    into = made[place]
    if into.shape != grad.shape:
        return NotImplemented
    made[place] = grad
    return made


# fmt: off
KERNELS: dict[str, Any] = {
    "mm.out": Row(mm, sizes=Sizes(FEW_WEIGHTS, by="mat2")),
    "addmm.out": Row(addmm, sizes=Sizes(FEW_WEIGHTS, by="mat2")),
    "bmm.out": Row(bmm, sizes=Sizes(FEW_WEIGHTS, by="mat2")),
    "linalg_matmul": Row(linalg_matmul, program=Steps(((np.matmul, "self", "other"),))),
    "slice_backward": Row(slice_backward, quiet=True),
    "select_backward": Row(select_backward, quiet=True),
}
# fmt: on
