"""Embeddings: rows of a table by index; sums, means and maxima of bags of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import FLOAT, float32, int32, int64
from turnout.errors import ArgumentError, DimError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.dtypes import WIDE

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor

SUM, MEAN, MAX = 0, 1, 2


# differs from torch: `sparse=True` of `embedding` and `embedding_bag` has no effect, because all gradients are dense.


def _check(name: str, weight: Tensor, indices: Tensor) -> None:
    if weight.ndim != 2:
        raise ShapeError(f"{name}: 'weight' must have 2 dimensions, got shape {list(weight.shape)}")
    if indices.dtype not in (int64, int32):
        raise DTypeError(f"{name}: indices must be int64 or int32, got {indices.dtype.name}")


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """The rows of weight [n, d] at the indices. Row `padding_idx` gets no gradient."""
    _check("embedding", weight, indices)
    shape = indices.array.shape
    if len(shape) == 1:
        return aten.index_select(weight, 0, indices)
    rows = aten.index_select(weight, 0, aten.reshape(indices, (-1,)))
    return aten.reshape(rows, (*shape, weight.array.shape[1]))


def embedding_dense_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The sum of the gradients of each row; with `scale_grad_by_freq`, their mean."""
    width = grad_output.shape[-1]
    flat = aten.reshape(indices, (-1,))
    grad = aten.reshape(grad_output, (indices.numel(), width))
    if padding_idx >= 0:
        grad = aten.masked_fill__Scalar(grad, aten.unsqueeze(aten.eq__Scalar(flat, padding_idx), 1), 0)
    if scale_grad_by_freq:
        ones = aten.new_ones(grad, (indices.numel(),))
        counts = aten.index_add(aten.new_zeros(grad, (num_weights,)), 0, flat, ones)
        grad = aten.div__Tensor(grad, aten.unsqueeze(aten.index_select(counts, 0, flat), 1))
        grad = aten.to__dtype(grad, grad_output.dtype)
    return aten.index_add(aten.new_zeros(grad, (num_weights, width)), 0, flat, grad)


