"""Losses: each chunk of examples gives its sum and its weight, and these are added."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from turnout_arrays.numbers import computed_dtype
from turnout_aten.backend.functional_rows import Wanted
from turnout_aten.shapes.losses import MEAN, NONE, SUM
from turnout_dask.blocks import by_blocks, new_name, own, pointwise, rows, task_of
from turnout_dask.reductions import combined, scaled


def mse_loss(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """The squared distance of two arrays: each, their mean, or their sum."""
    x, target, reduction = args
    (want,), (kind,) = wanted, native
    shape = np.broadcast_shapes(x.shape, target.shape)
    wide = kind if reduction == NONE else computed_dtype(np, kind)
    each = pointwise("mse_loss.out", (x, target, NONE), [Wanted(shape, want.dtype, want.device)], [wide])
    if reduction == NONE or not each.ndim:
        return each.reshape(want.shape)
    total = combined(each, tuple(range(each.ndim)), "sum", wide)
    return scaled(total, each.size if reduction == MEAN else 1, kind)


def mse_loss_backward(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """Its gradient. The mean divides by the number of all elements, not by that of a chunk."""
    grad, x, target, reduction = args
    if reduction == MEAN:
        grad = scaled(grad, int(np.prod(np.broadcast_shapes(x.shape, target.shape), dtype=object)), grad.dtype)
    return pointwise("mse_loss_backward.grad_input", (grad, x, target, SUM), wanted, native)


def nll_loss(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """The loss, and the sum of the weights of its examples."""
    x, target, weight, reduction, ignored = args
    if x.ndim != 2:  # one example
        return _one_example(args, wanted, native)
    given = [x.rechunk({1: -1}), (0, 1), target, (0,)]
    if weight is not None:
        given += [weight.rechunk(-1), (1,)]
    name = new_name("nll_loss")
    if reduction == NONE:
        task = partial(_each, native[0], ignored)
        each = da.blockwise(task, (0,), *given, concatenate=True, dtype=native[0], name=name, meta=np.empty(0, native[0]))
        return each, da.zeros((), dtype=native[1])
    kind = computed_dtype(np, native[0])
    axes: dict[str, Any] = {"new_axes": {2: 2}, "adjust_chunks": {0: 1}}
    task = partial(_sums, kind, ignored)
    sums: Any = da.blockwise(task, (0, 2), *given, **axes, concatenate=True, dtype=kind, name=name, meta=np.empty((0, 0), kind))
    added = combined(sums, (0,), "sum", kind)
    loss = added[0] / added[1] if reduction == MEAN else added[0]
    return loss.astype(native[0]), added[1].astype(native[1])


def nll_loss_backward(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """Its gradient, which knows the sum of all weights."""
    grad, x, _, weight, _, _, total = args
    if x.ndim != 2:
        return _one_example(args, wanted, native, "nll_loss_backward.grad_input")
    labels = [(0,) * grad.ndim, (0, own(1, 1)), (0,), *([(own(3, 0),)] if weight is not None else []), ()]
    assert not total.ndim
    return by_blocks("nll_loss_backward.grad_input", args, wanted, native, labels, [(0, own(1, 1))])


def _one_example(args: Sequence[Any], wanted: Any, native: Any, name: str = "nll_loss_forward.output") -> Any:
    arrays = [a for a in args if isinstance(a, da.Array)]
    labels = [tuple([own(i, d) for d in range(a.ndim)]) for i, a in enumerate(arrays)]
    return by_blocks(name, args, wanted, native, labels, [tuple([own(500 + i, 0)][: len(w.shape)]) for i, w in enumerate(wanted)])


def _each(kind: Any, ignored: int, x: Any, target: Any, weight: Any = None) -> Any:
    """The losses of a chunk."""
    losses, total = np.empty(target.shape, kind), np.empty((), kind)
    with task_of("nll_loss_forward.output", x, target):
        rows()["nll_loss_forward.output"].fn(x, target, weight, NONE, ignored, losses, total)
    return losses


def _sums(kind: Any, ignored: int, x: Any, target: Any, weight: Any = None) -> Any:
    """The sum of a chunk's losses, and of their weights."""
    loss, total = np.empty((), kind), np.empty((), kind)
    with task_of("nll_loss_forward.output", x, target):
        if weight is not None:
            weight = weight.astype(kind)
        rows()["nll_loss_forward.output"].fn(x.astype(kind), target, weight, SUM, ignored, loss, total)
    return np.array([[loss, total]], kind)
