"""Shape functions of activations and their backward passes. The result has the shape of the input; few accept integers."""

from __future__ import annotations

from turnout.dtypes import BOOL, COMPLEX, INT
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten.dtypes import check_held
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast, wrap_dim
from turnout_aten.shapes.layouts import as_halves, as_operands
from turnout_aten.shapes.pointwise import (
    floating,
    floating_only,
    floating_real,
    one_tensor,
    refuse,
    refuse_complex,
    rounds_number,
)
from turnout_aten.shapes.promotion import result_type
from turnout_aten.shapes.specs import Out, Result
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout_aten.shapes.specs import ShapeTable


def rectified(self: Tensor) -> Out | Result:
    """relu of a real tensor."""
    dtype = self.dtype
    refuse(dtype, "relu", BOOL, COMPLEX)
    return one_tensor(self, dtype, dtype)


# What `approximate` may say -> the name of the function that backends compute; its gradient's ends in "_backward".
GELU = {"none": "gelu", "tanh": "gelu_tanh"}


def gelu(self: Tensor, approximate: str = "none") -> Out | Result:
    """Floating-point only. `approximate` must be 'none' or 'tanh'."""
    _check_approximation(approximate)
    dtype = self.dtype
    refuse(dtype, "gelu", BOOL, INT, COMPLEX)
    return one_tensor(self, dtype, dtype)


def _check_approximation(word: str) -> None:
    if word not in GELU:
        raise ArgumentError(f"gelu: approximate must be {' or '.join(map(repr, GELU))}, got {word!r}")


def silu(self: Tensor) -> Out | Result:
    """Floating point or complex."""
    dtype = self.dtype
    refuse(dtype, "silu", BOOL, INT)
    return one_tensor(self, dtype, dtype)


def hardtanh(self: Tensor, min_val: Any = -1, max_val: Any = 1) -> Out | Result:
    """Real tensors. min_val must not be greater than max_val."""
    dtype = self.dtype
    refuse(dtype, "hardtanh", BOOL, COMPLEX)
    refuse_complex(dtype, "hardtanh", min_val, max_val)
    if not dtype.is_signed and (min_val < 0 or max_val < 0):
        raise DTypeError(f"hardtanh: the limits of a {dtype.name} tensor must not be negative, got {min_val} and {max_val}")
    if min_val > max_val:
        raise ArgumentError(f"hardtanh: min_val must not be above max_val, got {min_val} and {max_val}")
    check_held(dtype, min_val, "hardtanh", "min_val")
    check_held(dtype, max_val, "hardtanh", "max_val")
    return one_tensor(self, dtype, dtype)


def softshrink(self: Tensor, lambd: Any = 0.5) -> Out | Result:
    """Floating-point only. lambd must not be negative."""
    dtype = self.dtype
    refuse(dtype, "softshrink", BOOL, INT, COMPLEX)
    refuse_complex(dtype, "softshrink", lambd)
    if lambd < 0:
        raise ArgumentError(texts.negative("softshrink", "lambd", lambd))
    return one_tensor(self, dtype, dtype)


def threshold(self: Tensor, threshold: Any, value: Any) -> Out | Result:
    """Real tensors."""
    dtype = self.dtype
    refuse(dtype, "threshold", BOOL, COMPLEX)
    refuse_complex(dtype, "threshold", threshold, value)
    check_held(dtype, threshold, "threshold", "threshold")
    check_held(dtype, value, "threshold", "value")
    return one_tensor(self, dtype, dtype)


def halved(name: str, shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """A shape with half the length along `dim`, which must be even."""
    if not shape:
        raise ShapeError(texts.needs_a_dim(name))
    at = wrap_dim(dim, len(shape))
    if shape[at] % 2:
        raise ShapeError(f"{name}: the length along dim {dim} must be even, got {shape[at]} of shape {list(shape)}")
    return (*shape[:at], shape[at] // 2, *shape[at + 1 :])


def glu(self: Tensor, dim: int = -1) -> Out:
    """Half the length along `dim`, which must be even."""
    dtype = self.dtype
    refuse(dtype, "glu", BOOL, INT, COMPLEX)
    made = halved("glu", self.array.shape, dim)
    return Out(made, dtype, as_halves(made, self))


# ---- backward formulas


def _backward(grad_output: Tensor, other: Tensor, name: str) -> Result:
    computed = result_type(grad_output, other)
    shape = broadcast(grad_output.array.shape, other.array.shape)
    operands = {"grad_output": grad_output, name: other}
    casts = {n: computed for n, t in operands.items() if t.dtype is not computed}
    return Result(Out(shape, computed, as_operands(shape, grad_output, other)), casts)


def threshold_backward(grad_output: Tensor, self: Tensor, threshold: Any) -> Out | Result:
    """grad_output where self is above the threshold, else 0."""
    answer = _backward(grad_output, self, "self")
    answer.outs[0].strides = as_operands(answer.outs[0].shape, self, grad_output)
    return answer


def output_backward(grad_output: Tensor, output: Tensor) -> Out | Result:
    """Gradients that are a function of the output: sigmoid, tanh."""
    return _backward(grad_output, output, "output")


def gelu_backward(grad_output: Tensor, self: Tensor, approximate: str = "none") -> Out | Result:
    """The gradient of gelu."""
    _check_approximation(approximate)
    return _backward(grad_output, self, "self")


def silu_backward(grad_output: Tensor, self: Tensor) -> Out | Result:
    """The gradient of silu. Floating-point and complex."""
    refuse(result_type(grad_output, self), "silu_backward", BOOL, INT)
    return _backward(grad_output, self, "self")


# fmt: off
SHAPES: ShapeTable = {
    "sigmoid.out": floating,
    "erf.out": floating_real("erf"),
    "relu.out": rectified,
    "gelu.out": gelu,
    "silu.out": silu,
    "hardtanh.out": hardtanh,
    "softshrink.out": softshrink,
    "threshold.out": threshold,
    "glu.out": glu,
    "elu.out": floating_only("elu"),
    "leaky_relu.out": floating_only("leaky_relu"),
    "hardsigmoid.out": floating_only("hardsigmoid"),
    "hardswish.out": floating_only("hardswish"),
    "hardshrink.out": rounds_number("lambd", floating_only("hardshrink")),
    "softplus.out": floating_only("softplus"),
    "mish.out": floating_only("mish"),
    "threshold_backward.grad_input": threshold_backward,
    "sigmoid_backward.grad_input": output_backward,
    "tanh_backward.grad_input": output_backward,
    "gelu_backward.grad_input": gelu_backward,
    "silu_backward.grad_input": silu_backward,
}
# fmt: on
