"""Normalisation over batches, instances, groups, layers, and neighbouring channels."""

from __future__ import annotations

from typing import Any, ClassVar

from turnout.nn import functional

import turnout
from turnout import Tensor, no_grad
from turnout.errors import ArgumentError
from turnout_aten.plugin_api import describe
from turnout_nn import errors
from turnout_nn.layers import Layer, OfDims, check_dims, layer
from turnout_nn.module import Module
from turnout_nn.parameters import Parameter, empty_parameter


class _Affine(Module):
    """A module that may scale and shift what it has normalised."""

    weight: Parameter | None
    bias: Parameter | None

    def _add_affine(self, shape: tuple[int, ...], weight: bool, bias: bool, made: Any) -> None:
        self.register_parameter("weight", empty_parameter(shape, *made) if weight else None)
        self.register_parameter("bias", empty_parameter(shape, *made) if bias else None)

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        with no_grad():
            if self.weight is not None:
                self.weight.fill_(1.0)
            if self.bias is not None:
                self.bias.zero_()


class _Running(_Affine, OfDims):
    """Normalisation of each channel, with means and variances that may be kept for evaluation."""

    dims: ClassVar[tuple[int, ...]]  # of inputs
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None
    _version = 2  # version 1 had no num_batches_tracked

    def _set_up(
        self, num_features: int, eps: float, momentum: float | None, affine: bool, tracked: bool, bias: bool, made: Any
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = tracked
        self._add_affine((num_features,), affine, affine and bias, made)
        device, dtype = made
        self.register_buffer("running_mean", turnout.zeros(num_features, device=device, dtype=dtype) if tracked else None)
        self.register_buffer("running_var", turnout.ones(num_features, device=device, dtype=dtype) if tracked else None)
        count = turnout.tensor(0, dtype=turnout.int64, device=device) if tracked else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running means to 0, the running variances to 1, and the number of batches to 0."""
        if self.running_mean is not None and self.running_var is not None and self.num_batches_tracked is not None:
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0, and forget the running values."""
        self.reset_running_stats()
        super().reset_parameters()

    @classmethod
    def is_batched(cls, input: Tensor) -> bool:
        """Whether dimension 1 is that of channels, not dimension 0."""
        return True

    def extra_repr(self) -> str:
        """The values of the arguments."""
        shown = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"
        return f"{shown}, bias={self.bias is not None}, track_running_stats={self.track_running_stats}"

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.num_batches_tracked is not None and key not in state_dict:
            state_dict[key] = self.num_batches_tracked.clone()
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_Running):
    """Normalisation over the batch and the positions."""

    about = """Gives each channel of [N, C, {sizes}]{fill} mean 0 and variance 1 over the batch; in evaluation, by running values.

    Raises ShapeError for inputs with other dimensions.

    Example:
        >>> turnout.nn.{name}(3)(turnout.randn(2, 3{of[4]})).shape
        turnout.Size([2, 3{of[4]}])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        self._set_up(num_features, eps, momentum, affine, track_running_stats, bias, (device, dtype))

    def forward(self, input: Tensor) -> Tensor:
        """The input with mean 0 and variance 1 in each channel, scaled and shifted.

        Arguments:
            input: [N, num_features, ...]
        """
        check_dims(self, input, *self.dims)
        factor = self.momentum or 0.0
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        mean, variance = self.running_mean, self.running_var
        of_batch = self.training or mean is None
        if self.training and not self.track_running_stats:
            mean = variance = None
        return functional.batch_norm(input, mean, variance, self.weight, self.bias, of_batch, factor, self.eps)


class _InstanceNorm(_Running):
    """Normalisation over the positions of each element of the batch.

    Arguments:
        momentum: the weight of a new batch in the running values
        track_running_stats: whether running values are kept, and used in evaluation
    """

    about = """Gives each channel of each element of [N, C, {sizes}] or [C, {sizes}] mean 0 and variance 1.

    Raises ShapeError for inputs with other dimensions, and ArgumentError for other channels.

    Example:
        >>> turnout.nn.{name}(3)(turnout.randn(2, 3{of[4]})).shape
        turnout.Size([2, 3{of[4]}])
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        self._set_up(num_features, eps, momentum, affine, track_running_stats, bias, (device, dtype))

    @classmethod
    def is_batched(cls, input: Tensor) -> bool:
        """Whether dimension 1 is that of channels, not dimension 0."""
        return bool(input.ndim != cls.dims[0])

    def forward(self, input: Tensor) -> Tensor:
        """The input with mean 0 and variance 1 in each channel of each element, scaled and shifted.

        Arguments:
            input: [N, num_features, ...], or without N
        """
        check_dims(self, input, *self.dims)
        alone = not self.is_batched(input)
        if self.affine and input.shape[0 if alone else 1] != self.num_features:
            raise ArgumentError(errors.wrong_channels(type(self).__name__, self.num_features, input))
        of_input = self.training or not self.track_running_stats
        batch = input.unsqueeze(0) if alone else input
        state = (self.running_mean, self.running_var, self.weight, self.bias)
        made = functional.instance_norm(batch, *state, of_input, self.momentum or 0.0, self.eps)
        return made.squeeze(0) if alone else made


