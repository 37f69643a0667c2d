"""Normalisations of `turnout.nn.functional`."""

from __future__ import annotations

from turnout.errors import ArgumentError
from turnout.operators.tracebacks import shorten, shortening
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as _functions
from turnout_aten.generated import nn_functional as _generated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor


def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalise the last dims, of shape `normalized_shape`, to mean 0 and variance 1; then times weight plus bias.

    Arguments:
        input: the input
        weight: a factor for each element of the last dimensions
        bias: what is added to each element of the last dimensions

    Example:
        >>> turnout.nn.functional.layer_norm(turnout.tensor([1.0, 3.0]), (2,))
        tensor([-1.0000,  1.0000])
    """
    try:
        return _functions.layer_norm(input, normalized_shape, weight, bias, eps)
    except Exception as error:
        shorten(error)
        raise


def rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide by the root of the mean square over the last dims; then times weight. `eps` defaults to that of the dtype.

    Arguments:
        input: the input
        weight: a factor for each element of the last dimensions
        eps: what is added to the mean square

    Example:
        >>> turnout.nn.functional.rms_norm(turnout.tensor([1.0, 3.0]), (2,))
        tensor([0.4472, 1.3416])
    """
    try:
        return _functions.rms_norm(input, normalized_shape, weight, eps)
    except Exception as error:
        shorten(error)
        raise


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise groups of the channels of [N, C, ...] to mean 0 and variance 1; then times weight plus bias, both [C].

    Raises ShapeError, a RuntimeError, if the channels are not a multiple of the groups, ValueError for one element per group.

    Arguments:
        num_groups: the number of groups of channels

    Example:
        >>> turnout.nn.functional.group_norm(turnout.tensor([[1.0, 3.0]]), 1)
        tensor([[-1.0000,  1.0000]])
    """
    try:
        shape: Sequence[int]
        try:
            shape = input.shape
        except AttributeError:
            shape = ()  # the operator refuses what is no tensor
        if len(shape) >= 2 and num_groups > 0:
            images, channels, *places = shape
            _more_than_one("group_norm", [images * channels // num_groups, num_groups, *places])
        return _functions.group_norm(input, num_groups, weight, bias, eps)
    except Exception as error:
        shorten(error)
        raise


def _more_than_one(name: str, shape: Sequence[int]) -> None:
    count = shape[0]
    for n in shape[2:]:
        count *= n
    if count == 1:
        raise ArgumentError(f"{name}: more than one element per channel is needed in training, got shape {list(shape)}")


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
    bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalise each channel over the batch to mean 0 and variance 1. Unless `training`, uses the running statistics.

    Training updates the running statistics by `momentum`. Raises ArgumentError for one element per channel in training.

    Arguments:
        training: whether statistics are those of the batch

    Example:
        >>> turnout.nn.functional.batch_norm(turnout.tensor([[1.0], [3.0]]), None, None, training=True)
        tensor([[-1.0000],
                [ 1.0000]])
    """
    try:
        if training and input.ndim >= 2:
            _more_than_one("batch_norm", input.shape)
        return _functions.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)
    except Exception as error:
        shorten(error)
        raise


@shortening
def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
    bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Normalise each channel of each image to mean 0 and variance 1; see `batch_norm`.

    Arguments:
        use_input_stats: whether statistics are those of the input, else the running ones

    Example:
        >>> turnout.nn.functional.instance_norm(turnout.tensor([[[1.0, 3.0]]]))
        tensor([[[-1.0000,  1.0000]]])
    """
    if use_input_stats:
        count = 1
        for n in input.shape[2:]:
            count *= n
        if count == 1:
            raise ArgumentError(
                f"instance_norm: more than one element per channel is needed in training, got shape {list(input.shape)}"
            )
    return _functions.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


@shortening
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """input / (k + alpha * mean of the squares of `size` neighbouring channels) ** beta. Krizhevsky et al. (2012).

    Raises ArgumentError for fewer than 3 dimensions.

    Arguments:
        size: the number of neighbouring channels
        alpha: the factor of the mean
        beta: the exponent
        k: what is added to the mean

    Example:
        >>> turnout.nn.functional.local_response_norm(turnout.tensor([[[1.0], [3.0]]]), 2).shape
        turnout.Size([1, 2, 1])
    """
    if input.ndim < 3:
        raise ArgumentError(f"local_response_norm: 'input' must have at least 3 dimensions, got {input.ndim}")
    if not input.numel():
        return input
    square = (input * input).unsqueeze(1)
    behind, before = (size - 1) // 2, size // 2
    made: Any
    if input.ndim == 3:
        padded = _generated.pad(square, (0, 0, before, behind))
        made = _generated.avg_pool2d(padded, (size, 1), stride=1).squeeze(1)
    else:
        shape = input.shape
        square = square.view((shape[0], 1, shape[1], shape[2], -1))
        padded = _generated.pad(square, (0, 0, 0, 0, before, behind))
        made = _generated.avg_pool3d(padded, (size, 1, 1), stride=1).squeeze(1).view(shape)
    return input / (made * alpha + k).pow(beta)


@shortening
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """The input divided by its p-norm along a dim, or by eps if that is larger.

    Arguments:
        input: the input
        p: the order of the norm
        dim: the dimension, or the dimensions, of a vector
        eps: the smallest divisor
        out: the tensor that the result is written into

    Example:
        >>> turnout.nn.functional.normalize(turnout.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    from turnout_aten import linalg

    norm = linalg.vector_norm(input, p, dim, keepdim=True).clamp(min=eps).expand_as(input)
    return _functions.div(input, norm, out=out)


__all__ = describe(
    globals(),
    input="the input, [N, C, ...]",
    normalized_shape="the lengths of the last dimensions",
    weight="a factor for each channel, 1 by default",
    bias="what is added to each channel, 0 by default",
    eps="what is added to the variance, so that it is not 0",
    running_mean="the running means, one for each channel",
    running_var="the running variances, one for each channel",
    momentum="the share of the new statistics in the running ones",
)
