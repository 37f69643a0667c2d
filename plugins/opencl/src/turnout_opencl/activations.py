"""Element-wise kernels of activations and of their gradients."""

from __future__ import annotations

from typing import Any

from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.activations import GELU
from turnout_opencl.arrays import ClArray
from turnout_opencl.pointwise import binary, clamp, row, run_map, unary


def with_number(name: str) -> Any:
    """An element-wise function with one parameter."""

    def kernel(self: ClArray, number: Any, out: ClArray) -> None:
        run_map(name, out, self, w=number)

    return kernel


def gelu(self: ClArray, approximate: str, out: ClArray) -> None:
    """gelu, with erf or with the tanh approximation."""
    run_map(GELU[approximate], out, self)


def gelu_backward(grad_output: ClArray, self: ClArray, approximate: str, out: ClArray) -> None:
    """The gradient of gelu."""
    run_map(f"{GELU[approximate]}_backward", out, grad_output, self)


def threshold(self: ClArray, threshold: Any, value: Any, out: ClArray) -> None:
    """`value` where x is at most the threshold."""
    run_map("threshold", out, self, value, w=threshold)


def threshold_backward(grad_output: ClArray, self: ClArray, threshold: Any, out: ClArray) -> None:
    """The gradient where self is above the threshold."""
    run_map("threshold_backward", out, grad_output, self, w=threshold)


def elu(self: ClArray, alpha: Any, scale: Any, input_scale: Any, out: ClArray) -> None:
    """x * scale above 0, (exp(x * input_scale) - 1) * alpha * scale below."""
    run_map("elu", out, self, scale, input_scale, alpha)


def softplus(self: ClArray, beta: Any, threshold: Any, out: ClArray) -> None:
    """log(1 + exp(x * beta)) / beta, and x itself above the threshold."""
    run_map("softplus", out, self, threshold, w=beta)


def glu(self: ClArray, dim: int, out: ClArray) -> None:
    """The first half of a dim times the sigmoid of the second."""
    d = dim % len(self.shape)
    first, second = (self.view(out.shape, self.strides, i * out.shape[d] * self.strides[d]) for i in range(2))
    run_map("glu", out, first, second)


# fmt: off
KERNELS = {
    **{f"{name}.out": row(unary(name)) for name in (
        "relu", "sigmoid", "erf", "silu", "mish", "hardsigmoid", "hardswish",
    )},
    **{f"{name}.out": row(with_number(name)) for name in ("leaky_relu", "hardshrink", "softshrink")},
    **{f"{name}_backward.grad_input": row(binary(f"{name}_backward")) for name in ("silu", "sigmoid", "tanh")},
    "gelu.out":                      row(gelu),
    "gelu_backward.grad_input":      row(gelu_backward),
    "threshold.out":                 row(threshold),
    "threshold_backward.grad_input": row(threshold_backward),
    "elu.out":                       row(elu),
    "hardtanh.out":                  row(clamp),
    "softplus.out":                  row(softplus),
    "glu.out":                       Row(glu),
}
# fmt: on
