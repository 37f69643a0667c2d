"""Negative log likelihood and squared error, with their gradients."""

from __future__ import annotations

import numpy as np

from turnout.dtypes import int64
from turnout.errors import DimError
from turnout_aten.errors import arguments as texts
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.extents import dims_of
from turnout_aten.shapes.losses import MEAN, NONE, SUM
from turnout_opencl.arrays import ClArray, memory_of, new_array
from turnout_opencl.backend import copy, fill
from turnout_opencl.grids import packed
from turnout_opencl.pointwise import dense, run_map
from turnout_opencl.reductions import TOTAL, reduce

# ---- negative log likelihood of (N, C) or (C,) log probabilities


class Rows:
    """A call's log probabilities as rows, its targets, weights and the class left out."""

    def __init__(self, self_: ClArray, target: ClArray, weight: ClArray | None, ignore_index: int) -> None:
        self.values = self_ if len(self_.shape) == 2 else self_.view((1, *self_.shape), (0, *self_.strides), 0)
        self.target = dense(target, int64).at_least_1d()
        self.weight = weight
        self.classes = self.values.shape[1]
        self.extra = (
            self.classes, ignore_index, self.values.strides[1], 0 if weight is None else weight.strides[0],
        )  # fmt: skip

    def error(self, wrong: int) -> Exception:
        return DimError(texts.no_class("nll_loss", wrong, self.classes))


def likelihood(
    self: ClArray, target: ClArray, weight: ClArray | None, reduction: int, ignore_index: int, output: ClArray,
    total_weight: ClArray,
) -> None:  # fmt: skip
    """The losses, their sum or their weighted mean, and the sum of the weights."""
    rows = Rows(self, target, weight, ignore_index)
    place, count = self.place, rows.target.shape[0]
    losses, weights = new_array(place, (count,), self.dtype), new_array(place, (count,), self.dtype)
    call, positions = packed(
        0, (count,), ((1,), rows.values.strides[:1], rows.target.strides),
        (0, rows.values.offset, rows.target.offset, 0 if weight is None else weight.offset), extra=rows.extra,
    )  # fmt: skip
    shared = (losses.buffer, weights.buffer, self.buffer, rows.target.buffer, None if weight is None else weight.buffer)
    with place.reported(rows.error) as flag:
        place.start("losses", self.dtype, "likelihood", call, (*shared, flag), positions)
    if reduction == NONE:
        copy(output, losses.view(output.shape, (1,) * len(output.shape), 0))
        fill(total_weight, 0)
        return
    reduce(TOTAL, weights, (0,), total_weight)
    if reduction == SUM:
        reduce(TOTAL, losses, (0,), output)
    else:
        total = new_array(place, (), self.dtype)
        reduce(TOTAL, losses, (0,), total)
        run_map("div", output, total, total_weight)


def likelihood_backward(
    grad_output: ClArray, self: ClArray, target: ClArray, weight: ClArray | None, reduction: int, ignore_index: int,
    total_weight: ClArray, out: ClArray,
) -> None:  # fmt: skip
    """-grad * weight at each row's class, over the sum of the weights for a mean."""
    target_rows = Rows(out, target, weight, ignore_index)
    place, count = out.place, target_rows.target.shape[0]
    fill(out, 0)
    step = grad_output.strides[0] if grad_output.shape else 0
    total = total_weight if reduction == MEAN else None
    (*bases, of_total), shared = memory_of(out, grad_output, target_rows.target, weight, total)
    strides = (target_rows.values.strides[:1], (step,), target_rows.target.strides)
    call, positions = packed(0, (count,), strides, bases, numbers=(of_total,), extra=target_rows.extra)
    with place.reported(target_rows.error) as flag:
        place.start("losses", out.dtype, "likelihood_slope", call, (*shared, flag), positions)


# ---- squared error


def mse_loss(self: ClArray, target: ClArray, reduction: int, out: ClArray) -> None:
    """The squares, their mean or their sum."""
    if reduction == NONE:
        run_map("mse", out, self, target)
        return
    squares = run_map("mse", new_array(self.place, np.broadcast_shapes(self.shape, target.shape), out.dtype), self, target)
    divisor = float(squares.size) if reduction == MEAN else None
    reduce(TOTAL, squares, dims_of(len(squares.shape), None), out, divisor=divisor)


def mse_loss_backward(grad_output: ClArray, self: ClArray, target: ClArray, reduction: int, out: ClArray) -> None:
    """2 (self - target) grad, over the count for a mean."""
    count = int(np.prod(np.broadcast_shapes(self.shape, target.shape), dtype=int))
    factor = 2.0 / count if reduction == MEAN and count else 2.0
    run_map("mse_backward", out, grad_output, self, target, factor)


# fmt: off
KERNELS = {
    "nll_loss_forward.output":        Row(likelihood),
    "nll_loss_backward.grad_input":   Row(likelihood_backward),
    "mse_loss.out":                   Row(mse_loss),
    "mse_loss_backward.grad_input":   Row(mse_loss_backward),
}
# fmt: on
