"""Orthogonal polynomials, by their three-term recurrences.

The degree `n` is a number for each element, truncated to an integer; polynomials of negative degree, or of degree nan, are 0.
Everything is computed in float64, because cancellation leaves few digits of float32. Source: Abramowitz and Stegun, Handbook of
Mathematical Functions, table 22.7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout.errors import ArgumentError
from turnout_arrays.numbers import number_as, store
from turnout_arrays.pointwise import Table, row

# A step takes microseconds, so this degree takes seconds; the recurrence of one without bound never ends.
HIGHEST_DEGREE = 1_000_000

# p[k + 1] from the degree k, x, p[k] and p[k - 1].
Step = Callable[[int, Any, Any, Any], Any]


def _double(k: int, x: Any, last: Any, before: Any) -> Any:
    return 2 * x * last - before


def _hermite(k: int, x: Any, last: Any, before: Any) -> Any:
    return 2 * x * last - 2 * k * before


def _probabilists(k: int, x: Any, last: Any, before: Any) -> Any:
    return x * last - k * before


def _laguerre(k: int, x: Any, last: Any, before: Any) -> Any:
    return ((2 * k + 1 - x) * last - k * before) / (k + 1)


def _legendre(k: int, x: Any, last: Any, before: Any) -> Any:
    return ((2 * k + 1) * x * last - k * before) / (k + 1)


# Name -> the polynomial of degree 1, the step, and whether x is moved from [0, 1] to [-1, 1] first.
# fmt: off
POLYNOMIALS: dict[str, tuple[Callable[[Any], Any], Step, bool]] = {
    "chebyshev_polynomial_t":         (lambda x: x, _double, False),
    "chebyshev_polynomial_u":         (lambda x: 2 * x, _double, False),
    "chebyshev_polynomial_v":         (lambda x: 2 * x - 1, _double, False),
    "chebyshev_polynomial_w":         (lambda x: 2 * x + 1, _double, False),
    "shifted_chebyshev_polynomial_t": (lambda x: x, _double, True),
    "shifted_chebyshev_polynomial_u": (lambda x: 2 * x, _double, True),
    "shifted_chebyshev_polynomial_v": (lambda x: 2 * x - 1, _double, True),
    "shifted_chebyshev_polynomial_w": (lambda x: 2 * x + 1, _double, True),
    "hermite_polynomial_h":           (lambda x: 2 * x, _hermite, False),
    "hermite_polynomial_he":          (lambda x: x, _probabilists, False),
    "laguerre_polynomial_l":          (lambda x: 1 - x, _laguerre, False),
    "legendre_polynomial_p":          (lambda x: x, _legendre, False),
}
# fmt: on


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""

    def polynomial(name: str, first: Any, step: Step, shifted: bool) -> Any:
        def kernel(x: Any, n: Any, out: Any) -> Any:
            at = number_as(xp, x, out.dtype).astype(xp.float64)
            degree = xp.trunc(number_as(xp, n, out.dtype).astype(xp.float64))
            at = xp.broadcast_to(2 * at - 1 if shifted else at, out.shape)
            before, last = xp.ones_like(at), first(at)
            value = xp.where(degree == 0, before, xp.where(degree == 1, last, 0.0))
            highest = float(xp.where(degree == degree, degree, 0.0).max()) if degree.size else 0.0
            # differs from torch: the degree `n` of an orthogonal polynomial has a limit. PyTorch changes its formula instead.
            if highest > HIGHEST_DEGREE:
                raise ArgumentError(f"{name}: 'n' must be at most {HIGHEST_DEGREE}, got {highest:.7g}")
            for k in range(1, int(highest)):
                before, last = last, step(k, at, last, before)
                value = xp.where(degree == k + 1, last, value)
            return store(xp, out, value)

        return kernel

    return {f"special_{name}.out": row(polynomial(f"special_{name}", *rule)) for name, rule in POLYNOMIALS.items()}
