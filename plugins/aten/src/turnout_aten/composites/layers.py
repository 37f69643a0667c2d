"""The kinds of dropout, and the bilinear product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import bool_
from turnout.errors import ArgumentError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.activations import SELU_ALPHA, SELU_SCALE
from turnout_aten.errors import arguments as texts

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(texts.no_probability("dropout", "p", p))


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """In training, each element becomes 0 with probability p and the others are divided by 1 - p. Else the input."""
    _check_probability(p)
    if not train or p == 0 or not input.numel():
        return input
    return aten.native_dropout(input, p, train)[0]


def dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """dropout, in place."""
    _check_probability(p)
    if train and p != 0 and self.numel():
        noise = aten.bernoulli__p(aten.empty_like(self), 1 - p)
        aten.mul___Tensor(self, noise if p == 1 else aten.div__Scalar(noise, 1 - p))
    return self


def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """(output, mask): the mask is true where an element was kept."""
    if not input.numel():
        return aten.clone(input), aten.empty_like(input)  # as in torch, the mask has the input's dtype
    if train is False:
        return aten.clone(input), aten.ones_like(input, dtype=bool_)
    _check_probability(p)
    mask = aten.to__dtype(aten.bernoulli__p(aten.empty_like(input), 1 - p), bool_)
    return native_dropout_backward(input, mask, 0.0 if p == 1 else 1 / (1 - p)), mask


def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """grad_output * mask * scale."""
    return aten.mul__Scalar(aten.mul__Tensor(grad_output, mask), scale)


# ---- other kinds of dropout


def _noise(name: str, input: Tensor, p: float, whole_channels: bool) -> Tensor:
    """1 where an element is kept, else 0; for whole channels, one number per channel (dim 1)."""
    if not whole_channels:
        return aten.bernoulli__p(aten.empty_like(input), 1 - p)
    if input.ndim < 2:
        raise ShapeError(texts.no_channels(name, input.shape))
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    return aten.bernoulli__p(aten.new_empty(input, shape), 1 - p)


def _scaled(input: Tensor, p: float, train: bool) -> Tensor | None:
    """The factor that drops channels, or None if none are dropped."""
    _check_probability(p)
    if not train or p == 0 or not input.numel():
        return None
    noise = _noise("feature_dropout", input, p, True)
    return noise if p == 1 else aten.div__Scalar(noise, 1 - p)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """dropout of whole channels."""
    factor = _scaled(input, p, train)
    return input if factor is None else aten.mul__Tensor(input, factor)


def feature_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """feature_dropout, in place."""
    factor = _scaled(self, p, train)
    return self if factor is None else aten.mul___Tensor(self, factor)


# The value of selu at minus infinity, which replaces dropped elements, without its sign.
_ALPHA = SELU_ALPHA * SELU_SCALE


def _alpha(input: Tensor, p: float, train: bool, whole_channels: bool) -> tuple[Tensor, Tensor] | None:
    """The (factor, summand) that preserve mean 0 and variance 1, or None if no elements are dropped."""
    _check_probability(p)
    if not train or p == 0 or not input.numel():
        return None
    noise = _noise("feature_alpha_dropout", input, p, whole_channels)
    if p == 1:
        return noise, aten.zeros_like(noise)
    a = 1 / ((_ALPHA * _ALPHA * p + 1) * (1 - p)) ** 0.5
    summand = aten.add__Scalar(aten.mul__Scalar(aten.sub__Scalar(noise, 1), _ALPHA * a), _ALPHA * a * p)
    return aten.mul__Scalar(noise, a), summand


def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """In training, random elements become selu's lowest value; then all are scaled and shifted to preserve mean and variance."""
    return _applied(input, _alpha(input, p, train, False))


def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """alpha_dropout for whole channels."""
    return _applied(input, _alpha(input, p, train, True))


def _applied(input: Tensor, found: tuple[Tensor, Tensor] | None) -> Tensor:
    return input if found is None else aten.add__Tensor(aten.mul__Tensor(input, found[0]), found[1])


def alpha_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """alpha_dropout in place."""
    return _written(self, _alpha(self, p, train, False))


def feature_alpha_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """feature_alpha_dropout in place."""
    return _written(self, _alpha(self, p, train, True))


def _written(self: Tensor, found: tuple[Tensor, Tensor] | None) -> Tensor:
    return self if found is None else aten.add___Tensor(aten.mul___Tensor(self, found[0]), found[1])


# ---- products


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1^T W[k] x2 + b[k] for weight [K, I, J], over the last dims of inputs [..., I] and [..., J]."""
    if input1.ndim != input2.ndim or input1.shape[:-1] != input2.shape[:-1]:
        raise ShapeError(
            f"bilinear: the inputs must have one shape up to the last dim, got {list(input1.shape)} and {list(input2.shape)}"
        )
    k, i, j = weight.shape if weight.ndim == 3 else (0, -1, -1)
    if input1.shape[-1:] != (i,) or input2.shape[-1:] != (j,):
        raise ShapeError(
            f"bilinear: 'weight' of shape {list(weight.shape)} does not fit inputs of shapes {list(input1.shape)} and "
            f"{list(input2.shape)}"
        )
    if bias is not None and bias.shape != (k,):
        raise ShapeError(texts.wrong_shape("bilinear", "bias", (k,), bias.shape))
    lead = input1.shape[:-1]
    rows = aten.reshape(aten.permute(weight, (1, 0, 2)), (i, k * j))
    half = aten.reshape(aten.matmul(aten.reshape(input1, (-1 if input1.numel() else 0, i)), rows), (*lead, k, j))
    products = aten.mul__Tensor(half, aten.unsqueeze(input2, -2))
    made: Tensor = aten.sum__dim_IntList(products, (-1,), dtype=products.dtype)
    return made if bias is None else aten.add__Tensor(made, bias)
