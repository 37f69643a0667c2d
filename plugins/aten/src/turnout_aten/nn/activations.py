"""Activation functions of `turnout.nn.functional`.

Each takes a tensor and returns one of the same shape and dtype; with `inplace` the result is written into the tensor. An integer
tensor raises DTypeError if the results are not integers.
"""

from __future__ import annotations

from turnout.operators.tracebacks import shorten, shortening
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as _functions
from turnout_aten.generated import nn_functional as _generated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x).

    Example:
        >>> turnout.nn.functional.relu(turnout.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    try:
        return _functions.relu_(input) if inplace else _functions.relu(input)
    except Exception as error:
        shorten(error)
        raise


@shortening
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6).

    Example:
        >>> turnout.nn.functional.relu6(turnout.tensor([-1.0, 2.0, 9.0]))
        tensor([0., 2., 6.])
    """
    return _generated.relu6_(input) if inplace else _generated.relu6(input)


@shortening
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x) - 1) below.

    Example:
        >>> turnout.nn.functional.elu(turnout.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return _generated.elu_(input, alpha) if inplace else _generated.elu(input, alpha)


@shortening
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu with the constants of self-normalising networks.

    Example:
        >>> turnout.nn.functional.selu(turnout.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
    """
    return _functions.selu_(input) if inplace else _functions.selu(input)


@shortening
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x / alpha) - 1) below. Raises ArgumentError for alpha 0.

    Example:
        >>> turnout.nn.functional.celu(turnout.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return _functions.celu_(input, alpha) if inplace else _functions.celu(input, alpha)


@shortening
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope * x below.

    Arguments:
        negative_slope: the slope below 0

    Example:
        >>> turnout.nn.functional.leaky_relu(turnout.tensor([-1.0, 2.0]))
        tensor([-0.0100,  2.0000])
    """
    return _generated.leaky_relu_(input, negative_slope) if inplace else _generated.leaky_relu(input, negative_slope)


@shortening
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]. Raises ArgumentError if the limits cross.

    Arguments:
        min_val: the lower limit
        max_val: the upper limit

    Example:
        >>> turnout.nn.functional.hardtanh(turnout.tensor([-2.0, 0.5, 3.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    return _generated.hardtanh_(input, min_val, max_val) if inplace else _generated.hardtanh(input, min_val, max_val)


@shortening
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x + 3), 6) / 6.

    Example:
        >>> turnout.nn.functional.hardsigmoid(turnout.tensor([-4.0, 0.0, 1.0]))
        tensor([0.0000, 0.5000, 0.6667])
    """
    return _generated.hardsigmoid_(input) if inplace else _generated.hardsigmoid(input)


@shortening
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x hardsigmoid(x).

    Example:
        >>> turnout.nn.functional.hardswish(turnout.tensor([-4.0, 1.0, 4.0]))
        tensor([-0.0000, 0.6667, 4.0000])
    """
    return _generated.hardswish_(input) if inplace else _generated.hardswish(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x sigmoid(x).

    Example:
        >>> turnout.nn.functional.silu(turnout.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])
    """
    try:
        return _generated.silu_(input) if inplace else _generated.silu(input)
    except Exception as error:
        shorten(error)
        raise


@shortening
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(softplus(x)).

    Example:
        >>> turnout.nn.functional.mish(turnout.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])
    """
    return _generated.mish_(input) if inplace else _generated.mish(input)


@shortening
def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above the threshold, `value` elsewhere.

    Arguments:
        threshold: the threshold
        value: the value of other elements

    Example:
        >>> turnout.nn.functional.threshold(turnout.tensor([-1.0, 2.0]), 0.0, 9.0)
        tensor([9., 2.])
    """
    chosen = _functions.threshold_ if inplace else _functions.threshold
    return chosen(input, threshold, value)


