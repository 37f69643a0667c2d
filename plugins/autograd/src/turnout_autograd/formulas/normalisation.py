"""Gradients of normalisation layers."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from turnout_aten import operators as aten
from turnout_aten.dtypes import WIDE
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.recorded_calls import is_recorded

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints


def statistics(rows: Tensor, eps: float) -> tuple[Tensor, Tensor]:
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
        mean, rstd = (s.reshape(mean.shape) for s in statistics(rows, eps))
    return aten.native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, bias, mask)


def group_norm_grad(
    grads: Any, input: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None, n: int, c: int, area: int, group: int,
    eps: float, mask: Any,
) -> Any:  # fmt: skip
    """The same for groups of channels, whose statistics have gradients too."""
    rows = input.to(mean.dtype).reshape((n, group, c // group * area))
    if is_recorded(input):
        mean, rstd = (s.reshape((n, group)) for s in statistics(rows, eps))
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


def batch_statistics(input: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The same of each channel, as functions of the batch. Two-byte floats are computed in float32."""
    x = input.to(WIDE[input.dtype])
    dims = [d for d in range(x.ndim) if d != 1]
    mean = x.mean(dims, True)
    centred = x - mean
    rstd = ((centred * centred).mean(dims, True) + eps).rsqrt()
    return mean.reshape((-1,)), rstd.reshape((-1,))


def batch_norm_grad(
    grad: Tensor, input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    mean: Tensor | None, rstd: Tensor | None, training: bool, eps: float, mask: Any,
) -> Any:  # fmt: skip
    """By native_batch_norm_backward; the saved statistics are constants, so a gradient that is recorded computes them anew."""
    if training and is_recorded(input):
        mean, rstd = batch_statistics(input, eps)
    return aten.native_batch_norm_backward(grad, input, weight, running_mean, running_var, mean, rstd, training, eps, mask)


def statistics_of_batch_norm_grad(
    grad: Tensor, input: Tensor, weight: Tensor | None, mean: Tensor, variance: Tensor, training: bool, eps: float
) -> tuple[Tensor | None, Tensor | None]:
    """-scale sum(g), and -scale sum(g (x - mean)) / (2 (variance + eps)), for the statistics that evaluation uses."""
    if training:
        return None, None
    dims, computed = [d for d in range(input.ndim) if d != 1], WIDE[input.dtype]
    per_channel = (1, -1, *[1] * (input.ndim - 2))
    grad, spread = grad.to(computed), variance.to(computed) + eps
    scale = spread.rsqrt() if weight is None else spread.rsqrt() * weight
    along = (grad * (input - mean.to(computed).reshape(per_channel))).sum(dims)
    return -(scale * grad.sum(dims)), -(scale * along / (2 * spread))
