"""Complex numbers: their parts, conjugates, and back."""

from __future__ import annotations

from turnout_conformance.cases.model import POSITIVE, M, OperatorCase, S, T, two, values

BOTH = ("complex64", "complex128")
Z = T([[1 + 2j, 0.3 - 0.5j, -3 + 0.1j], [0.7j, 2 - 1j, -1 - 1j]])
W = T([[0.5 - 1j, 1 + 1j, 2 - 0.5j]])


# fmt: off
CASES: tuple[OperatorCase, ...] = (
    OperatorCase("angle", (S(Z),), lambda np, x: np.angle(x), BOTH),
    OperatorCase("sgn", (S(Z),), lambda np, x: np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x))), BOTH),
    OperatorCase("conj", (S(Z),), lambda np, x: np.conj(x), BOTH),
    OperatorCase("conj_physical", (S(Z),), lambda np, x: np.conj(x), BOTH),
    OperatorCase("resolve_conj", (S(Z),), lambda np, x: x, BOTH),
    OperatorCase("resolve_neg", (S(Z),), lambda np, x: x, BOTH),
    OperatorCase("real", (S(Z),), lambda np, x: x.real, BOTH),
    OperatorCase("imag", (S(Z),), lambda np, x: x.imag, BOTH),
    OperatorCase("view_as_real", (S(Z),), lambda np, x: np.stack([x.real, x.imag], -1), BOTH),
    OperatorCase("view_as_real_copy", (S(Z),), lambda np, x: np.stack([x.real, x.imag], -1), BOTH),
    OperatorCase("view_as_complex", (S(T(values(3, 2))),), lambda np, x: x[..., 0] + 1j * x[..., 1]),
    OperatorCase("view_as_complex_copy", (S(T(values(3, 2))),), lambda np, x: x[..., 0] + 1j * x[..., 1]),
    OperatorCase("complex", two(), lambda np, x, y: x + 1j * y),
    OperatorCase("polar", two(**POSITIVE), lambda np, r, t: r * np.exp(1j * t)),
    # what else is defined for complex numbers, by one row each
    *[
        OperatorCase(name, samples, reference, BOTH)
        for name, samples, reference in (
            ("logaddexp", (S(Z, T([1j, 2, -1])),), lambda np, x, y: np.log(np.exp(x) + np.exp(y))),
            ("silu", (S(Z),), lambda np, x: x / (1 + np.exp(-x))),
            ("square", (S(Z),), lambda np, x: x * x), ("sigmoid", (S(Z),), lambda np, x: 1 / (1 + np.exp(-x))),
            ("exp", (S(Z),), lambda np, x: np.exp(x)),
            ("log", (S(Z),), lambda np, x: np.log(x)), ("log2", (S(Z),), lambda np, x: np.log2(x)),
            ("sqrt", (S(Z),), lambda np, x: np.sqrt(x)), ("rsqrt", (S(Z),), lambda np, x: 1 / np.sqrt(x)),
            ("reciprocal", (S(Z),), lambda np, x: 1 / x), ("tanh", (S(Z),), lambda np, x: np.tanh(x)),
            ("sin", (S(Z),), lambda np, x: np.sin(x)), ("cos", (S(Z),), lambda np, x: np.cos(x)),
            ("tan", (S(Z),), lambda np, x: np.tan(x)), ("sinh", (S(Z),), lambda np, x: np.sinh(x)),
            ("acos", (S(Z),), lambda np, x: np.arccos(x)), ("acosh", (S(Z),), lambda np, x: np.arccosh(x)),
            ("asinh", (S(Z),), lambda np, x: np.arcsinh(x)), ("atan", (S(Z),), lambda np, x: np.arctan(x)),
            ("atanh", (S(Z),), lambda np, x: np.arctanh(x)), ("sinc", (S(Z),), lambda np, x: np.sinc(x)),
            ("add.Tensor", (S(Z, W),), lambda np, x, y: x + y), ("mul.Tensor", (S(Z, W),), lambda np, x, y: x * y),
            ("div.Tensor", (S(Z, W),), lambda np, x, y: x / y), ("pow.Tensor_Tensor", (S(Z, W),), lambda np, x, y: x ** y),
            ("pow.Tensor_Scalar", (S(Z, 3), S(Z, 1 - 0.5j)), lambda np, x, y: x ** y),
            ("pow.Scalar", (S(1 + 2j, Z), S(-0.5, Z)), lambda np, x, y: x ** y),
            ("mul.Scalar", (S(Z, 2 - 1j),), lambda np, x, y: x * y),
            ("addcmul", (S(Z, W, W, value=2),), lambda np, x, y, z, value: x + value * y * z),
            ("lerp.Scalar", (S(Z, W, 0.3),), lambda np, x, y, w: x + w * (y - x)),
            ("sum", (S(Z),), lambda np, x: x.sum()),
        )
    ],
    OperatorCase("eq.Tensor", (S(Z, W),), lambda np, x, y: x == y, BOTH, differentiable=False),
    OperatorCase("abs", (S(Z),), lambda np, x: np.abs(x), BOTH),
    OperatorCase("sgn", (S(M),), lambda np, x: np.sign(x), ("float64", "int64")),
)
# fmt: on
