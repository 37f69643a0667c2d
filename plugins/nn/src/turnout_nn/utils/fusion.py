"""A batch norm folded into the convolution or linear layer in front of it, for inference."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

import turnout
from turnout import Tensor
from turnout.errors import ArgumentError
from turnout_nn.module import Module
from turnout_nn.parameters import Parameter

T = TypeVar("T", bound=Module)


def fuse_conv_bn_eval(conv: T, bn: Module, transpose: bool = False) -> T:
    """A copy of a convolution that gives what the convolution and then the batch norm give. Both must be in eval mode.

    Arguments:
        conv: the convolution
        bn: the batch norm behind it
        transpose: whether it is a transposed convolution

    Raises:
        ArgumentError: a module is in training mode, or the norm has no running statistics.

    Example:
        >>> conv, bn = turnout.nn.Conv1d(2, 3, 1).eval(), turnout.nn.BatchNorm1d(3).eval()
        >>> fused = turnout.nn.utils.fuse_conv_bn_eval(conv, bn)
        >>> x = turnout.ones(1, 2, 4)
        >>> turnout.allclose(fused(x), bn(conv(x)), atol=1e-6)
        True
    """
    return _fused("fuse_conv_bn_eval", conv, bn, partial(fuse_conv_bn_weights, transpose=transpose))


def fuse_linear_bn_eval(linear: T, bn: Module) -> T:
    """A copy of a linear layer that gives what the layer and then the batch norm give. Both must be in eval mode.

    Arguments:
        linear: the linear layer
        bn: the batch norm behind it, with one feature or as many as the layer

    Raises:
        ArgumentError: a module is in training mode, the norm has no running statistics, or its number of features differs.

    Example:
        >>> linear, bn = turnout.nn.Linear(2, 3).eval(), turnout.nn.BatchNorm1d(3).eval()
        >>> fused = turnout.nn.utils.fuse_linear_bn_eval(linear, bn)
        >>> turnout.allclose(fused(turnout.ones(1, 2)), bn(linear(turnout.ones(1, 2))), atol=1e-6)
        True
    """
    out, features = vars(linear)["out_features"], vars(bn)["num_features"]
    if features not in (1, out):
        raise ArgumentError(f"fuse_linear_bn_eval: the norm must have 1 or {out} features, got {features}")
    return _fused("fuse_linear_bn_eval", linear, bn, fuse_linear_bn_weights)


def _fused(name: str, layer: T, bn: Any, weights: Any) -> T:
    if layer.training or bn.training:
        raise ArgumentError(f"{name}: both modules must be in eval mode\n  to fix  call eval() on them")
    if bn.running_mean is None or bn.running_var is None:
        raise ArgumentError(f"{name}: the norm has no running statistics; make it with track_running_stats=True")
    fused = deepcopy(layer)
    made: Any = fused
    statistics = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    made.weight, made.bias = weights(made.weight, made.bias, *statistics)
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None, bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """The (weight, bias) of the convolution that gives what a convolution and then a batch norm give.

    Arguments:
        conv_w: the weight of the convolution
        conv_b: its bias
        bn_rm: the running mean of the norm
        bn_rv: its running variance
        bn_eps: what it adds to the variance
        bn_w: its weight
        bn_b: its bias
        transpose: whether the output channels are the second dimension of the weight

    Example:
        >>> one, two = turnout.ones(1), turnout.full((1,), 2.0)
        >>> turnout.nn.utils.fuse_conv_bn_weights(turnout.ones(1, 1, 1), None, one, one, 0.0, two, None)[1]
        tensor([-2.])
    """
    return _scaled(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """The (weight, bias) of the linear layer that gives what a linear layer and then a batch norm give.

    Arguments:
        linear_w: the weight of the linear layer
        linear_b: its bias
        bn_rm: the running mean of the norm
        bn_rv: its running variance
        bn_eps: what it adds to the variance
        bn_w: its weight
        bn_b: its bias

    Example:
        >>> one, two = turnout.ones(1), turnout.full((1,), 2.0)
        >>> turnout.nn.utils.fuse_linear_bn_weights(turnout.ones(1, 1), None, one, one, 0.0, two, one)[1]
        tensor([-1.])
    """
    return _scaled(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _scaled(
    weight: Tensor, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, bn_weight: Tensor | None, bn_bias: Tensor | None,
    channels: int,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """weight and bias times scale = bn_weight / sqrt(var + eps), with the shift of the norm. `channels` is the weight's dim."""
    with turnout.no_grad():
        scale = (var + eps).rsqrt() * (1 if bn_weight is None else bn_weight)
        shape = [1] * weight.ndim
        shape[channels] = -1
        shift = -mean * scale if bias is None else (bias - mean) * scale
        shift = shift if bn_bias is None else shift + bn_bias
        made = (weight * scale.reshape(shape)).to(weight.dtype), shift.to(weight.dtype if bias is None else bias.dtype)
    tracked = weight.requires_grad, weight.requires_grad if bias is None else bias.requires_grad
    return Parameter(made[0], tracked[0]), Parameter(made[1], tracked[1])
