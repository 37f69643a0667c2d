"""Shapes of special functions and orthogonal polynomials."""

from __future__ import annotations

from turnout.dtypes import COMPLEX
from turnout.errors import ArgumentError
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.pointwise import floating, floating_real, refuse, two_floating, two_floats
from turnout_aten.shapes.specs import Out, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor


def polygamma(n: int, self: Tensor) -> Out | Result:
    """The n-th derivative of digamma, n >= 0."""
    if n < 0:
        raise ArgumentError(texts.negative("polygamma", "n", n))
    refuse(self.dtype, "polygamma", COMPLEX)
    return floating(self)


# fmt: off
SHAPES: ShapeTable = {
    "erfc.out": floating_real("erfc"),
    "digamma.out": floating_real("digamma"),
    "lgamma.out": floating_real("lgamma"),
    "erfinv.out": floating_real("erfinv"),
    "i0.out": floating_real("i0"),
    "special_entr.out": floating_real("special_entr"),
    "special_ndtri.out": floating_real("special_ndtri"),
    "special_log_ndtr.out": floating_real("special_log_ndtr"),
    "special_erfcx.out": floating_real("special_erfcx"),
    "special_i0e.out": floating_real("special_i0e"),
    "special_i1.out": floating_real("special_i1"),
    "special_i1e.out": floating_real("special_i1e"),
    "special_airy_ai.out": floating_real("special_airy_ai", "x"),
    "special_bessel_j0.out": floating_real("special_bessel_j0"),
    "special_bessel_j1.out": floating_real("special_bessel_j1"),
    "special_bessel_y0.out": floating_real("special_bessel_y0"),
    "special_bessel_y1.out": floating_real("special_bessel_y1"),
    "special_modified_bessel_i0.out": floating_real("special_modified_bessel_i0"),
    "special_modified_bessel_i1.out": floating_real("special_modified_bessel_i1"),
    "special_modified_bessel_k0.out": floating_real("special_modified_bessel_k0"),
    "special_modified_bessel_k1.out": floating_real("special_modified_bessel_k1"),
    "special_scaled_modified_bessel_k0.out": floating_real("special_scaled_modified_bessel_k0", "x"),
    "special_scaled_modified_bessel_k1.out": floating_real("special_scaled_modified_bessel_k1", "x"),
    "special_spherical_bessel_j0.out": floating_real("special_spherical_bessel_j0", "x"),
    "polygamma.out": polygamma,
    "special_xlog1py.out": two_floating("special_xlog1py"),
    "special_zeta.out": two_floating("special_zeta"),
    "special_chebyshev_polynomial_t.out": two_floating("special_chebyshev_polynomial_t", ("x", "n")),
    "special_chebyshev_polynomial_u.out": two_floating("special_chebyshev_polynomial_u", ("x", "n")),
    "special_chebyshev_polynomial_v.out": two_floating("special_chebyshev_polynomial_v", ("x", "n")),
    "special_chebyshev_polynomial_w.out": two_floating("special_chebyshev_polynomial_w", ("x", "n")),
    "special_shifted_chebyshev_polynomial_t.out": two_floating("special_shifted_chebyshev_polynomial_t", ("x", "n")),
    "special_shifted_chebyshev_polynomial_u.out": two_floating("special_shifted_chebyshev_polynomial_u", ("x", "n")),
    "special_shifted_chebyshev_polynomial_v.out": two_floating("special_shifted_chebyshev_polynomial_v", ("x", "n")),
    "special_shifted_chebyshev_polynomial_w.out": two_floating("special_shifted_chebyshev_polynomial_w", ("x", "n")),
    "special_hermite_polynomial_h.out": two_floating("special_hermite_polynomial_h", ("x", "n")),
    "special_hermite_polynomial_he.out": two_floating("special_hermite_polynomial_he", ("x", "n")),
    "special_laguerre_polynomial_l.out": two_floating("special_laguerre_polynomial_l", ("x", "n")),
    "special_legendre_polynomial_p.out": two_floating("special_legendre_polynomial_p", ("x", "n")),
    "igamma.out": two_floats("igamma", COMPLEX),
    "igammac.out": two_floats("igammac", COMPLEX),
}
# fmt: on
