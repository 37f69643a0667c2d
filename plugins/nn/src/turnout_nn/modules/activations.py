"""Functions of single elements, and softmax: one class for each, over the function of its name in `turnout.nn.functional`."""

from __future__ import annotations

from typing import Any, ClassVar

from turnout.nn import functional

import turnout
from turnout import Tensor, no_grad
from turnout.errors import ArgumentError, ShapeError
from turnout_aten.plugin_api import describe
from turnout_nn import errors
from turnout_nn.layers import Layer, layer
from turnout_nn.module import Module
from turnout_nn.parameters import Parameter, empty_parameter


@layer
class ReLU(Layer):
    """`max(x, 0)`.

    Example:
        >>> turnout.nn.ReLU()(turnout.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    inplace: bool = False
    __function__ = functional.relu


@layer
class Threshold(Layer):
    """`x` where it is above a threshold, and a fixed value elsewhere.

    Example:
        >>> turnout.nn.Threshold(1.0, 20.0)(turnout.tensor([0.5, 2.0]))
        tensor([20.,  2.])
    """

    threshold: float
    value: float
    inplace: bool = False
    __function__ = functional.threshold


@layer
class RReLU(Layer):
    """`x` where it is positive, and `a x` elsewhere, with `a` drawn in training, and the mean of its limits else.

    Example:
        >>> turnout.nn.RReLU(0.1, 0.3).eval()(turnout.tensor([-1.0, 2.0]))
        tensor([-0.2000,  2.0000])
    """

    lower: float = 1 / 8
    upper: float = 1 / 3
    inplace: bool = False
    __function__ = functional.rrelu

    def forward(self, input: Tensor) -> Tensor:
        """The function of each element."""
        return type(self).__function__(input, self.lower, self.upper, self.training, self.inplace)


@layer
class Hardtanh(Layer):
    """`x` within limits, and the nearest limit elsewhere.

    Arguments:
        max_val: the upper limit, which is above it

    Example:
        >>> turnout.nn.Hardtanh(-2, 2)(turnout.tensor([-3.0, 1.0]))
        tensor([-2.,  1.])
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False
    __function__ = functional.hardtanh

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.max_val > self.min_val:
            raise ArgumentError(errors.wrong_limits("Hardtanh", self.min_val, self.max_val))


class ReLU6(Hardtanh):
    """`min(max(x, 0), 6)`.

    Example:
        >>> turnout.nn.ReLU6()(turnout.tensor([-1.0, 8.0]))
        tensor([0., 6.])
    """

    shows: ClassVar[str] = ""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


@layer
class Sigmoid(Layer):
    """`1 / (1 + exp(-x))`.

    Example:
        >>> turnout.nn.Sigmoid()(turnout.tensor([0.0]))
        tensor([0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The function of each element."""
        return turnout.sigmoid(input)


@layer
class Hardsigmoid(Layer):
    """`x / 6 + 1 / 2`, limited to 0 and 1.

    Example:
        >>> turnout.nn.Hardsigmoid()(turnout.tensor([-4.0, 0.0]))
        tensor([0.0000, 0.5000])
    """

    inplace: bool = False
    __function__ = functional.hardsigmoid


@layer
class Tanh(Layer):
    """The hyperbolic tangent.

    Example:
        >>> turnout.nn.Tanh()(turnout.tensor([0.0]))
        tensor([0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The function of each element."""
        return turnout.tanh(input)


@layer
class SiLU(Layer):
    """`x sigmoid(x)`.

    Example:
        >>> turnout.nn.SiLU()(turnout.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7311])
    """

    inplace: bool = False
    __function__ = functional.silu


@layer
class Mish(Layer):
    """`x tanh(softplus(x))`.

    Example:
        >>> turnout.nn.Mish()(turnout.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8651])
    """

    inplace: bool = False
    __function__ = functional.mish


@layer
class Hardswish(Layer):
    """`x hardsigmoid(x)`.

    Example:
        >>> turnout.nn.Hardswish()(turnout.tensor([0.0, 3.0]))
        tensor([0., 3.])
    """

    inplace: bool = False
    __function__ = functional.hardswish


