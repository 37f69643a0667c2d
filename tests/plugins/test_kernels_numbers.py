"""Compiled kernels of a tensor and a number, which C need not repeat for each element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout

pointwise = pytest.importorskip("turnout_kernels.pointwise", reason="the extension module is not built: there is no C compiler")

FUNCTIONS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}
NUMBERS = (0.1, -3, 0, -0.0, 1e12, 1 << 40)
COUNT = pointwise.LARGE + 77


def values(dtype: Any) -> Any:
    """Many elements, infinities and both zeros among them."""
    found = np.random.default_rng(5).standard_normal(COUNT).astype(dtype)
    found[:4] = 0.0, -0.0, np.inf, -np.inf
    return found


@pytest.mark.parametrize("dtype", ["f", "d"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of overflows and divisions by zero
def test_a_number_beside_many_elements_is_an_element_repeated(name: str, dtype: str, served: Callable[..., list[str]]) -> None:
    asked, a = served(pointwise, "apply"), values(dtype)
    x = turnout.from_numpy(a)
    for number in NUMBERS:
        expected = FUNCTIONS[name](a, np.full(COUNT, number, dtype))
        for found in (getattr(x, name)(number), getattr(x.clone(), name + "_")(number), getattr(x[:, None], name)(number)[:, 0]):
            assert np.array_equal(found.numpy(), expected, equal_nan=True)
            assert np.array_equal(np.signbit(found.numpy()) | np.isnan(expected), np.signbit(expected) | np.isnan(expected))
    assert asked == [name] * 3 * len(NUMBERS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_two_byte_floats_and_a_number_are_rounded_once(name: str) -> None:
    x = turnout.from_numpy(values("f")).clamp(-100, 100).to(turnout.bfloat16)
    for number in (0.5, -3.0, 1.25):  # what bfloat16 has: it is not rounded itself
        found, exact = getattr(x, name)(number), FUNCTIONS[name](x.to(turnout.float32).numpy(), np.float32(number))
        assert found.equal(turnout.from_numpy(exact).to(turnout.bfloat16))
