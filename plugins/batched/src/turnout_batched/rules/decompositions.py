"""Decompositions: each function gets the tensors of one example and calls other operators on them.

A decomposition is a plain function of the operator's arguments; batched tensors go through it like any others.
"""

from __future__ import annotations

from typing import Any

from turnout.dtypes import FLOAT, bool_
from turnout_aten import operators as aten
from turnout_aten.composites.copies import zero_dims
from turnout_aten.kernels.binding import shape_function
from turnout_aten.shapes.losses import MEAN, NONE, SUM
from turnout_aten.shapes.promotion import result_type
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.rules.rounding import rounded_once


def fill(self: Tensor, value: Tensor) -> Tensor:
    """fill.Tensor: self provides only shape and dtype."""
    zero_dims("fill", value)
    return aten.clone(aten.to__dtype(aten.expand(value, self.shape), self.dtype))


def vdot(self: Tensor, other: Tensor) -> Tensor:
    shape_function("aten::vdot.out")(self, other)
    return aten.dot(aten.conj_physical(self), other)


@rounded_once
def mse_loss(self: Tensor, target: Tensor, reduction: int) -> Tensor:
    difference = _difference(self, target)
    if difference.dtype.category < FLOAT or reduction not in (NONE, MEAN, SUM):
        shape_function("aten::mse_loss.out")(self, target, reduction)
    squares: Tensor = aten.mul__Tensor(difference, difference)
    if reduction == NONE:
        return squares
    return aten.mean(squares) if reduction == MEAN else aten.sum(squares)


@rounded_once
def mse_loss_backward(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    shape_function("aten::mse_loss_backward.grad_input")(grad_output, self, target, reduction)
    difference = _difference(self, target)
    scale = 2.0 / max(difference.numel(), 1) if reduction == MEAN else 2.0
    made = aten.mul__Tensor(aten.mul__Scalar(difference, scale), grad_output)
    return aten.to__dtype(made, result_type(grad_output, difference))


def _difference(self: Tensor, target: Tensor) -> Tensor:
    """In their common dtype: of bools there is none."""
    dtype = result_type(self, target)
    if self.dtype is target.dtype is not bool_:
        return aten.sub__Tensor(self, target)
    return aten.sub__Tensor(aten.to__dtype(self, dtype), aten.to__dtype(target, dtype))


@rounded_once
def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """(loss, total weight); the total is 0 without a reduction."""
    shape_function("aten::nll_loss_forward.output")(self, target, weight, reduction, ignore_index)
    target = _one_for_each(self, target)
    classes = self.ndim - 1
    safe, counts = _counted(self, target, weight, ignore_index)
    picked = aten.squeeze__dim(aten.gather(self, classes, aten.unsqueeze(safe, classes)), classes)
    # Not a product: an infinite loss that is ignored would give nan.
    losses: Tensor = aten.where__ScalarOther(
        aten.ne__Scalar(target, ignore_index), aten.neg(aten.mul__Tensor(picked, counts)), 0.0
    )
    losses = aten.to__dtype(losses, self.dtype)
    if reduction == NONE:
        return losses, aten.new_zeros(self, ())
    total: Tensor = aten.sum(counts)
    summed: Tensor = aten.sum(losses)
    return (aten.to__dtype(aten.div__Tensor(summed, total), self.dtype) if reduction == MEAN else summed), total


def _one_for_each(self: Tensor, target: Tensor) -> Tensor:
    """The target of scores [C] may have shape [1]."""
    return target if target.ndim < self.ndim else aten.squeeze__dim(target, 0)


def _counted(self: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor]:
    """The target with 0 in place of ignored labels, and the weight of each element."""
    kept = aten.ne__Scalar(target, ignore_index)
    safe = aten.masked_fill__Scalar(target, aten.logical_not(kept), 0)
    counts = aten.to__dtype(kept, self.dtype)
    if weight is not None:
        picked = aten.reshape(aten.index_select(weight, 0, aten.reshape(safe, (-1,))), target.shape)
        counts = aten.mul__Tensor(counts, picked)
    return safe, counts


@rounded_once
def nll_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int,
    total_weight: Tensor,
) -> Tensor:  # fmt: skip
    shape_function("aten::nll_loss_backward.grad_input")(grad_output, self, target, weight, reduction, ignore_index, total_weight)
    target = _one_for_each(self, target)
    total_weight = aten.reshape(total_weight, ())
    if reduction != NONE or self.ndim == 1:
        grad_output = aten.reshape(grad_output, ())
    classes = self.ndim - 1
    safe, counts = _counted(self, target, weight, ignore_index)
    grads: Any = aten.neg(aten.mul__Tensor(counts, grad_output))
    if reduction == MEAN:
        grads = aten.div__Tensor(grads, total_weight)
    zeros = aten.zeros_like(self)
    return aten.scatter__src(zeros, classes, aten.unsqueeze(safe, classes), aten.unsqueeze(grads, classes))
