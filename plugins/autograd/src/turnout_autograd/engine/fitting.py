"""Gradients fitted to their arguments: as many as those, summed over broadcast dims, with the dtype and device of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from turnout.errors import DataDependentSizeError
from turnout_aten.shapes.extents import expands_to
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.formulas.broadcasting import sum_to
from turnout_autograd.formulas.complex import converted

if TYPE_CHECKING:
    from turnout.devices import Device
    from turnout.dtypes import DType
    from turnout_autograd.engine.nodes import Node

Meta = tuple[tuple[int, ...], "DType", "Device"]


def metas(*tensors: Tensor | None) -> tuple[Meta | None, ...]:
    """What `fit` needs to know of arguments that were broadcast, promoted, or came from another device."""
    return tuple(None if t is None else (t.array.shape, t.dtype, t.device) for t in tensors)


def fit(grad: Tensor, meta: Meta) -> Tensor:
    """A gradient summed over broadcast dims, and with the dtype and device of the argument it belongs to."""

    shape, dtype, device = meta
    if grad.array.shape != shape:
        grad = sum_to(grad, shape)
    if grad.dtype is not dtype:
        grad = converted(grad, dtype)
    if grad.device is not device:
        grad = grad.to(device=device)
    return grad


def fit_to_leaf(grad: Tensor, leaf: Tensor) -> Tensor:
    """The same for a leaf, which says itself what it needs."""
    a = grad.array
    b = leaf.array
    try:
        if a.shape == b.shape and a.dtype is b.dtype and grad.device is leaf.device:
            return grad
    except AttributeError:  # an array without dtype
        pass
    if not expands_to(leaf.shape, grad.shape):
        raise errors.GradientError(errors.passes.leaf_shape(grad, leaf))
    return fit(grad, (b.shape, leaf.dtype, leaf.device))


def counted(node: Node, arguments: str, grads: Any, count: int) -> Any:
    """The gradients that one formula gives for several arguments, or for a list. Raises GradientError for a wrong number."""
    if not isinstance(grads, (tuple, list)) or len(grads) != count:
        given = f"{len(grads)} gradients" if isinstance(grads, (tuple, list)) else type(grads).__name__
        raise errors.GradientError(errors.passes.formula_count(node.op_name, arguments, given, count))
    return grads


def unlike(result: Tensor, *arguments: Tensor | None) -> tuple[Meta | None, ...] | None:
    """What `fit` needs when any argument differs from the result in shape, dtype or device."""
    shape, dtype, device = result.array.shape, result.dtype, result.device
    try:
        for t in arguments:
            if t is not None and (t.array.shape != shape or t.dtype is not dtype or t.device is not device):
                return metas(*arguments)
    except DataDependentSizeError:  # whether two sizes are equal is for `fit` to ask, about the gradient
        return metas(*arguments)
    return None


def unlike_kind(result: Tensor, arguments: Sequence[Tensor]) -> tuple[Meta | None, ...] | None:
    """The same for a list whose shapes the formula sees to."""
    dtype, device = result.dtype, result.device
    for t in arguments:
        if t.device is not device or t.dtype is not dtype:
            return metas(*arguments)
    return None
