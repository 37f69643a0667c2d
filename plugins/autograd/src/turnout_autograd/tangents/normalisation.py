"""Tangents of normalisation layers."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from turnout_aten.dtypes import WIDE
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.normalisation import batch_statistics, statistics
from turnout_autograd.formulas.recorded_calls import is_recorded

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints


def _along_rows(rows: Tensor, rows_t: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The tangents of the normalised rows, of their means, and of their reciprocal deviations r: -r^3 mean((x - mean) dx)."""
    centred = rows - mean
    mean_t = rows_t.mean(-1, True)
    rstd_t = -(rstd * rstd * rstd) * (centred * rows_t).mean(-1, True)
    return (rows_t - mean_t) * rstd + centred * rstd_t, mean_t, rstd_t


def layer_norm_tangent(
    input_t: Tensor | None, weight_t: Tensor | None, bias_t: Tensor | None, input: Tensor, normalized_shape: Ints,
    weight: Tensor | None, mean: Tensor, rstd: Tensor, eps: float,
) -> Tensor:  # fmt: skip
    """That of the normalised rows times the weight, the rows times that of the weight, and that of the bias."""
    shape = (*mean.shape[: mean.ndim - len(normalized_shape)], prod(normalized_shape)) if mean.ndim else (prod(normalized_shape),)
    rows = input.to(mean.dtype).reshape(shape)
    column = (*shape[:-1], 1)
    mean, rstd = statistics(rows, eps) if is_recorded(input) else (mean.reshape(column), rstd.reshape(column))
    made: Tensor | None = None
    if input_t is not None:
        made = _along_rows(rows, input_t.to(mean.dtype).reshape(shape), mean, rstd)[0].reshape(input.shape)
        made = made if weight is None else made * weight
    if weight_t is not None:
        more = ((rows - mean) * rstd).reshape(input.shape) * weight_t
        made = more if made is None else made + more
    if bias_t is None:
        assert made is not None
        return made
    return bias_t if made is None else made + bias_t


def group_norm_tangent(
    input_t: Tensor | None, weight_t: Tensor | None, bias_t: Tensor | None, input: Tensor, weight: Tensor | None, mean: Tensor,
    rstd: Tensor, n: int, c: int, area: int, group: int, eps: float,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """The same for groups of channels, with the tangents of the means and reciprocal deviations, which are results too."""
    rows = input.to(mean.dtype).reshape((n, group, c // group * area))
    per_channel = (1, c, *[1] * (input.ndim - 2))
    mean, rstd = statistics(rows, eps) if is_recorded(input) else (mean.unsqueeze(-1), rstd.unsqueeze(-1))
    made: Tensor | None = None
    mean_t: Tensor | None = None
    rstd_t: Tensor | None = None
    if input_t is not None:
        rows_t, mean_t, rstd_t = _along_rows(rows, input_t.to(mean.dtype).reshape(rows.shape), mean, rstd)
        made = rows_t.reshape(input.shape)
        made = made if weight is None else made * weight.reshape(per_channel)
        mean_t, rstd_t = mean_t.squeeze(-1), rstd_t.squeeze(-1)
    if weight_t is not None:
        more = ((rows - mean) * rstd).reshape(input.shape) * weight_t.reshape(per_channel)
        made = more if made is None else made + more
    if bias_t is not None:
        more = bias_t.reshape(per_channel)
        made = more.expand(input.shape).clone() if made is None else made + more
    return (None if made is None else made.to(input.dtype)), mean_t, rstd_t


def batch_norm_tangent(
    input_t: Tensor | None, weight_t: Tensor | None, bias_t: Tensor | None, running_mean_t: Tensor | None,
    running_var_t: Tensor | None, input: Tensor, weight: Tensor | None, running_mean: Tensor | None, running_var: Tensor | None,
    training: bool, eps: float,
) -> Tensor:  # fmt: skip
    """The same for channels of a batch. The running statistics are used, and have tangents, in evaluation only."""
    per_channel = (1, input.shape[1], *[1] * (input.ndim - 2))
    dims, computed = [d for d in range(input.ndim) if d != 1], WIDE[input.dtype]
    x, x_t = input.to(computed), None if input_t is None else input_t.to(computed)
    mean_t: Tensor | None = None
    rstd_t: Tensor | None = None
    if training:
        mean, rstd = (s.reshape(per_channel) for s in batch_statistics(input, eps))
        if x_t is not None:
            mean_t, rstd_t = x_t.mean(dims, True), -(rstd * rstd * rstd) * ((x - mean) * x_t).mean(dims, True)
    else:
        assert running_mean is not None
        assert running_var is not None
        mean = running_mean.to(computed).reshape(per_channel)
        rstd = (running_var.to(computed) + eps).rsqrt().reshape(per_channel)
        mean_t = None if running_mean_t is None else running_mean_t.to(computed).reshape(per_channel)
        if running_var_t is not None:
            rstd_t = -(rstd * rstd * rstd) * running_var_t.to(computed).reshape(per_channel) / 2
    scale = rstd if weight is None else rstd * weight.reshape(per_channel)
    terms = []
    if x_t is not None:
        terms.append(x_t * scale)
    if mean_t is not None:
        terms.append(-(mean_t * scale))
    if rstd_t is not None:
        terms.append((x - mean) * (rstd_t if weight is None else rstd_t * weight.reshape(per_channel)))
    if weight_t is not None:
        terms.append((x - mean) * rstd * weight_t.reshape(per_channel))
    if bias_t is not None:
        terms.append(bias_t.reshape(per_channel))
    if not terms:
        return input.new_zeros(input.shape)
    made = terms[0]
    for term in terms[1:]:
        made = made + term
    return made.expand(input.shape).to(input.dtype)
