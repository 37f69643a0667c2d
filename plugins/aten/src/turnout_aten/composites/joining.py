"""Joining of tensors as rows, columns or blocks. Each function first adds the dims that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.errors import DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast_all, wrap_dim
from turnout_aten.shapes.promotion import result_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor


def atleast_1d(self: Tensor) -> Tensor:
    """At least 1 dim: a 0-dim tensor becomes a vector."""
    return self if self.array.shape else aten.reshape(self, (1,))


def atleast_2d(self: Tensor) -> Tensor:
    """At least 2 dims: a vector becomes a row."""
    if not self.shape:
        return aten.reshape(self, (1, 1))
    return self if self.ndim > 1 else aten.unsqueeze(self, 0)


def atleast_3d(self: Tensor) -> Tensor:
    """At least 3 dims: a vector becomes the middle dim, a matrix gets a last dim."""
    if not self.shape:
        return aten.reshape(self, (1, 1, 1))
    if self.ndim == 1:
        self = aten.unsqueeze(self, 0)
    return self if self.ndim > 2 else aten.unsqueeze(self, -1)


def atleast_1d_all(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Each."""
    return [atleast_1d(t) for t in tensors]


def atleast_2d_all(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Each."""
    return [atleast_2d(t) for t in tensors]


def atleast_3d_all(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Each."""
    return [atleast_3d(t) for t in tensors]


def broadcast_tensors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The tensors expanded to their common shape."""
    shape = broadcast_all([t.shape for t in tensors])
    return [aten.expand(t, shape) for t in tensors]


def _some(name: str, tensors: Sequence[Tensor]) -> None:
    if not tensors:
        raise ShapeError(texts.needs_a_tensor(name))


def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """cat."""
    return aten.cat(tensors, dim)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined side by side: along dim 1; vectors along dim 0."""
    if not tensors:
        _some("hstack", tensors)
    raised = tensors
    for tensor in tensors:  # no comprehension: a frame before Python 3.12
        if not tensor.array.shape:
            raised = atleast_1d_all(tensors)
            break
    return aten.cat(raised, 0 if len(raised[0].array.shape) == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined vertically: along dim 0, with vectors as rows."""
    _some("vstack", tensors)
    return concat(atleast_2d_all(tensors), 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined in depth: along dim 2."""
    _some("dstack", tensors)
    return concat(atleast_3d_all(tensors), 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined side by side, with vectors as columns."""
    _some("column_stack", tensors)
    return hstack([t if t.ndim > 1 else aten.reshape(t, (t.numel(), 1)) for t in tensors])


def chunk_cat(tensors: Sequence[Tensor], dim: int, num_chunks: int) -> Tensor:
    """Pad each tensor with zeros along `dim` to a multiple of `num_chunks`, split it into that many parts, and join all parts i.

    The result has the shape (..., num_chunks, -1): the dims after `dim` are flattened.
    """
    _some("_chunk_cat", tensors)
    if num_chunks < 1:
        raise ShapeError(texts.not_positive("_chunk_cat", "num_chunks", num_chunks))
    first = tensors[0]
    d = wrap_dim(dim, first.ndim)
    parts = []
    for t in tensors:
        if t.numel() == 0 or t.ndim <= d:
            raise ShapeError(f"_chunk_cat: a tensor of shape {list(t.shape)} has no elements along dim {d}")
        if t.dtype is not first.dtype:
            raise DTypeError(texts.different_dtypes("_chunk_cat", first.dtype, t.dtype))
        if t.shape[:d] != first.shape[:d]:
            raise ShapeError(f"_chunk_cat: shapes {list(first.shape)} and {list(t.shape)} must be equal before dim {d}")
        missing = -t.shape[d] % num_chunks
        if missing:
            zeros = aten.new_zeros(t, (*t.shape[:d], missing, *t.shape[d + 1 :]))
            t = aten.cat([t, zeros], d)
        parts.append(aten.reshape(t, (*t.shape[:d], num_chunks, -1)))
    return concat(parts, d + 1)


def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """A block-diagonal matrix of the given matrices, with zeros elsewhere. Vectors are rows; no matrices make an empty row."""
    if not tensors:
        return aten.zeros((1, 0))
    for i, t in enumerate(tensors):
        if t.ndim > 2:
            raise ShapeError(f"block_diag: tensors[{i}] must have at most 2 dimensions, got shape {list(t.shape)}")
    dtype = result_type(*[aten.new_empty(t, (1,)) for t in tensors])
    blocks = [aten.to__dtype(t, dtype) for t in atleast_2d_all(tensors)]
    width = sum([b.shape[1] for b in blocks])
    rows = []
    at = 0
    for b in blocks:
        height, own = b.shape
        rows.append(aten.cat([aten.new_zeros(b, (height, at)), b, aten.new_zeros(b, (height, width - at - own))], 1))
        at += own
    return concat(rows, 0)
