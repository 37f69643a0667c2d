"""Decompositions, solvers, determinants and norms of matrices.

SciPy and NumPy call the same LAPACK, so signs agree. Where an operator reads one triangle of a symmetric matrix, differences of its
values say nothing about its gradient: `tests/plugins/test_autograd_linear_algebra.py` has those.
"""

from __future__ import annotations

from math import inf
from typing import Any

from turnout_conformance.cases.model import OperatorCase, S, T, nested, row, some, values

# No two rows or columns have the same sum of magnitudes: the norms that choose among them have one gradient.
A = [[4.0, 1.0, -2.0], [1.0, 3.25, 0.5], [-1.0, 2.0, 5.0]]
B = values(3, 2, seed=3)
TWO = [A, [[2.0, 0.5, 0.125], [-1.0, 3.0, 1.0], [0.25, -0.75, -2.0]]]
SYMMETRIC = [[1.0, 2.0], [2.0, 5.0]]  # positive-definite, as are its lower triangles read from two rotations of its numbers
TALL, WIDE = values(3, 2, seed=5), values(2, 3, seed=5)
REAL_EIGENVALUES = [[2.0, 1.0], [0.5, 1.0]]
COMPLEX = ("float32", "float64", "complex128")
BOTH = (S(T(A)), S(T(TWO)))


SIX = nested([(6.0 if i == j else 0.0) + v for i, row in enumerate(values(6, 6)) for j, v in enumerate(row)], (2, 3, 6))


def scipy() -> Any:
    """Imported where a reference is asked for."""
    import scipy.linalg

    return scipy.linalg


def each(function: Any, *arrays: Any) -> Any:
    """A function of matrices over a batch; several results as a tuple of batches."""
    import numpy as np

    if arrays[0].ndim == 2:
        return function(*arrays)
    found = [function(*matrices) for matrices in zip(*arrays, strict=True)]
    return tuple(np.stack(part) for part in zip(*found, strict=True)) if isinstance(found[0], tuple) else np.stack(found)


def lu(x: Any) -> Any:
    """(LU, pivots from 1)."""
    import numpy as np

    factors, pivots, _ = scipy().lapack.get_lapack_funcs(("getrf",), (x,))[0](x)
    return factors, (pivots + 1).astype(np.int32)


def no_info(np: Any, x: Any) -> Any:
    return np.zeros(x.shape[:-2], "int32")


def det(np: Any, x: Any) -> Any:
    return np.linalg.det(x), *each(lu, x)


