"""Activation functions composed of others, and backward passes of activations. Both are written in operators, so they can be
differentiated again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import BOOL, COMPLEX, INT, DType
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.layouts import lying
from turnout_aten.composites.out_variants import into_out
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.activations import halved
from turnout_aten.shapes.extents import expands_to
from turnout_aten.shapes.layouts import as_operands

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor

# Klambauer et al. 2017, "Self-Normalizing Neural Networks"
SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def selu(self: Tensor) -> Tensor:
    """elu with the two constants that preserve mean 0 and variance 1."""
    return aten.elu(self, SELU_ALPHA, SELU_SCALE)


def selu_(self: Tensor) -> Tensor:
    """In place."""
    return aten.elu_(self, SELU_ALPHA, SELU_SCALE)


def celu(self: Tensor, alpha: Any = 1.0) -> Tensor:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1)); alpha must not be 0."""
    return aten.elu(self, alpha, 1.0, _inverse(alpha))


def celu_(self: Tensor, alpha: Any = 1.0) -> Tensor:
    """In place."""
    return aten.elu_(self, alpha, 1.0, _inverse(alpha))


def _inverse(alpha: Any) -> float:
    if alpha == 0:
        raise ArgumentError("celu: alpha must not be 0")
    return 1.0 / alpha


def relu6(self: Tensor) -> Tensor:
    """hardtanh from 0 to 6."""
    return aten.hardtanh(self, 0, 6)


def relu6_(self: Tensor) -> Tensor:
    """In place."""
    return aten.hardtanh_(self, 0, 6)


def prelu(self: Tensor, weight: Tensor) -> Tensor:
    """leaky_relu with one slope per channel (dim 1), or one for all channels."""
    if self.dtype is not weight.dtype:
        raise DTypeError(f"prelu: self and weight must have one dtype, got {self.dtype.name} and {weight.dtype.name}")
    shape = self.shape
    count = weight.numel()
    if len(weight.shape) > 1:
        raise ShapeError(f"prelu: weight must have at most one dimension, got shape {list(weight.shape)}")
    if count != 1:
        if not shape:
            raise ShapeError(f"prelu: weight must have one element for a 0-dim tensor, got {count}")
        channels = shape[1] if len(shape) > 1 else 1
        if channels != count:
            raise ShapeError(f"prelu: {count} slopes for {channels} channels of a tensor of shape {list(shape)}")
        weight = aten.reshape(weight, [1, count, *[1] * (len(shape) - 2)])
    elif weight.shape:
        weight = aten.reshape(weight, [1] * len(shape))
    return aten.where__self(aten.gt__Scalar(self, 0), self, aten.mul__Tensor(weight, self))


def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    """log(1 / (1 + exp(-x))), and exp(-|x|) for the gradient."""
    _only_floats(self.dtype, "log_sigmoid")
    buffer = aten.exp(aten.neg(aten.abs(self)))
    return lying(aten.sub__Tensor(aten.clamp_max(self, 0), aten.log1p(buffer))), lying(buffer)


