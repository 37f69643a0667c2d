"""Gradients of losses."""

from __future__ import annotations

from math import prod

from turnout_aten import operators as aten
from turnout_aten.shapes.losses import MEAN, SUM
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.broadcasting import count


def mse_second_grad(grad: Tensor, grad_output: Tensor, reduction: int, elements: int) -> Tensor:
    """d <grad, mse_loss_backward> / dself."""
    return grad * grad_output * (2 / elements if reduction == MEAN and elements else 2)


def mse_second_grad_output(grad: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    """d <grad, mse_loss_backward> / dgrad_output, for each element: what is called sums it over the dims that were broadcast."""
    each = grad * ((self - target) * 2)
    return each / count(each.shape) if reduction == MEAN else each


def nll_second_grad_output(
    grad: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, total_weight: Tensor
) -> Tensor:
    """d <grad, nll_loss_backward> / dgrad_output. A mean is over the weight that the backward pass was given."""
    if reduction == MEAN:
        return aten.nll_loss(grad, target, weight, SUM, ignore_index) / total_weight
    return aten.nll_loss(grad, target, weight, reduction, ignore_index)


def _each_loss(grad: Tensor, value: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    """A derivative of each loss, times the weight and the gradient of what was made of all losses."""
    if weight is not None:
        value = value * weight
    made = grad * value
    return made / max(prod(made.shape), 1) if reduction == MEAN else made


def binary_cross_entropy_grad(grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    """(x - t) / (x (1 - x)), the denominator not below 1e-12."""
    return _each_loss(grad, (self - target) / ((1 - self) * self).clamp(min=1e-12), weight, reduction)


def binary_cross_entropy_target_grad(grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    """log(1 - x) - log(x), neither below -100."""
    return _each_loss(grad, (-self).log1p().clamp(min=-100) - self.log().clamp(min=-100), weight, reduction)


def binary_cross_entropy_with_logits_grad(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Tensor:
    """sigmoid(x) (1 + (p - 1) t) - p t"""
    positive = target if pos_weight is None else pos_weight * target
    return _each_loss(grad, (positive + 1 - target) * self.sigmoid() - positive, weight, reduction)


def binary_cross_entropy_with_logits_target_grad(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, reduction: int
) -> Tensor:
    """-x - (p - 1) log(sigmoid(x))"""
    value = -self
    if pos_weight is not None:
        value = value + (pos_weight - 1) * ((-self.abs()).exp().log1p() + (-self).relu())
    return _each_loss(grad, value, weight, reduction)