class BatchNorm1d(_BatchNorm, ndim=1):
    fill = " or [N, C]"
    dims = (2, 3)


class BatchNorm2d(_BatchNorm, ndim=2):
    dims = (4,)


class BatchNorm3d(_BatchNorm, ndim=3):
    dims = (5,)


class InstanceNorm1d(_InstanceNorm, ndim=1):
    dims = (2, 3)


class InstanceNorm2d(_InstanceNorm, ndim=2):
    dims = (3, 4)


class InstanceNorm3d(_InstanceNorm, ndim=3):
    dims = (4, 5)


class LayerNorm(_Affine):
    """Gives each element of a batch mean 0 and variance 1 over the last dimensions.

    Arguments:
        elementwise_affine: whether elements are scaled by `weight` and shifted by `bias`, which begin as 1 and 0
        bias: whether there is a `bias`, if `elementwise_affine`
        device: where the parameters are

    Example:
        >>> turnout.nn.LayerNorm(4)(turnout.randn(2, 4)).shape
        turnout.Size([2, 4])
    """

    def __init__(
        self,
        normalized_shape: int | list[int] | tuple[int, ...],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._add_affine(self.normalized_shape, elementwise_affine, elementwise_affine and bias, (device, dtype))
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input.

        Arguments:
            input: [..., *normalized_shape]
        """
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The values of the arguments."""
        shown = f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        return f"{shown}, bias={self.bias is not None}"


class GroupNorm(_Affine):
    """Gives each group of channels of each element of a batch mean 0 and variance 1.

    Raises ArgumentError for groups that do not divide the channels.

    Arguments:
        num_groups: the number of groups
        num_channels: the number of channels
        device: where the parameters are

    Example:
        >>> turnout.nn.GroupNorm(2, 4)(turnout.randn(2, 4, 3)).shape
        turnout.Size([2, 4, 3])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups <= 0 or num_channels % num_groups:
            raise ArgumentError(errors.wrong_groups("GroupNorm", (num_channels,), num_groups))
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._add_affine((num_channels,), affine, affine and bias, (device, dtype))
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input.

        Arguments:
            input: [N, num_channels, ...]
        """
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The values of the arguments."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


class RMSNorm(_Affine):
    """Divides the last dimensions by the root of the mean of their squares.

    Arguments:
        eps: what is added to the mean; None for the smallest step of the dtype at 1
        elementwise_affine: whether elements are scaled by `weight`, which begins as 1
        device: where the weight is
        dtype: its dtype

    Example:
        >>> turnout.nn.RMSNorm(2)(turnout.tensor([3.0, 3.0])).detach()
        tensor([1., 1.])
    """

    def __init__(
        self,
        normalized_shape: int | list[int] | tuple[int, ...],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self.register_parameter("weight", empty_parameter(self.normalized_shape, device, dtype) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1."""
        if self.weight is not None:
            with no_grad():
                self.weight.fill_(1.0)

    def forward(self, x: Tensor) -> Tensor:
        """The normalised input.

        Arguments:
            x: [..., *normalized_shape]
        """
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The values of the arguments."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


def _shape(given: Any) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)


@layer
class LocalResponseNorm(Layer):
    """Divides each channel by a power of the mean of squares over neighbouring channels.

    Example:
        >>> turnout.nn.LocalResponseNorm(2)(turnout.zeros(1, 4, 3)).shape
        turnout.Size([1, 4, 3])
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0
    shows: ClassVar[str] = "{size}, alpha={alpha}, beta={beta}, k={k}"
    __function__ = functional.local_response_norm


@layer
class CrossMapLRN2d(LocalResponseNorm):
    """`LocalResponseNorm` of images as older programs have it: an even `size` counts one channel less, and divides by `size`.

    # differs from torch: `CrossMapLRN2d` does not count channel 0 for channels from which it is far.

    Arguments:
        alpha: the factor of the sum of squares, which is divided by `size`

    Example:
        >>> turnout.nn.CrossMapLRN2d(2)(turnout.zeros(1, 4, 3, 3)).shape
        turnout.Size([1, 4, 3, 3])
    """

    k: float = 1

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input."""
        window = 2 * ((self.size - 1) // 2) + 1
        return functional.local_response_norm(input, window, self.alpha * window / self.size, self.beta, self.k)


describe(
    globals(),
    num_features="the number of channels",
    eps="what is added to the variance",
    momentum="the weight of a new batch in the running values; None for the average over all batches",
    affine="whether each channel is scaled by `weight` and shifted by `bias`, which begin as 1 and 0",
    track_running_stats="whether running values are kept",
    device="where parameters and buffers are",
    dtype="their dtype",
    bias="whether there is a `bias`, if `affine`",
    normalized_shape="the sizes of these dimensions; a number for the last one",
)
