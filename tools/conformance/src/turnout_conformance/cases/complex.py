"""Complex numbers: their parts, conjugates, and back."""

from __future__ import annotations

from turnout_conformance.cases.model import POSITIVE, M, OperatorCase, S, T, row, some, two

BOTH = ("complex64", "complex128")
Z = T([[1 + 2j, 0.3 - 0.5j, -3 + 0.1j], [0.7j, 2 - 1j, -1 - 1j]])
W = T([[0.5 - 1j, 1 + 1j, 2 - 0.5j]])


# fmt: off
CASES: tuple[OperatorCase, ...] = (
    row("angle", S(Z), "angle", BOTH),
    row("sgn", S(Z), lambda np, x: np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x))), BOTH),
    row("conj", S(Z), "conj", BOTH),
    row("conj_physical", S(Z), "conj", BOTH),
    row("resolve_conj", S(Z), lambda np, x: x, BOTH),
    row("resolve_neg", S(Z), lambda np, x: x, BOTH),
    row("real", S(Z), lambda np, x: x.real, BOTH),
    row("imag", S(Z), lambda np, x: x.imag, BOTH),
    row("view_as_real", S(Z), lambda np, x: np.stack([x.real, x.imag], -1), BOTH),
    row("view_as_real_copy", S(Z), lambda np, x: np.stack([x.real, x.imag], -1), BOTH),
    row("view_as_complex", S(some(3, 2)), lambda np, x: x[..., 0] + 1j * x[..., 1]),
    row("view_as_complex_copy", S(some(3, 2)), lambda np, x: x[..., 0] + 1j * x[..., 1]),
    row("complex", two(), lambda np, x, y: x + 1j * y),
    row("polar", two(**POSITIVE), lambda np, r, t: r * np.exp(1j * t)),
    # what else is defined for complex numbers, by one row each
    *[
        row(name, samples, reference, BOTH)
        for name, samples, reference in (
            ("logaddexp", (S(Z, T([1j, 2, -1])),), lambda np, x, y: np.log(np.exp(x) + np.exp(y))),
            ("silu", (S(Z),), lambda np, x: x / (1 + np.exp(-x))),
            ("square", (S(Z),), lambda np, x: x * x), ("sigmoid", (S(Z),), lambda np, x: 1 / (1 + np.exp(-x))),
            ("exp", (S(Z),), "exp"),
            ("log", (S(Z),), "log"), ("log2", (S(Z),), "log2"),
            ("sqrt", (S(Z),), "sqrt"), ("rsqrt", (S(Z),), lambda np, x: 1 / np.sqrt(x)),
            ("reciprocal", (S(Z),), lambda np, x: 1 / x), ("tanh", (S(Z),), "tanh"),
            ("sin", (S(Z),), "sin"), ("cos", (S(Z),), "cos"),
            ("tan", (S(Z),), "tan"), ("sinh", (S(Z),), "sinh"),
            ("acos", (S(Z),), "arccos"), ("acosh", (S(Z),), "arccosh"),
            ("asinh", (S(Z),), "arcsinh"), ("atan", (S(Z),), "arctan"),
            ("atanh", (S(Z),), "arctanh"), ("sinc", (S(Z),), "sinc"),
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
    row("eq.Tensor", S(Z, W), lambda np, x, y: x == y, BOTH, differentiable=False),
    row("abs", S(Z), "abs", BOTH),
    row("sgn", S(M), "sign", ("float64", "int64")),
)
# fmt: on