def embedding_renorm(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """The table with the selected rows scaled down to `max_norm` where their norm is larger."""
    _check("embedding_renorm", self, indices)
    flat = aten.reshape(indices, (-1,))
    named = aten.index_add(aten.new_zeros(self, (self.shape[0],)), 0, flat, aten.new_ones(self, (indices.numel(),)))
    norms = aten.linalg_vector_norm(self, norm_type, (1,), True)
    large = aten.logical_and(aten.unsqueeze(aten.gt__Scalar(named, 0), 1), aten.gt__Scalar(norms, max_norm))
    factor = aten.mul__Scalar(aten.reciprocal(aten.add__Scalar(norms, 1e-7)), max_norm)
    return aten.where__self(large, aten.mul__Tensor(self, factor), self)


def embedding_renorm_(self: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """embedding_renorm, in place."""
    aten.copy_(self, embedding_renorm(aten.clone(self), indices, max_norm, norm_type))
    return self


# ---- bags


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = SUM,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """_embedding_bag without padding."""
    return inner_embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset
    )


def embedding_bag_padding_idx(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
    per_sample_weights: Tensor | None, include_last_offset: bool, padding_idx: int | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """embedding_bag that ignores one row; a negative `padding_idx` counts from the end."""
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise ArgumentError(f"embedding_bag: padding_idx must be one of {weight.shape[0]} rows, got {padding_idx}")
    padding = -1 if padding_idx is None else padding_idx % weight.shape[0]
    return inner_embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding
    )


def inner_embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = SUM,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """(result [bags, d], bag of each index, size of each bag, index of each largest element). Modes: 0 sum, 1 mean, 2 max.

    A bag starts at its offset and ends where the next bag starts. An empty bag gives zeros.
    """
    _check("embedding_bag", weight, indices)
    _check_bags(indices, offsets, mode, per_sample_weights, include_last_offset)
    n = indices.numel()
    bags = offsets.shape[0] - (1 if include_last_offset else 0)
    starts = aten.to__dtype(aten.slice__Tensor(offsets, 0, 0, bags, 1), int64)
    counted = aten.ne__Scalar(indices, padding_idx) if padding_idx >= 0 else None
    ones = aten.ones_like(indices, dtype=int64) if counted is None else aten.to__dtype(counted, int64)
    try:
        marks = aten.index_add(aten.new_zeros(starts, (n + 1,)), 0, starts, aten.ones_like(starts))
        bag = aten.sub__Scalar(aten.slice__Tensor(aten.cumsum(marks, 0), 0, 0, n, 1), 1)
        sizes = aten.index_add(aten.new_zeros(starts, (bags,)), 0, bag, ones)
    except IndexError:
        raise DimError(f"embedding_bag: the first offset must be 0 and none greater than {n}, the number of indices") from None
    rows = aten.embedding(weight, indices, padding_idx, scale_grad_by_freq)
    if mode == MAX:
        made, largest = _largest(rows, indices, starts, bag, counted)
        return made, bag, sizes, largest
    computed = WIDE[rows.dtype] if rows.dtype.category >= FLOAT else rows.dtype
    rows = aten.to__dtype(rows, computed)
    if per_sample_weights is not None:
        rows = aten.mul__Tensor(rows, aten.unsqueeze(aten.to__dtype(per_sample_weights, computed), 1))
    if counted is not None:
        rows = aten.masked_fill__Scalar(rows, aten.logical_not(aten.unsqueeze(counted, 1)), 0)
    made = aten.index_add(aten.new_zeros(rows, (bags, weight.shape[1])), 0, bag, rows)
    if mode == MEAN:
        made = aten.div__Tensor(made, aten.unsqueeze(aten.clamp(sizes, 1), 1))
        return aten.to__dtype(made, weight.dtype), bag, sizes, aten.clone(sizes)
    # As in torch, outputs that a sum does not need stay empty.
    quick = padding_idx < 0 and computed is float32
    told = aten.new_empty(bag, (0,)) if quick else bag
    return aten.to__dtype(made, weight.dtype), told, aten.zeros_like(starts), aten.zeros_like(starts)


def _check_bags(
    indices: Tensor, offsets: Tensor, mode: int, per_sample_weights: Tensor | None, include_last_offset: bool
) -> None:
    if indices.ndim != 1 or offsets.ndim != 1:
        raise ShapeError(
            f"embedding_bag: indices and offsets must have one dimension, got shapes {list(indices.shape)} and "
            f"{list(offsets.shape)}"
        )
    if offsets.dtype not in (int64, int32):
        raise DTypeError(f"embedding_bag: offsets must be int64 or int32, got {offsets.dtype.name}")
    if include_last_offset and not offsets.shape[0]:
        raise ShapeError("embedding_bag: with include_last_offset, offsets must hold at least one number")
    if mode not in (SUM, MEAN, MAX):
        raise ArgumentError(f"embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got {mode}")
    if per_sample_weights is None:
        return
    if mode != SUM:
        raise ArgumentError(f"embedding_bag: per_sample_weights need mode 0 (sum), got {mode}")
    if per_sample_weights.shape != indices.shape:
        raise ShapeError(
            f"embedding_bag: per_sample_weights must have the shape of the indices, {list(indices.shape)}, got "
            f"{list(per_sample_weights.shape)}"
        )


def _largest(rows: Tensor, indices: Tensor, starts: Tensor, bag: Tensor, counted: Tensor | None) -> tuple[Tensor, Tensor]:
    """(largest elements, the index each came from) by bag: the first one of a table [bags, indices, d]."""
    n, bags = indices.shape[0], starts.shape[0]
    if not n:
        return aten.new_zeros(rows, (bags, rows.shape[1])), aten.new_zeros(starts, (bags, rows.shape[1]))
    member = aten.eq__Tensor(aten.unsqueeze(bag, 0), aten.unsqueeze(aten.arange(bags, device=bag.device), 1))
    if counted is not None:
        member = aten.logical_and(member, aten.unsqueeze(counted, 0))
    outside = aten.logical_not(aten.unsqueeze(member, 2))
    table = aten.masked_fill__Scalar(aten.unsqueeze(rows, 0), outside, float("-inf"))
    values, places = aten.max__dim(table, 1)
    empty = aten.logical_not(aten.any__dim(member, 1, True))
    chosen = aten.reshape(aten.index_select(indices, 0, aten.reshape(places, (-1,))), places.shape)
    return aten.masked_fill__Scalar(values, empty, 0), aten.masked_fill__Scalar(chosen, empty, 0)
