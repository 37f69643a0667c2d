"""Activation functions of `turnout.nn.functional`.

Each takes a tensor and returns one of the same shape and dtype; with `inplace` the result is written into the tensor. An integer
tensor raises DTypeError if the results are not integers.
"""

from __future__ import annotations

from turnout_aten.generated import functions as _functions
from turnout_aten.generated import nn_functional as _generated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(0, x)."""
    return _functions.relu_(input) if inplace else _functions.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x), 6)."""
    return _generated.relu6_(input) if inplace else _generated.relu6(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x) - 1) below."""
    return _generated.elu_(input, alpha) if inplace else _generated.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu with the constants of self-normalising networks."""
    return _functions.selu_(input) if inplace else _functions.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x above 0, alpha (exp(x / alpha) - 1) below. Raises ArgumentError for alpha 0."""
    return _functions.celu_(input, alpha) if inplace else _functions.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x above 0, negative_slope * x below."""
    return _generated.leaky_relu_(input, negative_slope) if inplace else _generated.leaky_relu(input, negative_slope)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x limited to [min_val, max_val]. Raises ArgumentError if the limits cross."""
    return _generated.hardtanh_(input, min_val, max_val) if inplace else _generated.hardtanh(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(0, x + 3), 6) / 6."""
    return _generated.hardsigmoid_(input) if inplace else _generated.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x hardsigmoid(x)."""
    return _generated.hardswish_(input) if inplace else _generated.hardswish(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x sigmoid(x)."""
    return _generated.silu_(input) if inplace else _generated.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(softplus(x))."""
    return _generated.mish_(input) if inplace else _generated.mish(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x above the threshold, `value` elsewhere."""
    chosen = _functions.threshold_ if inplace else _functions.threshold
    return chosen(input, threshold, value)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second. Raises ShapeError for an odd length."""
    return _generated.glu(input, dim)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """leaky_relu with one slope per channel (dim 1), or one for all channels. input and weight must have one dtype."""
    return _functions.prelu(input, weight)


def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """leaky_relu with random slopes from [lower, upper) while training, else with their mean."""
    return (_functions.rrelu_ if inplace else _functions.rrelu)(input, lower, upper, training)


def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(x)), computed without cancellation."""
    return _generated.log_sigmoid(input)


def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x outside [-lambd, lambd], 0 inside."""
    return _functions.hardshrink(input, lambd)


def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved towards 0 by lambd, but not past 0. Raises ArgumentError for a negative lambd."""
    return _generated.softshrink(input, lambd)


def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """log(1 + exp(beta x)) / beta; x where beta x is above the threshold."""
    return _generated.softplus(input, beta, threshold)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def softmin(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """softmax of the negated input along a dim, computed in `dtype`."""
    return _functions.softmax(_functions.neg(input), dim, dtype)


__all__ = [
    "celu",
    "elu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "silu",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanhshrink",
    "threshold",
]