def log_sigmoid(self: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x)))."""
    return aten.log_sigmoid_forward(self)[0]


log_sigmoid_forward_output = into_out(log_sigmoid_forward, "log_sigmoid_forward.output")
log_sigmoid_out = into_out(log_sigmoid, "log_sigmoid.out")


def _only_floats(dtype: DType, name: str) -> None:
    if dtype.category in (BOOL, INT, COMPLEX):
        raise DTypeError(texts.undefined_for(name, dtype))


# ---- rrelu: the slope is random while training


def rrelu(self: Tensor, lower: Any = 0.125, upper: Any = 1 / 3, training: bool = False, generator: Any = None) -> Tensor:
    """leaky_relu with random slopes from [lower, upper) while training, else with their mean."""
    _limits(self, lower, upper)
    if not training:
        return aten.leaky_relu(self, (lower + upper) / 2)
    slopes = aten.uniform_(aten.empty_like(self), lower, upper, generator=generator)
    return aten.where__self(aten.gt__Scalar(self, 0), self, aten.mul__Tensor(self, slopes))


def rrelu_(self: Tensor, lower: Any = 0.125, upper: Any = 1 / 3, training: bool = False, generator: Any = None) -> Tensor:
    """In place."""
    return aten.copy_(self, aten.rrelu(self, lower, upper, training, generator))


def _limits(self: Tensor, lower: Any, upper: Any) -> None:
    _only_floats(self.dtype, "rrelu")
    if not lower <= upper:
        raise ArgumentError(f"rrelu: lower must not be greater than upper, got {lower} and {upper}")


# ---- backwards


def elu_backward(
    grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Tensor
) -> Tensor:
    """The gradient of elu from its input, or from its result, which suffices if alpha is not negative."""
    x = self_or_result
    if is_result:
        if alpha < 0:
            raise ArgumentError(f"elu_backward: alpha must not be negative where the result is given, got {alpha}")
        below = aten.mul__Scalar(aten.add__Scalar(x, alpha * scale), input_scale)
    else:
        # Clamped because an overflowing exp makes the derivative NaN, even in the branch that is not used.
        low = aten.clamp_max(x, 0)
        below = aten.mul__Scalar(aten.exp(aten.mul__Scalar(low, input_scale)), input_scale * alpha * scale)
    slope = aten.where__ScalarSelf(aten.gt__Scalar(x, 0), scale, below)
    return aten.mul__Tensor(grad_output, slope)


def leaky_relu_backward(grad_output: Tensor, self: Tensor, negative_slope: Any, self_is_result: bool) -> Tensor:
    """The slope applies below 0. From the result, its sign decides, so the slope must not be negative."""
    if self_is_result and negative_slope < 0:
        raise ArgumentError(
            f"leaky_relu_backward: negative_slope must not be negative where the result is given, got {negative_slope}"
        )
    below = aten.mul__Scalar(grad_output, negative_slope)
    return aten.where__self(aten.gt__Scalar(self, 0), grad_output, below)


def _where_inside(inside: Tensor, grad_output: Tensor) -> Tensor:
    made: Tensor = aten.where__ScalarOther(inside, grad_output, 0)
    return lying(made, as_operands(made.shape, grad_output, inside))


def hardtanh_backward(grad_output: Tensor, self: Tensor, min_val: Any, max_val: Any) -> Tensor:
    """The gradient strictly between the limits."""
    inside = aten.logical_and(aten.gt__Scalar(self, min_val), aten.lt__Scalar(self, max_val))
    return _where_inside(inside, grad_output)


def hardsigmoid_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """A sixth between -3 and 3."""
    inside = aten.logical_and(aten.gt__Scalar(self, -3), aten.lt__Scalar(self, 3))
    return _where_inside(inside, aten.mul__Scalar(grad_output, 1 / 6))


def hardswish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """x / 3 + 1/2 between -3 and 3, 0 below, 1 above."""
    slope = aten.add__Scalar(aten.div__Scalar(self, 3), 0.5)
    middle = aten.where__ScalarOther(aten.lt__Scalar(self, 3), slope, 1)
    return aten.mul__Tensor(grad_output, aten.where__ScalarSelf(aten.le__Scalar(self, -3), 0, middle))


def hardshrink_backward(grad_out: Tensor, self: Tensor, lambd: Any) -> Tensor:
    """The gradient outside [-lambd, lambd], else 0."""
    inside = aten.logical_and(aten.ge__Scalar(self, -lambd), aten.le__Scalar(self, lambd))
    made: Tensor = aten.where__ScalarSelf(inside, 0, grad_out)
    return lying(made, as_operands(made.shape, grad_out, self))


softshrink_backward = hardshrink_backward


def softplus_backward(grad_output: Tensor, self: Tensor, beta: Any, threshold: Any) -> Tensor:
    """The sigmoid, 1 above the threshold."""
    scaled = aten.mul__Scalar(self, beta)
    slope = aten.mul__Tensor(grad_output, aten.sigmoid(scaled))
    made: Tensor = aten.where__self(aten.gt__Scalar(scaled, threshold), grad_output, slope)
    return lying(made, as_operands(made.shape, grad_output, self))


def mish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """t + x s (1 - t^2), with t = tanh(softplus(x)) and the sigmoid s."""
    inner = aten.tanh(aten.softplus(self))
    rest = aten.mul__Tensor(aten.mul__Tensor(self, aten.sigmoid(self)), aten.rsub__Scalar(aten.square(inner), 1))
    return aten.mul__Tensor(grad_output, aten.add__Tensor(inner, rest))


def glu_backward(grad_output: Tensor, self: Tensor, dim: int) -> Tensor:
    """s, and x s (1 - s), for the halves x and y of self and the sigmoid s of y."""
    shape = halved("glu_backward", self.shape, dim)
    if not expands_to(grad_output.shape, shape):
        raise ShapeError(texts.not_expanded("glu_backward", "grad_output", grad_output.shape, shape))
    half = shape[dim]
    first = aten.slice__Tensor(self, dim, 0, half, 1)
    gate = aten.sigmoid(aten.slice__Tensor(self, dim, half, 2 * half, 1))
    passed = aten.mul__Tensor(grad_output, gate)
    rest = aten.mul__Tensor(aten.mul__Tensor(passed, first), aten.rsub__Scalar(gate, 1))
    return aten.cat([passed, rest], dim)


def log_sigmoid_backward(grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    """1 - sigmoid(x); `buffer` is not needed for it."""
    return aten.mul__Tensor(grad_output, aten.sigmoid(aten.neg(self)))


# fmt: off
elu_backward_grad_input         = into_out(elu_backward, "elu_backward.grad_input")
leaky_relu_backward_grad_input  = into_out(leaky_relu_backward, "leaky_relu_backward.grad_input")
hardtanh_backward_grad_input    = into_out(hardtanh_backward, "hardtanh_backward.grad_input")
hardsigmoid_backward_grad_input = into_out(hardsigmoid_backward, "hardsigmoid_backward.grad_input")
hardshrink_backward_grad_input  = into_out(hardshrink_backward, "hardshrink_backward.grad_input")
softshrink_backward_grad_input  = into_out(softshrink_backward, "softshrink_backward.grad_input")
softplus_backward_grad_input    = into_out(softplus_backward, "softplus_backward.grad_input")
glu_backward_grad_input         = into_out(glu_backward, "glu_backward.grad_input")
log_sigmoid_backward_grad_input = into_out(log_sigmoid_backward, "log_sigmoid_backward.grad_input")
# fmt: on
