"""Special functions, from SciPy, which is imported when one is called first.

A row names SciPy's function; two-byte floats are computed in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout_arrays.numbers import number_as, store, widen
from turnout_aten.kernels.rows import SAME, Accepts, Row


def kernels() -> dict[str, Any]:
    """Operator -> kernel."""
    # fmt: off
    return {
        "erfc.out":                             one("erfc"),
        "erfinv.out":                           one("erfinv"),
        "lgamma.out":                           Row(lgamma, SAME, pointwise=True, accepts=Accepts("biu")),
        "digamma.out":                          Row(digamma, pointwise=True),
        "polygamma.out":                        Row(polygamma, pointwise=True),
        "igamma.out":                           two("gammainc"),
        "igammac.out":                          two("gammaincc"),
        "i0.out":                               one("i0"),
        "special_i0e.out":                      one("i0e"),
        "special_i1.out":                       one("i1"),
        "special_i1e.out":                      one("i1e"),
        "special_ndtri.out":                    one("ndtri"),
        "special_log_ndtr.out":                 one("log_ndtr"),
        "special_erfcx.out":                    one("erfcx"),
        "special_zeta.out":                     two("zeta"),
        "special_airy_ai.out":                  Row(airy_ai, pointwise=True),
        "special_bessel_j0.out":                one("j0"),
        "special_bessel_j1.out":                one("j1"),
        "special_bessel_y0.out":                one("y0"),
        "special_bessel_y1.out":                one("y1"),
        "special_modified_bessel_i0.out":       one("i0"),
        "special_modified_bessel_i1.out":       one("i1"),
        "special_modified_bessel_k0.out":       one("k0"),
        "special_modified_bessel_k1.out":       one("k1"),
        "special_scaled_modified_bessel_k0.out": one("k0e"),
        "special_scaled_modified_bessel_k1.out": one("k1e"),
        "special_spherical_bessel_j0.out":      Row(spherical_bessel_j0, pointwise=True),
    }
    # fmt: on


def _special() -> Any:
    import scipy.special

    return scipy.special


def one(name: str) -> Row:
    """A function of one argument."""

    def kernel(self: Any, out: Any = None) -> Any:
        return store(np, out, getattr(_special(), name)(widen(np, self)), self.dtype)

    return Row(kernel, SAME, pointwise=True, accepts=Accepts("biuc"))


def two(name: str) -> Row:
    """A function of two arguments, of which either may be a number."""

    def kernel(self: Any, other: Any, out: Any) -> Any:
        values = [widen(np, number_as(np, value, out.dtype)) for value in (self, other)]
        return store(np, out, getattr(_special(), name)(*values))

    return Row(kernel, pointwise=True)


def lgamma(self: Any, out: Any = None) -> Any:
    """Infinite at both infinities, as in C; SciPy has -inf at -inf."""
    x = widen(np, self)
    return store(np, out, np.where(x == -np.inf, np.inf, _special().gammaln(x)), self.dtype)


def digamma(self: Any, out: Any) -> Any:
    """The pole at 0 has a sign; those at negative integers have none."""
    x = widen(np, self)
    value = np.where(x == 0, -np.copysign(np.inf, x), _special().psi(x))
    return store(np, out, np.where((x < 0) & (x == np.trunc(x)), np.nan, value))


def polygamma(n: int, self: Any, out: Any) -> Any:
    """(-1)^(n + 1) n! zeta(n + 1, x); digamma for n = 0."""
    if n == 0:
        return digamma(self, out)
    special = _special()
    x = widen(np, self).astype(np.float64)
    sign = 1.0 if n % 2 else -1.0
    return store(np, out, sign * special.gamma(n + 1.0) * special.zeta(n + 1.0, x))


def airy_ai(x: Any, out: Any) -> Any:
    """Ai, the first of four values."""
    return store(np, out, _special().airy(widen(np, x))[0])


def spherical_bessel_j0(x: Any, out: Any) -> Any:
    """sin(x) / x, 1 at 0, 0 at infinity."""
    return store(np, out, _special().spherical_jn(0, widen(np, x)))
