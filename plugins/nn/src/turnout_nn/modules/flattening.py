"""Modules that change the shape of a tensor: `Flatten`, `Unflatten`, `Fold`, `Unfold`."""

from __future__ import annotations

from collections.abc import Sequence

from turnout.nn import functional

from turnout import Tensor
from turnout_aten.plugin_api import describe
from turnout_nn.layers import Layer, Size, layer


@layer
class Flatten(Layer):
    """Makes one dimension of several, of all but the first by default.

    Arguments:
        start_dim: the first of them
        end_dim: the last

    Example:
        >>> turnout.nn.Flatten()(turnout.zeros(2, 3, 4)).shape
        turnout.Size([2, 12])
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        """The input in another shape."""
        return input.flatten(self.start_dim, self.end_dim)


@layer
class Unflatten(Layer):
    """Makes several dimensions of one.

    # differs from torch: `Unflatten` has no names of dimensions, as tensors have none.

    Arguments:
        dim: the dimension
        unflattened_size: the sizes that it becomes; one of them may be -1

    Example:
        >>> turnout.nn.Unflatten(1, (3, 4))(turnout.zeros(2, 12)).shape
        turnout.Size([2, 3, 4])
    """

    dim: int
    unflattened_size: Sequence[int]

    def forward(self, input: Tensor) -> Tensor:
        """The input in another shape."""
        return input.unflatten(self.dim, self.unflattened_size)


@layer
class Fold(Layer):
    """Adds windows, [N, C * window, L], up in images, [N, C, *output_size].

    Example:
        >>> turnout.nn.Fold((2, 2), 1)(turnout.zeros(1, 3, 4)).shape
        turnout.Size([1, 3, 2, 2])
    """

    output_size: Size
    kernel_size: Size
    dilation: Size = 1
    padding: Size = 0
    stride: Size = 1
    __function__ = functional.fold


@layer
class Unfold(Layer):
    """Takes windows, [N, C * window, L], from images, [N, C, H, W].

    Example:
        >>> turnout.nn.Unfold(2)(turnout.zeros(1, 3, 3, 3)).shape
        turnout.Size([1, 12, 4])
    """

    kernel_size: Size
    dilation: Size = 1
    padding: Size = 0
    stride: Size = 1
    __function__ = functional.unfold


describe(globals())
