"""What formulas of layers call: operators under short names, and gradients too long for one line; see `formulas`."""

from __future__ import annotations

from math import prod
from typing import Any

from turnout_aten.generated import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas import is_recorded

Ints = tuple[int, ...]


def placed_grad(grad: Tensor, shape: Ints, indices: Tensor, ndim: int) -> Tensor:
    """Every gradient added at the place in the last `ndim` dims that its window's largest element came from."""
    lead = len(shape) - ndim
    flat = (*grad.shape[:lead], prod(grad.shape[lead:]))
    zeros = grad.new_zeros((*shape[:lead], prod(shape[lead:])))
    return zeros.scatter_add(-1, indices.reshape(flat), grad.reshape(flat)).reshape(shape)


# ---- normalisation


def _statistics(rows: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The mean and the reciprocal deviation of each row, as functions of the rows."""
    mean = rows.mean(-1, True)
    centred = rows - mean
    return mean, ((centred * centred).mean(-1, True) + eps).rsqrt()


def layer_norm_grad(
    grad: Tensor, input: Tensor, normalized_shape: Ints, mean: Tensor, rstd: Tensor, weight: Tensor | None,
    bias: Tensor | None, eps: float, mask: Any,
) -> Any:  # fmt: skip
    """By native_layer_norm_backward; the saved statistics are constants, so a gradient that is recorded computes them anew."""
    if is_recorded(input):
        rows = input.to(mean.dtype).reshape((*mean.shape, prod(normalized_shape)))
        mean, rstd = (s.reshape(mean.shape) for s in _statistics(rows, eps))
    return aten.native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, bias, mask)


def group_norm_grad(
    grads: Any, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, n: int, c: int, area: int, group: int,
    eps: float, mask: Any,
) -> Any:  # fmt: skip
    """The same for groups of channels, of which the statistics have gradients too."""
    rows = input.to(mean.dtype).reshape((n, group, c // group * area))
    if is_recorded(input):
        mean, rstd = (s.reshape((n, group)) for s in _statistics(rows, eps))
    made: Any = (None, None, None)
    if grads[0] is not None:
        made = aten.native_group_norm_backward(grads[0], input, mean, rstd, weight, n, c, area, group, mask)
    if not mask[0] or (grads[1] is None and grads[2] is None):
        return made
    more = _statistics_grad(grads[1], grads[2], rows, mean, rstd).reshape(input.shape).to(input.dtype)
    return (more if made[0] is None else made[0] + more), made[1], made[2]


def _statistics_grad(grad_mean: Any, grad_rstd: Any, rows: Any, mean: Tensor, rstd: Tensor) -> Tensor:
    """1 / n, and -(x - mean) rstd^3 / n."""
    size = max(rows.shape[-1], 1)
    made = rows.new_zeros(rows.shape)
    if grad_mean is not None:
        made = made + (grad_mean / size).unsqueeze(-1)
    if grad_rstd is not None:
        factor = grad_rstd * rstd * rstd * rstd / size
        made = made - (rows - mean.unsqueeze(-1)) * factor.unsqueeze(-1)
    return made


# ---- losses


def _each_loss(grad: Tensor, value: Tensor, weight: Tensor | None, reduction: int) -> Tensor:
    """A derivative of each loss, times the weight and the gradient of what was made of all losses."""
    if weight is not None:
        value = value * weight
    made = grad * value
    return made / max(prod(made.shape), 1) if reduction == 1 else made


def binary_cross_entropy_grad(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int
) -> Tensor:
    """(x - t) / (x (1 - x)), the denominator not below 1e-12."""
    return _each_loss(grad, (self - target) / ((1 - self) * self).clamp(min=1e-12), weight, reduction)


def binary_cross_entropy_target_grad(
    grad: Tensor, self: Tensor, target: Tensor, weight: Tensor | None, reduction: int
) -> Tensor:
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
