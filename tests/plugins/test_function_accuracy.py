"""Element-wise functions of turnout-kernels and turnout-cpu in units in the last place, and how two-byte floats are rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import turnout
from turnout_arrays.expressions import table
from turnout_cpu import halves
from turnout_cpu.kernels import kernels as rows_of_cpu
from turnout_cpu.pool import Pool

pointwise = pytest.importorskip("turnout_kernels.pointwise", reason="the extension module is not built: there is no C compiler")

ROWS = table().functions
# fmt: off
EXACT = {  # function -> (exact in float64, lowest, highest, numbers behind its argument)
    "exp":       (np.exp, -100, 88.5),
    "log":       (np.log, 1e-38, 100),
    "tanh":      (np.tanh, -12, 12),
    "erf":       (scipy.special.erf, -6, 6),
    "sigmoid":   (scipy.special.expit, -80, 80),
    "silu":      (lambda x: x * scipy.special.expit(x), -80, 80),
    "rsqrt":     (lambda x: 1 / np.sqrt(x), 1e-38, 100),
    "log1p":     (np.log1p, -0.9999, 100),
    "expm1":     (np.expm1, -20, 88),
    "mish":      (lambda x: x * np.tanh(np.logaddexp(0, x)), -80, 80),
    "softplus":  (lambda x: np.where(x > 20, x, np.logaddexp(0, x)), -80, 80, 1.0, 20.0),
    "gelu":      (lambda x: x * scipy.special.ndtr(x), -30, 30),
    "hypot":     (lambda x: np.hypot(x, x[::-1]), -1e3, 1e3),
}
# fmt: on
CPU = 4.0  # the most units of NumPy's functions and those of turnout-cpu


def sweep(low: float, high: float, count: int = 400_000) -> Any:
    """float32 numbers of every size between two bounds, with special values."""
    even = np.linspace(low, high, count)
    small = np.concatenate([s * np.logspace(-38, 0, 20_000) for s in (-1, 1)])
    special = np.array([0.0, -0.0, 1.0, -1.0, 1e-45, 3e38, -3e38, np.inf, -np.inf, np.nan])
    made = np.concatenate([even, small[(small >= low) & (small <= high)], special]).astype(np.float32)
    return made if low < 0 else made[(made > 0) | np.isnan(made)]


def ulps(found: Any, exact: Any, units: Any) -> float:
    """The largest distance in units in the last place of float32 numbers. nan, infinities and signs of zeros have to agree."""
    rounded = exact.astype(np.float32)
    assert np.array_equal(np.signbit(found[exact == 0]), np.signbit(exact[exact == 0]))
    finite = np.isfinite(rounded)
    assert np.array_equal(np.isnan(found), np.isnan(rounded))
    assert np.array_equal(found[np.isinf(rounded)], rounded[np.isinf(rounded)])
    step = np.spacing(np.abs((rounded if units is None else units)[finite])).astype(np.float64)
    return float(np.max(np.abs(found[finite].astype(np.float64) - exact[finite]) / step))


def distance(name: str, function: Any) -> float:
    """That of a function of (arguments, numbers behind them) from the exact one."""
    exact, low, high, *numbers = EXACT[name]
    x = sweep(low, high)
    given = (x, x[::-1].copy()) if name == "hypot" else (x,)
    with np.errstate(all="ignore"):
        return ulps(function(given, numbers), exact(x.astype(np.float64)), x if ROWS[name].unit else None)


@pytest.mark.parametrize("name", EXACT)
def test_a_function_is_within_its_units_in_the_last_place_with_all_instructions(name: str, instructions: str) -> None:
    made = distance(name, lambda given, numbers: pointwise.apply(name, given, np.empty_like(given[0]), tuple(numbers)))
    assert made <= ROWS[name].error


@pytest.mark.parametrize("name", EXACT)
def test_a_function_of_cpu_is_within_its_units_in_the_last_place(name: str) -> None:
    row = rows_of_cpu(Pool(lambda: 1))[f"{name}.out"].fn
    words = ["none"] if name == "gelu" else []
    assert distance(name, lambda given, numbers: row(*given, *numbers, *words, np.empty_like(given[0]))) <= CPU


def test_erf_keeps_within_one_and_the_sign_of_zero_and_is_the_same_for_one_number() -> None:
    assert np.all(np.abs(turnout.erf(turnout.from_numpy(sweep(-6, 6)[:-1])).numpy()) <= 1)
    assert np.signbit(turnout.erf(turnout.tensor(-0.0)).item())
    few = turnout.from_numpy(sweep(-6, 6, 20)[:20])
    assert turnout.erf(few).tolist() == [turnout.erf(number).item() for number in few]


# ---- two-byte floats


def floats() -> Any:
    """float32 of every kind: the first ones fit in float16, others are each float16, its neighbours, and halfway to the next."""
    bits = np.random.default_rng(6).integers(0, 1 << 32, 3 * halves.BLOCK, np.uint32)
    bits[: 2 * halves.BLOCK] &= 0xC77FEFFF
    bits[::3] &= 0xFFFFF000  # many lie half-way between two float16
    patterns = np.concatenate([bits, np.arange(0, 1 << 32, 997, np.uint32), np.arange(1 << 16, dtype=np.uint32) << 16])
    exact = np.arange(0x7C00, dtype="u2").view("f2").astype("f4")
    near = [exact, ((exact[:-1].astype("f8") + exact[1:]) / 2).astype("f4")]
    near += [np.nextafter(some, np.float32(end)) for some in near for end in (np.inf, -np.inf)]
    return np.concatenate([patterns.view("f4"), *near, *(-some for some in near)])


@pytest.mark.parametrize(("how", "dtype"), [("compiled", "float16"), ("compiled", "bfloat16"), ("cpu", "float16")])
def test_two_byte_floats_are_rounded_to_nearest_even_from_any_float32(how: str, dtype: str) -> None:
    x = floats()
    made = (
        turnout.from_numpy(x).to(getattr(turnout, dtype)) if how == "compiled" else turnout.empty(x.size, dtype=turnout.float16)
    )
    found = made.numpy()
    with np.errstate(all="ignore"):
        if how == "cpu":
            halves.to_float16(found, x)
        expected = x.astype(found.dtype)
    numbers = ~np.isnan(x)
    assert np.isnan(found[~numbers]).all()
    assert np.array_equal(found.view(np.uint16)[numbers], expected.view(np.uint16)[numbers])
    assert np.array_equal(made.to(turnout.float32).numpy(), expected.astype(np.float32), equal_nan=True)
