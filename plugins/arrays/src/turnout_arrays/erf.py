"""The error function on arrays: of float32 as the tanh of a polynomial, of float64 from exponentials and rational functions.

Array modules have a vectorised tanh, and erf(x) = tanh(x P(x^2)) for a smooth P: a third of the steps of a rational function. The
coefficients of P are the best ones for the relative error of erf: 7e-8, and 3.4 units in the last place with all rounding.

Source for float64: W. J. Cody, "Rational Chebyshev Approximations for the Error Function", Mathematics of Computation 23 (1969),
three intervals. Array modules have no erf, and calling `math.erf` per element is a hundred times slower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout_arrays.numbers import POSTPONING
from turnout_aten.tensor.checks import are_postponed

# erf(x) = x R(x^2), |x| <= 0.46875
_A = (
    1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2, 3.77485237685302021e2, 3.20937758913846947e3,
)  # fmt: skip
_B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
# erfc(x) = exp(-x^2) R(x), 0.46875 <= x <= 4
_C = (
    2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1, 2.98635138197400131e2,
    8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3,
)  # fmt: skip
_D = (
    1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
    3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3, 1.23033935480374942e3,
)  # fmt: skip
# erfc(x) = exp(-x^2) / x (1/sqrt(pi) - R(1/x^2) / x^2), x >= 4
_P = (
    1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
    1.60837851487422766e-2, 6.58749161529837803e-4,
)  # fmt: skip
_Q = (
    1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1, 6.05183413124413191e-2,
    2.33520497626869185e-3,
)  # fmt: skip
# P of float32, the constant first. The last coefficient is positive, so that the argument of tanh grows with x.
_TANH = (
    1.128379225730896, 0.1027698665857315, -1.9528865232132375e-4, -6.148377433419228e-4, 8.459635864710435e-5,
    -4.7945522965164855e-6, 2.7570363769768846e-8, 5.421830540086603e-9,
)  # fmt: skip
_INV_SQRT_PI = 5.6418958354775628695e-1
_SMALL, _LARGE = 0.46875, 4.0


def erf_of(xp: Any) -> Callable[[Any], Any]:
    """The function for one array module, for real arrays of any dtype: of float32 a float32, else a float64."""

    def single(x: Any) -> Any:
        square = x * x
        value = square * _TANH[-1]
        for factor in _TANH[-2:0:-1]:
            value += factor
            value *= square
        value += _TANH[0]
        value *= x
        return xp.tanh(value, value)

    def rational(numerator: tuple[float, ...], denominator: tuple[float, ...], x: Any) -> Any:
        top, bottom = numerator[0] * x + numerator[1], denominator[0] * x + denominator[1]
        for p, q in zip(numerator[2:], denominator[2:], strict=True):
            top, bottom = top * x + p, bottom * x + q
        return top / bottom

    def erf(self: Any) -> Any:
        if self.dtype == xp.float32:
            return single(self.reshape(-1)).reshape(self.shape)
        x = self.astype(xp.float64)
        size = xp.abs(x)
        small = xp.minimum(size, _SMALL)
        near = x * rational(_A, _B, small * small)
        middle = xp.clip(size, _SMALL, _LARGE)
        value = 1 - xp.exp(-middle * middle) * rational(_C, _D, middle)
        if size.size and ((xp.__class__ in POSTPONING and are_postponed()) or bool(xp.any(size > _LARGE))):
            # From 6 on, 1 - erf(x) is below half a unit in the last place of 1.
            large = xp.clip(size, _LARGE, 6.0)
            inverse = 1 / (large * large)
            tail = xp.exp(-large * large) / large * (_INV_SQRT_PI - inverse * rational(_P, _Q, inverse))
            value = xp.where(size > _LARGE, 1 - tail, value)
        value = xp.where(size <= _SMALL, near, xp.copysign(value, x))
        return xp.where(xp.isnan(x), x, value)

    return erf