def triangular(np: Any, a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    part = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        part = part - np.diag(np.diag(part)) + np.eye(len(part))
    return np.linalg.solve(part, b) if left else np.linalg.solve(part.T, b.T).T


def solved(np: Any, a: Any, b: Any, left: bool = True) -> Any:
    if b.ndim == 1:
        return np.linalg.solve(a, b)
    return np.linalg.solve(a, b) if left else np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


def least_squares(np: Any, a: Any, b: Any, rcond: Any = None, driver: Any = None) -> Any:
    x, _, rank, size = np.linalg.lstsq(a, b, None)
    tall = a.shape[0] > a.shape[1] and driver is not None
    return (x, ((a @ x - b) ** 2).sum(0) if tall else np.zeros(0), np.array(rank), size if driver == "gelsd" else np.zeros(0))


def ldl(np: Any, x: Any, hermitian: bool = False) -> Any:
    """(LD, pivots, info) of one matrix."""
    found, pivots, info = scipy().lapack.get_lapack_funcs(("sytrf",), (x,))[0](x, lower=1)
    return np.tril(found), pivots, np.array(info)


def householder(np: Any, a: Any, tau: Any) -> Any:
    made = np.eye(a.shape[0])
    for i, factor in enumerate(tau):
        v = np.concatenate([np.zeros(i), [1.0], a[i + 1 :, i]])
        made = made @ (np.eye(len(v)) - factor * np.outer(v, v))
    return made


def multiplied(np: Any, a: Any, tau: Any, c: Any, left: bool = True, transpose: bool = False) -> Any:
    q = householder(np, a, tau)
    q = q.T if transpose else q
    return q @ c if left else c @ q


def matrix_norm(np: Any, x: Any, order: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, dtype: Any = None) -> Any:
    return np.linalg.norm(x, order, tuple(dim), keepdim)


LU_FACTORS = [[2.0, 1.0, -1.0], [0.5, 3.0, 0.5], [-0.25, 0.75, 1.5]]
PIVOTS = T([2, 3, 3], "int32")
PERMUTATION = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def unpacked(np: Any, x: Any) -> Any:
    k = min(x.shape)
    return np.tril(x[:, :k], -1) + np.eye(x.shape[0], k), np.triu(x[:k])


def by_factors(np: Any, x: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    lower, upper = unpacked(np, x)
    whole = np.array(PERMUTATION) @ lower @ upper
    whole = whole.T if adjoint else whole
    return np.linalg.solve(whole, b) if left else np.linalg.solve(whole.T, b.T).T


# ruff: noqa: E501 - rows of a table
# fmt: off
CASES: tuple[OperatorCase, ...] = (
    # cholesky
    row("linalg_cholesky_ex", (S(T(SYMMETRIC)), S(T([[1.0, 2.0], [2.0, 1.0]]), upper=True)), lambda np, x, upper=False: (np.linalg.cholesky(x), no_info(np, x)) if not upper else (np.array([[1.0, 2.0], [0.0, 1.0]]), np.array(2, "int32")), differentiable=False),
    row("linalg_cholesky", S(T(SYMMETRIC)), "linalg.cholesky", differentiable=False),
    row("cholesky", S(T(SYMMETRIC)), "linalg.cholesky", differentiable=False),
    row("cholesky_solve", (S(T(B), T(A)), S(T(B), T(A), True)), lambda np, b, x, upper=False: np.linalg.solve(np.triu(x).T @ np.triu(x) if upper else np.tril(x) @ np.tril(x).T, b)),
    row("cholesky_inverse", (S(T(A)), S(T(A), True)), lambda np, x, upper=False: np.linalg.inv(np.triu(x).T @ np.triu(x) if upper else np.tril(x) @ np.tril(x).T)),
    # lu, ldl
    row("linalg_lu_factor_ex", (*BOTH, S(T(TALL)), S(T(WIDE))), lambda np, x: (*each(lu, x), no_info(np, x)), COMPLEX),
    row("linalg_lu_factor", S(T(A)), lambda np, x: lu(x)),
    row("_lu_with_info", S(T(A)), lambda np, x: (*lu(x), no_info(np, x))),
    row("linalg_lu", (S(T(A)), S(T(TALL)), S(T(WIDE))), lambda np, x: scipy().lu(x), COMPLEX),
    row("lu_unpack", (S(T(LU_FACTORS), PIVOTS), S(T(LU_FACTORS), PIVOTS, True, False), S(T(LU_FACTORS), PIVOTS, False, True)), lambda np, x, p, data=True, pivots=True: (np.array(PERMUTATION) if pivots else np.zeros(0), *(unpacked(np, x) if data else (np.zeros(0),) * 2))),
    row("linalg_lu_solve", (S(T(LU_FACTORS), PIVOTS, T(B)), S(T(LU_FACTORS), PIVOTS, T(B), adjoint=True), S(T(LU_FACTORS), PIVOTS, some(2, 3), left=False)), lambda np, x, p, b, left=True, adjoint=False: by_factors(np, x, b, left, adjoint)),
    row("lu_solve", S(T(B), T(LU_FACTORS), PIVOTS), lambda np, b, x, p: by_factors(np, x, b)),
    row("linalg_ldl_factor_ex", (S(T(SYMMETRIC)), S(T([[1.0, 2.0], [2.0, 1.0]]), hermitian=True)), lambda np, x, hermitian=False: ldl(np, x), differentiable=False),
    row("linalg_ldl_factor", S(T(SYMMETRIC)), lambda np, x: ldl(np, x)[:2], differentiable=False),
    row("linalg_ldl_solve", S(T([[2.0, 0.0], [0.5, 3.0]]), T([1, 2], "int32"), some(2, 2)), lambda np, x, p, b: np.linalg.solve(np.array([[2.0, 1.0], [1.0, 3.5]]), b), differentiable=False),
    # eigenvalues, singular values
    row("linalg_eig", S(T(REAL_EIGENVALUES)), "linalg.eig", tolerance=1e-8),
    row("linalg_eigvals", S(T(REAL_EIGENVALUES)), "linalg.eigvals", tolerance=1e-8),
    row("_linalg_eigh", (S(T(SYMMETRIC)), S(T(SYMMETRIC), "U", False)), lambda np, x, UPLO="L", v=True: tuple(np.linalg.eigh(x)) if v else (np.linalg.eigvalsh(x), np.zeros(0)), differentiable=False, vectors=((1, -1),)),
    row("linalg_eigh", (S(T(SYMMETRIC)), S(T(SYMMETRIC), "U")), lambda np, x, UPLO="L": tuple(np.linalg.eigh(x, UPLO)), differentiable=False, vectors=((1, -1),)),
    row("linalg_eigvalsh", S(T(SYMMETRIC)), "linalg.eigvalsh", differentiable=False),
    row("_linalg_svd", (S(T(TALL)), S(T(WIDE), False, False)), lambda np, x, full=False, uv=True: tuple(np.linalg.svd(x, full)) if uv else (np.zeros(0), np.linalg.svd(x, compute_uv=False), np.zeros(0)), tolerance=1e-8, vectors=((0, -1), (2, -2))),
    row("linalg_svd", (S(T(A)), S(T(WIDE), False)), lambda np, x, full=True: tuple(np.linalg.svd(x, full)), tolerance=1e-8, vectors=((0, -1), (2, -2))),
    row("linalg_svdvals", (S(T(TWO)), S(T(WIDE))), lambda np, x: np.linalg.svd(x, compute_uv=False), COMPLEX, tolerance=1e-8),
    row("svd", S(T(TALL)), lambda np, x: (lambda u, s, vh: (u, s, vh.T))(*np.linalg.svd(x, False)), tolerance=1e-8, vectors=((0, -1), (2, -1))),
    row("linalg_matrix_rank.atol_rtol_tensor", (S(T([[1.0, 2.0], [2.0, 4.0]])), S(T(A), atol=T(3.0))), lambda np, x, atol=0: np.linalg.matrix_rank(x, atol or None), differentiable=False),
    row("linalg_matrix_rank.atol_rtol_float", (S(T(TWO)), S(T(A), rtol=0.5), S(T(SYMMETRIC), hermitian=True)), lambda np, x, rtol=0, hermitian=False: np.linalg.matrix_rank(x, rtol=rtol or None), differentiable=False),
    row("linalg_matrix_rank", S(T(A), 3.0), "linalg.matrix_rank", differentiable=False),
    row("linalg_matrix_rank.tol_tensor", S(T(A), T(3.0)), "linalg.matrix_rank", differentiable=False),
    row("linalg_pinv.atol_rtol_tensor", (S(T(TALL)), S(T(WIDE), atol=T(0.0)), S(T([TWO, TWO]), rtol=T([0.001, 0.01]))), lambda np, x, atol=0, rtol=0: np.linalg.pinv(x)),
    row("linalg_pinv.atol_rtol_float", (S(T(TWO)), S(T(A), rtol=0.001)), lambda np, x, rtol=0: np.linalg.pinv(x)),
    row("linalg_pinv", S(T(TALL), 1e-6), lambda np, x, rcond: np.linalg.pinv(x)),
    row("linalg_pinv.rcond_tensor", S(T(TALL), T(1e-6)), lambda np, x, rcond: np.linalg.pinv(x)),
    row("pinverse", S(T(TALL)), "linalg.pinv"),
    # qr
    row("linalg_qr", (S(T(TALL)), S(T(WIDE)), S(T(A), "complete")), lambda np, x, mode="reduced": tuple(np.linalg.qr(x, mode))),
    row("qr", S(T(TALL)), "linalg.qr"),
    row("geqrf", (S(T(TALL)), S(T(WIDE))), lambda np, x: scipy().lapack.get_lapack_funcs(("geqrf",), (x,))[0](x)[:2], differentiable=False),
    row("linalg_householder_product", (S(T(TALL), T([0.5, 1.5])), S(T(TALL), T([0.5]))), lambda np, a, tau: householder(np, a, tau)[:, : a.shape[1]]),
    row("orgqr", S(T(TALL), T([0.5, 1.5])), lambda np, a, tau: householder(np, a, tau)[:, :2]),
    row("ormqr", (S(T(TALL), T([0.5, 1.5]), T(B)), S(T(TALL), T([0.5, 1.5]), T(B), True, True), S(T(TALL), T([0.5, 1.5]), T(WIDE), False)), multiplied),
    # solvers
    row("linalg_solve_triangular", (S(T(A), T(B), upper=True), S(T(A), T(B), upper=False, unitriangular=True), S(T(A), T(WIDE), upper=True, left=False)), triangular),
    row("triangular_solve", (S(T(B), T(A)), S(T(B), T(A), False, True)), lambda np, b, a, upper=True, transpose=False: (np.linalg.solve((np.triu(a) if upper else np.tril(a)).T if transpose else np.triu(a), b), a)),
    row("_linalg_solve_ex", (S(T(A), T(B)), S(T(A), some(2, 3), left=False)), lambda np, a, b, left=True: (solved(np, a, b, left), *lu(a), no_info(np, a))),
    row("linalg_solve_ex", S(T(A), T(B)), lambda np, a, b: (solved(np, a, b), no_info(np, a)), COMPLEX),
    row("linalg_solve", (S(T(A), some(3)), S(T(TWO), T(B)), S(T(A), T(WIDE), left=False)), solved, COMPLEX),
    row("linalg_inv_ex", BOTH, lambda np, x: (np.linalg.inv(x), no_info(np, x))),
    row("linalg_inv", BOTH, "linalg.inv", COMPLEX),
    row("inverse", S(T(A)), "linalg.inv"),
    row("linalg_lstsq", (S(T(TALL), T(B)), S(T(TALL), T(B), driver="gelsd"), S(T(WIDE), some(2, 1))), least_squares),
    row("linalg_tensorinv", S(T(SIX), 2), "linalg.tensorinv"),
    row("linalg_tensorsolve", S(T(SIX), some(2, 3, seed=3)), "linalg.tensorsolve"),
    # determinants
    row("_linalg_det", BOTH, det),
    row("linalg_det", BOTH, "linalg.det", COMPLEX),
    row("det", S(T(A)), "linalg.det"),
    row("_linalg_slogdet", S(T(TWO)), lambda np, x: (*np.linalg.slogdet(x), *each(lu, x))),
    row("linalg_slogdet", S(T(TWO)), "linalg.slogdet"),
    row("slogdet", S(T(A)), "linalg.slogdet"),
    row("logdet", S(T(A)), lambda np, x: np.log(np.linalg.det(x))),
    # powers
    row("linalg_matrix_power", (S(T(A), 3), S(T(A), 0), S(T(A), -2)), "linalg.matrix_power"),
    row("matrix_power", S(T(A), 2), "linalg.matrix_power"),
    row("linalg_matrix_exp", (S(T(REAL_EIGENVALUES)), S(T([REAL_EIGENVALUES, SYMMETRIC]))), lambda np, x: scipy().expm(x), COMPLEX),
    row("matrix_exp", S(T(REAL_EIGENVALUES)), lambda np, x: scipy().expm(x)),
    # norms
    row("linalg_matrix_norm", tuple(S(T(TWO[1]), order) for order in (1, -1, 2, -2, inf, -inf)) + (S(T(TWO), 1, [0, 2], True),), matrix_norm),
    row("linalg_matrix_norm.str_ord", (S(T(A)), S(T(TWO), "nuc")), matrix_norm),
    row("linalg_norm", (S(T(A)), S(T(A), 1), S(T(A), 3, [0]), S(T(TWO), 2, [1, 2], True)), lambda np, x, ord=None, dim=None, keepdim=False: np.linalg.norm(x, ord, None if dim is None else dim[0] if len(dim) == 1 else tuple(dim), keepdim)),
    row("linalg_norm.ord_str", (S(T(A), "fro"), S(T(A), "nuc")), "linalg.norm"),
    row("nuclear_norm", S(T(A)), lambda np, x: np.linalg.norm(x, "nuc")),
    row("nuclear_norm.dim", S(T(TWO), [0, 2]), lambda np, x, d: np.linalg.norm(x, "nuc", tuple(d))),
    row("linalg_cond", (S(T(A)), S(T(A), -2), S(T(A), 1)), lambda np, x, p=None: np.linalg.cond(x, p)),
    row("linalg_cond.p_str", (S(T(A), "fro"), S(T(A), "nuc")), "linalg.cond"),
)
# fmt: on
