"""Element-wise kernels of opencl at special values: infinities, NaN, signed zeros, large and small numbers, against cpu."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout
from turnout.dtypes import dtype_named
from turnout.registry import REGISTRY
from turnout_aten.backend import host_fallback as hosting

SPECIAL = [-math.inf, -3e4, -60.0, -2.5, -1.0, -0.5, -1e-3, -0.0, 0.0, 1e-3, 0.5, 1.0, 2.5, 60.0, 3e4, math.inf, math.nan]
# fmt: off
ONE = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan", "exp2", "log2", "log10", "deg2rad", "rad2deg",
    "sinc", "erfc", "silu", "mish", "hardsigmoid", "hardswish", "frac", "special_entr", "square", "sgn", "conj_physical", "isinf",
    "isposinf", "isneginf", "signbit", "nan_to_num", "elu", "leaky_relu", "hardtanh", "hardshrink", "softshrink", "softplus",
)
# fmt: on
# Their results grow or shrink so fast that a relative tolerance is meant, and lgamma's zeros are those of a logarithm.
SPECIAL_FUNCTIONS = (
    "lgamma",
    "digamma",
    "erfinv",
    "i0",
    "special_i0e",
    "special_i1",
    "special_i1e",
    "special_erfcx",
    "special_log_ndtr",
    "special_ndtri",
    "special_modified_bessel_i0",
    "special_modified_bessel_i1",
    "logit",
)
TWO = ["copysign.Tensor", "hypot", "heaviside", "logaddexp", "logaddexp2", "xlogy.Tensor", "special_xlog1py", "fmax", "fmin"]
# sinc, tan and frac of large numbers lose what the argument's spacing loses; infinities give NaN in all of them.
PERIODIC = {"sinc", "tan"}


@pytest.fixture(scope="module", autouse=True)
def needs_a_driver(need_device: Callable[[str], None]) -> None:
    need_device("opencl")


def agree(name: str, args: tuple[turnout.Tensor, ...], double: float = 1e-12) -> None:
    op = REGISTRY.find(f"aten::{name}")
    hosting.reset_calls()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = op(*args)
    found = op(*[a.to("opencl") for a in args])
    assert hosting.calls() == {}
    assert found.dtype is expected.dtype
    tolerance = {"float16": 2e-3, "bfloat16": 2e-2, "float64": double}.get(args[0].dtype.name, 2e-6)
    got, want = as_double(found), as_double(expected)
    assert np.allclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True), list(
        zip(*[as_double(a).tolist() for a in args], got.tolist(), want.tolist(), strict=True)
    )


def as_double(x: turnout.Tensor) -> Any:
    return x.cpu().double().numpy().reshape(-1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ONE)
def test_a_function_of_one_argument_at_special_values(name: str, dtype: str) -> None:
    values = [v for v in SPECIAL if name not in PERIODIC or not math.isfinite(v) or abs(v) < 10]
    agree(name, (turnout.tensor(values, dtype=dtype_named(dtype)),))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", TWO)
def test_a_function_of_two_arguments_at_special_values(name: str, dtype: str) -> None:
    x = turnout.tensor(SPECIAL, dtype=dtype_named(dtype))
    n = len(SPECIAL)
    agree(name, (x.reshape(n, 1).expand(n, n).contiguous(), x.expand(n, n).contiguous()))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("name", SPECIAL_FUNCTIONS)
def test_a_special_function_at_special_and_ordinary_values(name: str, dtype: str) -> None:
    values = [*SPECIAL, *np.linspace(-6.0, 12.0, 181).tolist(), *np.linspace(-1.0, 1.0, 201).tolist(), 25.9, 39.9, 40.1, 200.0]
    if dtype in ("float32", "float64"):
        values += [1e-30, 1 - 1e-7, 1e-7]
    x = turnout.tensor(values, dtype=dtype_named(dtype))
    # Near a pole or a zero the spacing of the argument decides.
    if name in ("digamma", "lgamma"):
        x = x[~((x < 0) & (x != x.trunc()) & ((x - x.round()).abs() < 0.02))]
    agree(name, (x,), 1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeta_and_polygamma_at_many_values(dtype: str) -> None:
    s = turnout.tensor([1.0, 1.1, 2.0, 3.5, 8.0, 40.0, math.nan, 0.5], dtype=dtype_named(dtype)).reshape(8, 1)
    q = turnout.tensor([-2.0, -1.5, 0.0, 1e-3, 0.5, 1.0, 4.25, 100.0, 1e6, math.inf, math.nan], dtype=dtype_named(dtype))
    agree("special_zeta", (s.expand(8, 11).contiguous(), q.expand(8, 11).contiguous()), 1e-10)
    x = turnout.tensor([0.25, 0.5, 1.0, 3.0, 20.0, 400.0], dtype=dtype_named(dtype))
    for n in (0, 1, 2, 3, 7):
        found, expected = turnout.polygamma(n, x.to("opencl")), turnout.polygamma(n, x)
        assert np.allclose(as_double(found), as_double(expected), rtol=1e-10 if dtype == "float64" else 3e-6)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_greatest_divisors_and_least_multiples(dtype: str) -> None:
    values = np.arange(0, 30) if dtype == "uint8" else np.arange(-11, 12)
    x = turnout.tensor(values.tolist(), dtype=dtype_named(dtype))
    n = len(values)
    for name in ("gcd", "lcm"):
        agree(name, (x.reshape(n, 1).expand(n, n).contiguous(), x.expand(n, n).contiguous()))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_integers_are_divided_shifted_and_compared_as_on_cpu(dtype: str) -> None:
    low = 0 if dtype == "uint8" else -9
    x = turnout.tensor([low, low + 1, 3, 7, 100], dtype=dtype_named(dtype))
    y = turnout.tensor([2, 3, 1, 7, 8], dtype=dtype_named(dtype))
    for name in ("fmod.Tensor", "heaviside", "fmax", "fmin", "bitwise_left_shift.Tensor", "bitwise_right_shift.Tensor", "square"):
        agree(name, (x,) if name == "square" else (x, y))
    with pytest.raises(turnout.errors.ArgumentError):
        x.to("opencl").fmod(0)