@layer
class ELU(Layer):
    """`x` where it is positive, and `alpha (exp(x) - 1)` elsewhere.

    Example:
        >>> turnout.nn.ELU()(turnout.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False
    __function__ = functional.elu


@layer
class CELU(Layer):
    """`x` where it is positive, and `alpha (exp(x / alpha) - 1)` elsewhere.

    Example:
        >>> turnout.nn.CELU()(turnout.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False
    __function__ = functional.celu


@layer
class SELU(Layer):
    """A scaled ELU, whose two constants keep the mean and the variance of layers (Klambauer et al. 2017).

    Example:
        >>> turnout.nn.SELU()(turnout.tensor([0.0, 1.0]))
        tensor([0.0000, 1.0507])
    """

    inplace: bool = False
    __function__ = functional.selu


@layer
class GLU(Layer):
    """`a sigmoid(b)`, where `a` and `b` are the halves of the input along a dimension.

    Example:
        >>> turnout.nn.GLU()(turnout.tensor([2.0, 0.0]))
        tensor([1.])
    """

    dim: int = -1
    __function__ = functional.glu


@layer
class GELU(Layer):
    """`x` times the distribution function of a normal variable.

    Example:
        >>> turnout.nn.GELU()(turnout.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8413])
    """

    approximate: str = "none"
    shows: ClassVar[str] = "approximate={approximate!r}"
    __function__ = functional.gelu

    def forward(self, input: Tensor) -> Tensor:
        """The function of each element."""
        return type(self).__function__(input, approximate=self.approximate)


@layer
class Hardshrink(Layer):
    """`x`, and 0 from `-lambd` to `lambd`.

    Example:
        >>> turnout.nn.Hardshrink()(turnout.tensor([0.3, 1.0]))
        tensor([0., 1.])
    """

    lambd: float = 0.5
    shows: ClassVar[str] = "{lambd}"
    __function__ = functional.hardshrink


@layer
class LeakyReLU(Layer):
    """`x` where it is positive, and `negative_slope x` elsewhere.

    Example:
        >>> turnout.nn.LeakyReLU(0.1)(turnout.tensor([-1.0, 2.0]))
        tensor([-0.1000,  2.0000])
    """

    negative_slope: float = 0.01
    inplace: bool = False
    __function__ = functional.leaky_relu


@layer
class LogSigmoid(Layer):
    """The logarithm of `sigmoid(x)`.

    Example:
        >>> turnout.nn.LogSigmoid()(turnout.tensor([0.0]))
        tensor([-0.6931])
    """

    __function__ = functional.logsigmoid


@layer
class Softplus(Layer):
    """`log(1 + exp(beta x)) / beta`, and `x` where `beta x` is above a threshold.

    Example:
        >>> turnout.nn.Softplus()(turnout.tensor([0.0]))
        tensor([0.6931])
    """

    beta: float = 1.0
    threshold: float = 20.0
    __function__ = functional.softplus


@layer
class Softshrink(Layer):
    """`x` moved towards 0 by `lambd`, and 0 from `-lambd` to `lambd`.

    Example:
        >>> turnout.nn.Softshrink()(turnout.tensor([0.3, 1.0]))
        tensor([0.0000, 0.5000])
    """

    lambd: float = 0.5
    shows: ClassVar[str] = "{lambd}"
    __function__ = functional.softshrink


@layer
class Softsign(Layer):
    """`x / (1 + |x|)`.

    Example:
        >>> turnout.nn.Softsign()(turnout.tensor([1.0]))
        tensor([0.5000])
    """

    __function__ = functional.softsign


@layer
class Tanhshrink(Layer):
    """`x - tanh(x)`.

    Example:
        >>> turnout.nn.Tanhshrink()(turnout.tensor([1.0]))
        tensor([0.2384])
    """

    __function__ = functional.tanhshrink


class PReLU(Module):
    """`x` where it is positive, and `weight x` elsewhere, with a weight that is learned.

    Arguments:
        num_parameters: 1, or the number of channels, each of which has a weight of its own
        init: the initial weight
        device: where the weight is
        dtype: its dtype

    Example:
        >>> turnout.nn.PReLU()(turnout.tensor([-1.0])).detach()
        tensor([-0.2500])
    """

    weight: Parameter

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter((num_parameters,), device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to its initial value."""
        with no_grad():
            self.weight.fill_(self.init)

    def forward(self, input: Tensor) -> Tensor:
        """The function of each element; dimension 1 is that of channels."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of weights."""
        return f"num_parameters={self.num_parameters}"


@layer
class _Softmax(Layer):
    """Numbers along a dimension.

    Arguments:
        dim: the dimension
    """

    dim: int | None = None

    def forward(self, input: Tensor) -> Tensor:
        """The function of the numbers along the dimension."""
        return type(self).__function__(input, _chosen(self.dim, input))


class Softmin(_Softmax):
    """`exp(-x)`, divided by its sum along a dimension.

    Example:
        >>> turnout.nn.Softmin(0)(turnout.zeros(2))
        tensor([0.5000, 0.5000])
    """

    __function__ = functional.softmin


class Softmax(_Softmax):
    """`exp(x)`, divided by its sum along a dimension.

    Example:
        >>> turnout.nn.Softmax(0)(turnout.zeros(2))
        tensor([0.5000, 0.5000])
    """

    __function__ = turnout.softmax


class LogSoftmax(_Softmax):
    """The logarithm of softmax along a dimension.

    Example:
        >>> turnout.nn.LogSoftmax(0)(turnout.zeros(2))
        tensor([-0.6931, -0.6931])
    """

    __function__ = turnout.log_softmax


@layer
class Softmax2d(Layer):
    """Softmax over the channels of images, [N, C, H, W] or [C, H, W]. Raises ShapeError for other inputs.

    Example:
        >>> turnout.nn.Softmax2d()(turnout.zeros(2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Numbers that add up to 1 over the channels."""
        if input.ndim not in (3, 4):
            raise ShapeError(errors.wrong_ndim("Softmax2d", "3 or 4", input))
        return turnout.softmax(input, -3)


def _chosen(dim: int | None, input: Tensor) -> int:
    """The dimension that programs of old mean where they give none: 0 for inputs of 0, 1 and 3 dimensions, else 1."""
    return dim if dim is not None else 0 if input.ndim in (0, 1, 3) else 1


describe(globals())