@shortening
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second. Raises ShapeError for an odd length.

    Arguments:
        dim: the dimension that is halved

    Example:
        >>> turnout.nn.functional.glu(turnout.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])
    """
    return _generated.glu(input, dim)


@shortening
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """leaky_relu with one slope per channel (dim 1), or one for all channels. input and weight must have one dtype.

    Arguments:
        weight: one slope, or one for each channel

    Example:
        >>> turnout.nn.functional.prelu(turnout.tensor([-1.0, 2.0]), turnout.tensor([0.5]))
        tensor([-0.5000,  2.0000])
    """
    return _functions.prelu(input, weight)


@shortening
def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """leaky_relu with random slopes from [lower, upper) while training, else with their mean.

    Arguments:
        lower: the smallest slope
        upper: the largest slope
        training: whether slopes are random

    Example:
        >>> turnout.nn.functional.rrelu(turnout.tensor([-1.0, 2.0]))
        tensor([-0.2292,  2.0000])
    """
    return (_functions.rrelu_ if inplace else _functions.rrelu)(input, lower, upper, training)


@shortening
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), computed without cancellation.

    Example:
        >>> turnout.nn.functional.logsigmoid(turnout.tensor([0.0, 2.0]))
        tensor([-0.6931, -0.1269])
    """
    return _generated.log_sigmoid(input)


@shortening
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x outside [-lambd, lambd], 0 inside.

    Example:
        >>> turnout.nn.functional.hardshrink(turnout.tensor([-1.0, 0.2]))
        tensor([-1.,  0.])
    """
    return _functions.hardshrink(input, lambd)


@shortening
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, but not past 0. Raises ArgumentError for a negative lambd.

    Example:
        >>> turnout.nn.functional.softshrink(turnout.tensor([-1.0, 0.2]))
        tensor([-0.5000,  0.0000])
    """
    return _generated.softshrink(input, lambd)


@shortening
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta x)) / beta; x where beta x is above the threshold.

    Arguments:
        beta: the factor of x in the exponent
        threshold: where the function becomes linear

    Example:
        >>> turnout.nn.functional.softplus(turnout.tensor([0.0, 30.0]))
        tensor([ 0.6931, 30.0000])
    """
    return _generated.softplus(input, beta, threshold)


@shortening
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x).

    Example:
        >>> turnout.nn.functional.tanhshrink(turnout.tensor([0.0, 1.0]))
        tensor([0.0000, 0.2384])
    """
    return input - input.tanh()


@shortening
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|).

    Example:
        >>> turnout.nn.functional.softsign(turnout.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


@shortening
def softmin(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """softmax of the negated input along a dim, computed in `dtype`.

    Arguments:
        dim: the dimension over which the results add up to 1
        dtype: the dtype in which it is computed; by default, that of `input`

    Example:
        >>> turnout.nn.functional.softmin(turnout.tensor([0.0, 1.0]), 0)
        tensor([0.7311, 0.2689])
    """
    return _functions.softmax(_functions.neg(input), dim, dtype)


@shortening
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A random draw from the categories along a dim that has a gradient, Jang et al. (2017), Maddison et al. (2017).

    Arguments:
        logits: the logarithms of the probabilities, up to a constant
        tau: the temperature; near 0, the results are near 0 and 1
        hard: whether the results are 0 and 1, with the gradient of those that are not
        eps: without effect
        dim: the dimension of the categories

    Example:
        >>> turnout.nn.functional.gumbel_softmax(turnout.tensor([0.0, 100.0]), hard=True)
        tensor([0., 1.])
    """
    noise = _functions.neg(_functions.log(_functions.empty_like(logits).exponential_()))  # of the Gumbel distribution
    soft = _functions.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = _functions.scatter(_functions.zeros_like(soft), dim, soft.argmax(dim, keepdim=True), 1.0)
    return chosen - soft.detach() + soft


__all__ = describe(
    globals(),
    input="a tensor of any shape",
    inplace="whether the result is written into `input`",
    alpha="the lower limit is -alpha",
    lambd="half the width of the interval",
)
