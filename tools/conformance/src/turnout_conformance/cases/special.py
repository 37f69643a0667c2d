"""Special functions; most references are SciPy's."""

from __future__ import annotations

from typing import Any

from turnout_conformance.cases.model import POSITIVE, M, OperatorCase, S, T, row, some, two


def scipy(name: str, *leading: Any) -> Any:
    """SciPy's function as a reference, in float64."""

    def reference(np: Any, *args: Any) -> Any:
        import scipy.special

        wide = [np.asarray(a, np.float64) for a in (*leading, *args)]
        made = getattr(scipy.special, name)(*wide)
        return made[0] if isinstance(made, tuple) else made

    return reference


def polynomial(name: str, shifted: bool) -> Any:
    """SciPy's polynomial of whole degrees."""

    def reference(np: Any, x: Any, n: Any) -> Any:
        import scipy.special

        x, n = np.broadcast_arrays(np.asarray(x, np.float64), n)
        at = 2 * x - 1 if shifted else x
        made = [getattr(scipy.special, name)(int(k), v) if k >= 0 else 0.0 for k, v in zip(n.ravel(), at.ravel(), strict=True)]
        return np.reshape(made, x.shape)

    return reference


def third(np: Any, x: Any, n: Any) -> Any:
    """V_n(x) = cos((n + 1/2) t) / cos(t / 2), x = cos(t)."""
    t = np.arccos(np.asarray(x, np.float64))
    return np.cos((np.trunc(n) + 0.5) * t) / np.cos(t / 2)


def fourth(np: Any, x: Any, n: Any) -> Any:
    """W_n(x) = sin((n + 1/2) t) / sin(t / 2), x = cos(t)."""
    t = np.arccos(np.asarray(x, np.float64))
    return np.sin((np.trunc(n) + 0.5) * t) / np.sin(t / 2)


def moved(reference: Any) -> Any:
    """The same at 2 x - 1."""
    return lambda np, x, n: reference(np, 2 * np.asarray(x, np.float64) - 1, n)


def log_of_gammas(np: Any, x: Any, p: int) -> Any:
    import scipy.special

    return scipy.special.multigammaln(x.astype(np.float64), p)


POLYNOMIALS = (
    ("chebyshev_polynomial_t", polynomial("eval_chebyt", False)), ("chebyshev_polynomial_u", polynomial("eval_chebyu", False)),
    ("chebyshev_polynomial_v", third), ("chebyshev_polynomial_w", fourth),
    ("shifted_chebyshev_polynomial_t", polynomial("eval_chebyt", True)),
    ("shifted_chebyshev_polynomial_u", polynomial("eval_chebyu", True)),
    ("shifted_chebyshev_polynomial_v", moved(third)), ("shifted_chebyshev_polynomial_w", moved(fourth)),
    ("hermite_polynomial_h", polynomial("eval_hermite", False)), ("hermite_polynomial_he", polynomial("eval_hermitenorm", False)),
    ("laguerre_polynomial_l", polynomial("eval_laguerre", False)), ("legendre_polynomial_p", polynomial("eval_legendre", False)),
)  # fmt: skip
BETWEEN = some(2, 3, low=0.1, high=0.9)

# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    *[
        row(name, (S(some(2, 3, low=low, high=high)), S(T([]))), scipy(function), tolerance=1e-8)
        for name, function, low, high in (
            ("digamma", "psi", 0.1, 3.0), ("lgamma", "gammaln", 0.1, 3.0), ("erfc", "erfc", -2.0, 2.0), ("erfinv", "erfinv", -0.9, 0.9),
            ("i0", "i0", -2.0, 2.0), ("special_i0e", "i0e", -2.0, 2.0), ("special_i1", "i1", -2.0, 2.0), ("special_i1e", "i1e", -2.0, 2.0),
            ("special_entr", "entr", 0.1, 3.0), ("special_ndtr", "ndtr", -2.0, 2.0), ("special_ndtri", "ndtri", 0.1, 0.9),
            ("special_log_ndtr", "log_ndtr", -2.0, 2.0), ("special_erfcx", "erfcx", -2.0, 2.0), ("logit", "logit", 0.1, 0.9),
        )
    ],
    *[
        row(f"special_{name}", S(some(2, 3, **POSITIVE)), reference, tolerance=1e-6, differentiable=False)
        for name, reference in (
            ("airy_ai", scipy("airy")), ("bessel_j0", scipy("j0")), ("bessel_j1", scipy("j1")), ("bessel_y0", scipy("y0")),
            ("bessel_y1", scipy("y1")), ("modified_bessel_i0", scipy("iv", 0)), ("modified_bessel_i1", scipy("iv", 1)),
            ("modified_bessel_k0", scipy("kv", 0)), ("modified_bessel_k1", scipy("kv", 1)),
            ("scaled_modified_bessel_k0", scipy("kve", 0)), ("scaled_modified_bessel_k1", scipy("kve", 1)),
            ("spherical_bessel_j0", lambda np, x: np.sin(x) / x),
        )
    ],
    row("polygamma", (S(1, some(2, 3, **POSITIVE)), S(0, T([0.5]))), lambda np, n, x: scipy("polygamma", n)(np, x), tolerance=1e-7),
    row("mvlgamma", S(some(2, 3, low=1.5, high=3.0), 3), log_of_gammas, tolerance=1e-8),
    row("igamma", two(**POSITIVE), scipy("gammainc"), differentiable=False),
    row("igammac", two(**POSITIVE), scipy("gammaincc"), differentiable=False),
    row("logit_backward", (S(M, BETWEEN), S(M, some(2, 3, low=-0.5, high=1.5), 0.1)), lambda np, g, x, eps=None: np.where((x >= (eps or 0)) & (x <= 1 - (eps or 0)), g / (x * (1 - x)), 0.0)),
    row("special_zeta", two(1.1, 3.0), scipy("zeta"), differentiable=False),
    row("special_zeta.self_scalar", S(2.5, some(3, low=1.1, high=3.0)), scipy("zeta")),
    row("special_zeta.other_scalar", S(some(3, low=1.1, high=3.0), 1.5), scipy("zeta"), differentiable=False),
    row("special_xlog1py", two(**POSITIVE), scipy("xlog1py")),
    row("special_xlog1py.self_scalar", S(2, BETWEEN), scipy("xlog1py")),
    row("special_xlog1py.other_scalar", S(M, 0.5), scipy("xlog1py")),
    *[
        row(f"special_{name}{overload}", samples, reference, ("float64",), differentiable=False)
        for name, reference in POLYNOMIALS
        for overload, samples in (
            ("", (S(BETWEEN, T([0, 1, 5])), S(T([]), T([])))), (".x_scalar", (S(0.3, T([0, 4.0])),)), (".n_scalar", (S(BETWEEN, 3),)),
        )
    ],
)
# fmt: on
