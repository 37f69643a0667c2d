"""Element-wise kernels of the program `elementary` and a few beside them: rarer functions, activations, special values."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout.dtypes import FLOAT, bfloat16
from turnout_aten.dtypes import LARGEST
from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray, new_array
from turnout_opencl.backend import copy
from turnout_opencl.pointwise import binary, clamp, divided, row, run_map, run_test, sign, unary
from turnout_opencl.programs import TYPES


def between_numbers(name: str) -> Any:
    """For integers the case `name` of the program `map`; for floats fmax or fmin, which ignore NaN."""

    def kernel(self: Any, other: Any, out: ClArray) -> None:
        floats = {"maximum": "fmax", "minimum": "fmin"}
        run_map(floats[name] if out.dtype.category == FLOAT else name, out, self, other)

    return kernel


def with_number(name: str) -> Any:
    """An element-wise function with one parameter."""

    def kernel(self: ClArray, number: Any, out: ClArray) -> None:
        run_map(name, out, self, w=number)

    return kernel


def clamp_min(self: ClArray, min: Any, out: ClArray) -> None:
    """Elementwise maximum of self and a lower limit."""
    clamp(self, min, None, out)


def clamp_max(self: ClArray, max: Any, out: ClArray) -> None:
    """Elementwise minimum of self and an upper limit."""
    clamp(self, None, max, out)


def lerp(self: ClArray, end: ClArray, weight: ClArray, out: ClArray) -> None:
    """lerp with a weight for each element."""
    run_map("lerp_by", out, self, end, weight)


def addcdiv(self: ClArray, tensor1: ClArray, tensor2: ClArray, value: Any, out: ClArray) -> None:
    """self + value * tensor1 / tensor2."""
    run_map("addcdiv", out, self, tensor1, tensor2, value)


def nan_to_num(self: ClArray, nan: float | None, posinf: float | None, neginf: float | None, out: ClArray) -> None:
    """Numbers in place of NaN and the infinities: 0 and the dtype's largest ones if they are not given."""
    if out.dtype.category != FLOAT:
        copy(out, self)
        return
    name = out.dtype.name
    limit = LARGEST[bfloat16] if name == "bfloat16" else float(np.finfo(name).max)
    high, low = limit if posinf is None else posinf, -limit if neginf is None else neginf
    run_map("nan_to_num", out, self, 0.0 if nan is None else nan, high, low)


def sgn(self: ClArray, out: ClArray) -> None:
    """The sign of a real number; complex dtypes have no OpenCL kernels."""
    sign(self, out)


def elu(self: ClArray, alpha: Any, scale: Any, input_scale: Any, out: ClArray) -> None:
    """x * scale above 0, (exp(x * input_scale) - 1) * alpha * scale below."""
    run_map("elu", out, self, scale, input_scale, alpha)


def softplus(self: ClArray, beta: Any, threshold: Any, out: ClArray) -> None:
    """log(1 + exp(x * beta)) / beta, and x itself above the threshold."""
    run_map("softplus", out, self, threshold, w=beta)


def threshold(self: ClArray, threshold: Any, value: Any, out: ClArray) -> None:
    """`value` where x is at most the threshold."""
    run_map("threshold", out, self, value, w=threshold)


def glu(self: ClArray, dim: int, out: ClArray) -> None:
    """The first half of a dim times the sigmoid of the second."""
    d = dim % len(self.shape)
    first, second = (self.view(out.shape, self.strides, i * out.shape[d] * self.strides[d]) for i in range(2))
    run_map("glu", out, first, second)


def square(self: ClArray, out: ClArray) -> None:
    """x * x."""
    run_map("square", out, self)


def logit(self: ClArray, eps: float | None, out: ClArray) -> None:
    """log(x / (1 - x)), with x kept between eps and 1 - eps."""
    given = self if eps is None else run_map("clamp", out, self, eps, 1 - eps)
    if not TYPES[out.dtype].half:
        run_map("logit", out, given)
        return
    # Two-byte floats are rounded after each step, as in PyTorch.
    rest = run_map("minus", new_array(out.place, out.shape, out.dtype), 1, given)
    run_map("log", out, run_map("div", rest, given, rest))


def polygamma(n: int, self: ClArray, out: ClArray) -> None:
    """The n-th derivative of digamma."""
    if n == 0:
        run_map("digamma", out, self)
    else:
        run_map("polygamma", out, self, w=n)


def round_decimals(self: ClArray, decimals: int, out: ClArray) -> None:
    """Rounded to a number of decimals, or with a negative one to tens, hundreds, ..."""
    scale = 10.0 ** abs(decimals)
    run_map("round_to", out, self, w=scale if decimals >= 0 else -scale)


# fmt: off
KERNELS = {
    **{f"{name}.out": row(unary(name)) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan", "exp2", "log2", "log10", "deg2rad",
        "rad2deg", "sinc", "erfc", "silu", "mish", "hardsigmoid", "hardswish",
    )},
    **{f"{name}.out": row(unary(name)) for name in ("lgamma", "digamma", "erfinv", "i0")},
    **{f"special_{name}.out": row(unary(name)) for name in ("i0e", "i1", "i1e", "erfcx", "log_ndtr", "ndtri")},
    **{f"special_modified_bessel_{name}.out": row(unary(name)) for name in ("i0", "i1")},
    **{f"{name}.out": row(binary(name)) for name in ("gcd", "lcm")},
    "special_zeta.out":     row(binary("zeta")),
    "polygamma.out":        row(polygamma),
    "logit.out":            row(logit),
    "round.decimals_out":   row(round_decimals),
    "frac.out":             row(unary("frac")),
    "special_entr.out":     row(unary("entropy")),
    "square.out":           row(square),
    "sgn.out":              row(sgn),
    "conj_physical.out":    row(lambda self, out: copy(out, self)),
    **{f"{name}.out": row(unary(name, run_test)) for name in ("isinf", "isposinf", "isneginf", "signbit")},
    **{f"{name}.out": row(binary(name)) for name in ("copysign", "hypot", "heaviside", "logaddexp", "logaddexp2")},
    "xlogy.OutTensor":      row(binary("xlogy")),
    "special_xlog1py.out":  row(binary("xlog1py")),
    "fmax.out":             row(between_numbers("maximum")),
    "fmin.out":             row(between_numbers("minimum")),
    "fmod.Tensor_out":      row(divided("fmod")),
    "bitwise_left_shift.Tensor_out":  row(binary("left_shift")),
    "bitwise_right_shift.Tensor_out": row(binary("right_shift")),
    "clamp_min.Tensor_out": row(clamp_min),
    "clamp_max.Tensor_out": row(clamp_max),
    "lerp.Tensor_out":      row(lerp),
    "addcdiv.out":          row(addcdiv),
    "nan_to_num.out":       row(nan_to_num),
    "elu.out":              row(elu),
    "leaky_relu.out":       row(with_number("leaky_relu")),
    "hardtanh.out":         row(clamp),
    "hardshrink.out":       row(with_number("hardshrink")),
    "softshrink.out":       row(with_number("softshrink")),
    "softplus.out":         row(softplus),
    "threshold.out":        row(threshold),
    "glu.out":              Row(glu),
}
# fmt: on
