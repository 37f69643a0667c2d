"""Modules that set elements or channels to zero at random, in training only."""

from __future__ import annotations

from typing import ClassVar

from turnout.nn import functional

from turnout import Tensor
from turnout.errors import ArgumentError
from turnout_aten.plugin_api import describe
from turnout_nn import errors
from turnout_nn.layers import Layer, layer


@layer
class _Dropout(Layer):
    """What the classes have in common: a probability, which is checked."""

    p: float = 0.5
    inplace: bool = False
    shows: ClassVar[str] = "p={p}, inplace={inplace}"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.p <= 1:
            raise ArgumentError(errors.no_probability(type(self).__name__, "p", self.p))

    def forward(self, input: Tensor) -> Tensor:
        """What is kept."""
        return type(self).__function__(input, self.p, self.training, self.inplace)


class Dropout(_Dropout):
    """In training, each element is zero with probability `p`, and divided by `1 - p` otherwise.

    Example:
        >>> turnout.nn.Dropout(0.2).eval()(turnout.ones(2))
        tensor([1., 1.])
    """

    __function__ = functional.dropout


class Dropout1d(_Dropout):
    """In training, each channel of [N, C, L] or [C, L] is zero with probability `p`, and divided by `1 - p` otherwise.

    Example:
        >>> turnout.nn.Dropout1d().eval()(turnout.ones(1, 2)).shape
        turnout.Size([1, 2])
    """

    __function__ = functional.dropout1d


class Dropout2d(_Dropout):
    """In training, each channel of [N, C, H, W] or [C, H, W] is zero with probability `p`, and divided by `1 - p` otherwise.

    Example:
        >>> turnout.nn.Dropout2d().eval()(turnout.ones(1, 1, 2)).shape
        turnout.Size([1, 1, 2])
    """

    __function__ = functional.dropout2d


class Dropout3d(_Dropout):
    """In training, each channel of [N, C, D, H, W] or [C, D, H, W] is zero with probability `p`, else divided by `1 - p`.

    Example:
        >>> turnout.nn.Dropout3d().eval()(turnout.ones(1, 1, 1, 2)).shape
        turnout.Size([1, 1, 1, 2])
    """

    __function__ = functional.dropout3d


class AlphaDropout(_Dropout):
    """Dropout that keeps the mean and the variance of what `SELU` returns: what is dropped gets SELU's lower limit.

    Arguments:
        inplace: without effect

    Example:
        >>> turnout.nn.AlphaDropout().eval()(turnout.ones(2))
        tensor([1., 1.])
    """

    __function__ = functional.alpha_dropout

    def forward(self, input: Tensor) -> Tensor:
        """What is kept."""
        return type(self).__function__(input, self.p, self.training)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels.

    Arguments:
        inplace: without effect

    Example:
        >>> turnout.nn.FeatureAlphaDropout().eval()(turnout.ones(1, 2, 1)).shape
        turnout.Size([1, 2, 1])
    """

    __function__ = functional.feature_alpha_dropout

    def forward(self, input: Tensor) -> Tensor:
        """What is kept."""
        return type(self).__function__(input, self.p, self.training)


describe(globals())
