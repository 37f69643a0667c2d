"""Rules for pointwise operators: functional ones, and those that write into self."""

from __future__ import annotations

from typing import Any

from turnout_aten import operators as aten
from turnout_aten.shapes.losses import MEAN, NONE
from turnout_aten.shapes.promotion import result_type
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.levels import moved
from turnout_batched.rules.alignment import Dims, family, front, logical_ndim, logical_shape, padded, refused, tried
from turnout_batched.values import example


@family
def unary(call: Any, size: int, dims: Dims, value: Tensor, *rest: Any) -> tuple[Tensor, int]:
    """One tensor: the batch dim stays in place."""
    return call(value, *rest), dims[0]


@family
def several(call: Any, size: int, dims: Dims, value: Tensor, *rest: Any) -> tuple[list[Tensor], int | None]:
    """The same with several results."""
    return list(call(value, *rest)), dims[0]


@family
def pointwise(call: Any, size: int, dims: Dims, *values: Any) -> tuple[Tensor, int]:
    """Several tensors, broadcast and promoted as their examples would be."""
    # The usual call: two batches of examples of one shape. 1.5 us of 6.5 less.
    if dims[0] == 0 == dims[1] and len(values) <= 3:
        first, second = values[0], values[1]
        if len(first.array.shape) == len(second.array.shape) > 1 and (len(values) == 2 or not isinstance(values[2], Tensor)):
            return call(*values), 0
    return call(*aligned(call, size, dims, values, 0)), 0


@family
def loss(call: Any, size: int, dims: Dims, self: Tensor, target: Tensor, *rest: Any) -> tuple[Tensor, int]:
    """A pointwise loss of two tensors, with optional weights, all broadcast. The last argument is the reduction."""
    *weights, reduction = rest
    tensors = [None if t is None else (t, d) for t, d in zip((self, target, *weights), dims[:-1], strict=True)]
    ndim = max([logical_ndim(*t) for t in tensors if t is not None])
    values = call(*[None if t is None else padded(front(*t, size), 0, ndim) for t in tensors], NONE)
    over = tuple(range(1, ndim + 1))
    if reduction == NONE or not over:
        return values, 0
    return (aten.mean__dim(values, over) if reduction == MEAN else aten.sum__dim_IntList(values, over)), 0


@family
def loss_of_one_shape(call: Any, size: int, dims: Dims, self: Tensor, target: Tensor, *rest: Any) -> tuple[Tensor, int]:
    """One whose two tensors must have one shape."""
    if logical_shape(self, dims[0]) != logical_shape(target, dims[1]):
        refused(call, size, dims, (self, target, *rest))
    return loss(call, size, dims, self, target, *rest)


@family
def choice(call: Any, size: int, dims: Dims, *values: Any) -> tuple[Tensor, int]:
    """where: like `pointwise`, but the dtype of the condition is ignored."""
    return call(*aligned(call, size, dims, values, 1)), 0


@family
def masking(call: Any, size: int, dims: Dims, *values: Any) -> tuple[Tensor, int]:
    """Like `pointwise`, for operators that do not promote dtypes."""
    return call(*aligned(call, size, dims, values, len(values))), 0


@family
def writing(call: Any, size: int, dims: Dims, self: Tensor, *rest: Any) -> tuple[Any, Any]:
    """In place: self keeps its shape and the others are broadcast to it. Returns None, because the result is self."""
    ndim = logical_ndim(self, dims[0])
    others = [padded(v, d, ndim) if d is not None else _not_onto_batch(v, ndim) for v, d in zip(rest, dims[1:], strict=True)]
    call(moved(self, dims[0], 0), *others)
    return None, None


def _not_onto_batch(value: Any, ndim: int) -> Any:
    """A tensor with more dims than an example of self must not be broadcast with the batch dim: the operator has to refuse it."""
    if isinstance(value, Tensor) and len(value.array.shape) > ndim:
        return aten.unsqueeze(value, 0)
    return value


def aligned(call: Any, size: int, dims: Dims, values: Any, promoted_from: int) -> list[Any]:
    """Align tensors for broadcasting. Convert them where promoting batches would give another dtype than promoting examples.

    An example without dims counts less in a promotion than one with dims, but as a batch it has a dim.
    """
    ndim = 0
    without_dims = False
    for value, d in zip(values, dims, strict=True):
        if isinstance(value, Tensor):
            n = len(value.array.shape) - (d is not None)
            without_dims = without_dims or (n == 0 and d is not None)
            ndim = max(ndim, n)
    if without_dims:
        values = _promoted(call, size, dims, values, promoted_from)
    return [v if d is None else padded(v, d, ndim) for v, d in zip(values, dims, strict=True)]


def _promoted(call: Any, size: int, dims: Dims, values: Any, start: int) -> list[Any]:
    tensors = [v for v in values[start:] if isinstance(v, Tensor)]
    if not tensors or all(v.dtype is tensors[0].dtype for v in tensors):
        return list(values)
    tried(call, size, dims, values)
    common = result_type(
        *[v if d is None else example(v, d) for v, d in zip(values[start:], dims[start:], strict=True) if isinstance(v, Tensor)]
    )
    return [
        aten.to__dtype(v, common) if i >= start and isinstance(v, Tensor) and v.dtype is not common else v
        for i, v in enumerate(values)
    ]
