"""How gradients add up on their way, how one becomes part of a leaf's `.grad`, and in which memory."""

from __future__ import annotations

from functools import cache
from sys import getrefcount
from typing import Any

from turnout.config.lock import new_lock
from turnout.keys import TRACKED
from turnout.plugins import replaceable
from turnout_aten.shapes.extents import contiguous_strides, is_dense
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.storage import ONE_NAME
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd.formulas.recorded_calls import is_plain

FEW_BYTES = 1 << 16  # of a gradient to which another one is added in new memory; turnout-speed leaves larger ones to this module
LEAF_LOCK = new_lock()  # several sweeps may end at one leaf; reentrant, because a finalizer may start another


@cache
@replaceable
def keeping_first(lock: Any) -> Any:
    """What makes a plain gradient the first one of its leaf: (leaf, sink) -> whether it did. It takes the lock for that.

    None without a plugin that can do so.
    """
    return None


def add_to(held: Any, key: Any, value: Tensor, beside: Any = ()) -> None:
    """Add to the gradient `held[key]`: in its memory where that is large, nobody else can see it and nothing records the sum.

    `beside` are the gradients of the node whose turn it is. They may contain it, because nobody reads them again.
    """
    have = held[key]
    if getattr(have.array, "nbytes", 0) > FEW_BYTES:
        holders = ONE_NAME + 1  # 1: `held`
        for each in beside:
            if each is have:
                holders += 1
        if getrefcount(have) <= holders and _alone(have) and getrefcount(have.array) <= 2 and _adds_up(have, value):
            have.add_(value)
            return
    held[key] = have + value


def _adds_up(have: Tensor, value: Tensor) -> bool:
    """Whether a sum may be written into `have`: plain tensors of one shape and dtype, without a repeated element.

    An array over memory of another one, as NumPy's with a base, is left alone: a function may have made a tensor of it.
    """
    array = have.array
    return (
        is_plain(have)
        and is_plain(value)
        and array.shape == value.array.shape
        and have.dtype is value.dtype
        and getattr(array, "base", None) is None
        and not have.device.backend.is_read_only(array)
        and (have.storage is None or is_dense(array.shape, have.stride()))
    )


def accumulate(leaf: Tensor, sink: list[Any]) -> None:
    """Add sink[1] to `leaf.grad`.

    The first gradient becomes `.grad` itself when nothing else holds it and it has the leaf's layout; otherwise a copy does.
    Later ones are added in place, unless the addition is recorded.
    """
    keep = keeping_first(LEAF_LOCK)
    if keep is not None and keep(leaf, sink):
        return
    grad = sink[1]
    with LEAF_LOCK:
        extra = leaf.extra
        if extra is None:
            extra = leaf.extra = {}
        have = extra.get("grad")
        if have is None:
            if not grad.gmask and getrefcount(grad) <= ONE_NAME + 1 and _alone(grad) and _same_layout(grad, leaf):  # 1: the sink
                extra["grad"] = grad if grad.storage is None else wrap(grad.array, grad.device)
            else:
                extra["grad"] = laid_out(grad, leaf)
        elif GRAD.get()[0]:
            extra["grad"] = have + grad
        else:
            have.add_(grad)


def _alone(grad: Tensor) -> bool:
    """Whether no tensor that anybody can reach shares the gradient's memory. It may be a view whose base only the view holds."""
    storage = grad.storage
    if storage is None:
        return True
    view = grad.view_of
    # The slot of `grad` counts, that of the base, and for the base that of the record and the argument, which is no name.
    if view is None:
        return getrefcount(storage) <= ONE_NAME + 1
    return getrefcount(view) <= ONE_NAME + 1 and getrefcount(view.base) <= 2 and getrefcount(storage) <= ONE_NAME + 2


def _same_layout(grad: Tensor, leaf: Tensor) -> bool:
    ndim = len(leaf.array.shape)
    if not ndim:
        return True
    if ndim == 1 and grad.storage is None:  # so it is not a view, and its one dim is dense
        return leaf.storage is None or leaf.stride() == (1,)
    return grad.stride() == leaf.stride()


def laid_out(grad: Tensor, leaf: Tensor) -> Tensor:
    """A copy with the leaf's strides where those are dense, else contiguous; recorded where gradients are."""
    shape: tuple[int, ...] = leaf.array.shape
    strides = leaf.stride()
    row_major = strides == contiguous_strides(shape)
    dense = row_major or is_dense(shape, strides)
    if dense and is_plain(grad):  # 2 us instead of 9
        device = grad.device
        array = device.backend.empty(shape, grad.dtype, device, None if row_major else strides)
        device.backend.copy(array, grad.array)
        return wrap(array, device)
    if grad.gmask & GRAD.get()[0] or not dense:
        return grad.clone()
    copy = grad.new_empty_strided(shape, strides)
    copy.copy_(grad)
    if copy.gmask:
        copy.gmask = 0
        copy.keys &= ~TRACKED
    return copy
