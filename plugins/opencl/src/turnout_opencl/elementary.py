"""Element-wise kernels of rarer functions; most are of the program `elementary`."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout.dtypes import FLOAT, bfloat16
from turnout_aten.dtypes import LARGEST
from turnout_opencl.arrays import ClArray, new_array
from turnout_opencl.backend import copy
from turnout_opencl.pointwise import binary, row, run_map, run_test, sign, unary
from turnout_opencl.programs import TYPES


def between_numbers(name: str) -> Any:
    """For integers the case `name` of the program `map`; for floats fmax or fmin, which ignore NaN."""

    def kernel(self: Any, other: Any, out: ClArray) -> None:
        floats = {"maximum": "fmax", "minimum": "fmin"}
        run_map(floats[name] if out.dtype.category == FLOAT else name, out, self, other)

    return kernel


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


def logit(self: ClArray, eps: float | None, out: ClArray) -> None:
    """log(x / (1 - x)), with x kept between eps and 1 - eps."""
    given = self if eps is None else run_map("clamp", out, self, eps, 1 - eps)
    if not TYPES[out.dtype].half:
        run_map("logit", out, given)
        return
    # Two-byte floats are rounded after each step, as in PyTorch.
    rest = run_map("minus", new_array(out.place, out.shape, out.dtype), 1, given)
    run_map("log", out, run_map("div", rest, given, rest))


def round_decimals(self: ClArray, decimals: int, out: ClArray) -> None:
    """Rounded to a number of decimals, or with a negative one to tens, hundreds, ..."""
    scale = 10.0 ** abs(decimals)
    run_map("round_to", out, self, w=scale if decimals >= 0 else -scale)


# fmt: off
KERNELS = {
    **{f"{name}.out": row(unary(name)) for name in (
        "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan", "exp2", "log2", "log10", "deg2rad",
        "rad2deg", "sinc",
    )},
    **{f"{name}.out": row(binary(name)) for name in ("gcd", "lcm")},
    "logit.out":            row(logit),
    "round.decimals_out":   row(round_decimals),
    "frac.out":             row(unary("frac")),
    "sgn.out":              row(sgn),
    "conj_physical.out":    row(lambda self, out: copy(out, self)),
    **{f"{name}.out": row(unary(name, run_test)) for name in ("isinf", "isposinf", "isneginf", "signbit")},
    **{f"{name}.out": row(binary(name)) for name in ("copysign", "hypot", "heaviside", "logaddexp", "logaddexp2")},
    "xlogy.OutTensor":      row(binary("xlogy")),
    "atan2.out":            row(binary("atan2")),
    "fmax.out":             row(between_numbers("maximum")),
    "fmin.out":             row(between_numbers("minimum")),
    "bitwise_left_shift.Tensor_out":  row(binary("left_shift")),
    "bitwise_right_shift.Tensor_out": row(binary("right_shift")),
    "nan_to_num.out":       row(nan_to_num),
}
# fmt: on
