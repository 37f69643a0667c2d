"""Tangents of matrix decompositions, written in operators.

`dX` stands for tangents; the rest of the notation, and the sources, are those of `formulas.decompositions`. Where a decomposition
reads one triangle, or leaves a phase free, the choice is the same as for gradients, but for singular vectors (see there).
"""

from __future__ import annotations

from typing import Any

from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.complex import conj
from turnout_autograd.formulas.decompositions import check_qr_mode, square_of, square_parts
from turnout_autograd.formulas.linear_algebra import adjoint, diagonal_matrices, divided_by_differences, off_diagonal


def _left_solved(L: Tensor, x: Tensor, *, unit: bool = False) -> Tensor:
    """L^-1 x."""
    return aten.linalg_solve_triangular(L, x, upper=False, unitriangular=unit)


def _right_solved(U: Tensor, x: Tensor) -> Tensor:
    """x U^-1."""
    return aten.linalg_solve_triangular(U, x, upper=True, left=False)


def cholesky_tangent(self_t: Tensor, L: Tensor, upper: bool) -> Tensor:
    """L T, where T is half of the lower triangle of Y = L^-1 dA L^-H and of that of Y^H below the diagonal."""
    if upper:
        L = adjoint(L)
    Y = adjoint(_left_solved(L, adjoint(_left_solved(L, self_t))))
    made = L.matmul((Y.tril() + adjoint(Y).tril(-1)) * 0.5)
    return adjoint(made) if upper else made


def lu_factor_tangent(A_t: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """L tril(M, -1) + triu(M) U, where M is L^-1 P^T dA U^-1; what sticks out of a square follows from it."""
    m, n = LU.shape[-2:]
    P, L, U = square_parts(LU, pivots)
    moved = adjoint(P).matmul(A_t)
    M = _right_solved(U, _left_solved(L, square_of(moved), unit=True))
    dL, dU = L.matmul(M.tril(-1)), M.triu().matmul(U)
    made = dL + dU
    if m > n:
        L2 = LU.narrow(-2, n, m - n)
        return aten.cat([made, _right_solved(U, moved.narrow(-2, n, m - n) - L2.matmul(dU))], -2)
    if m < n:
        U2 = LU.narrow(-1, m, n - m)
        return aten.cat([made, _left_solved(L, moved.narrow(-1, m, n - m) - dL.matmul(U2), unit=True)], -1)
    return made


def lower_of(LU_t: Tensor, L: Tensor) -> Tensor | None:
    """lu_unpack: below the diagonal, whose ones are constants. None where nothing was unpacked, as for `upper_of`."""
    return None if L.ndim < 2 else LU_t.narrow(-1, 0, L.shape[-1]).tril(-1)


def upper_of(LU_t: Tensor, U: Tensor) -> Tensor | None:
    """lu_unpack: the other triangle."""
    return None if U.ndim < 2 else LU_t.narrow(-2, 0, U.shape[-2]).triu()


def eigh_tangent(A_t: Tensor, A: Tensor, UPLO: str, values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor | None]:
    """Re diag(Y) and V (Z - Z^H) / 2, where Y is V^H dA V and Z[i, j] is Y[i, j] / (L[j] - L[i])."""
    has_vectors = vectors.ndim == A.ndim
    if not has_vectors:
        values, vectors = aten._linalg_eigh(A, UPLO, True)
    Y = adjoint(vectors).matmul(A_t).matmul(vectors)
    along = Y.diagonal(0, -2, -1)
    values_t = (aten.real(along) if along.is_complex() else along).clone()
    if not has_vectors:
        return values_t, None
    Z = off_diagonal(divided_by_differences(Y, values, A.dtype))
    return values_t, vectors.matmul((Z - adjoint(Z)) * 0.5)


def eig_tangent(self_t: Tensor, values: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """diag(Y) and V Z less its part along V, where Y is V^-1 dA V and Z[i, j] is Y[i, j] / (L[j] - L[i])."""
    Y = aten._linalg_solve_ex(vectors, self_t.to(vectors.dtype).matmul(vectors))[0]
    turned = vectors.matmul(off_diagonal(divided_by_differences(Y, values, Y.dtype)))
    lengths = aten.real((conj(vectors) * turned).sum(-2, True)).to(vectors.dtype)
    return Y.diagonal(0, -2, -1).clone(), turned - vectors * lengths


def svd_tangent(
    A_t: Tensor, A: Tensor, full_matrices: bool, U: Tensor, S: Tensor, Vh: Tensor
) -> tuple[Tensor | None, Tensor, Tensor | None]:
    """U T(D S), Re diag(D), V T(S D), and what leaves the spans.

    D is U^H dA V, and T(X)[i, j] is (X + X^H)[i, j] / (S[j]^2 - S[i]^2). Half of the phase that D has on its diagonal goes to U
    and half to V, as in PyTorch. Vectors beyond the smaller side of the matrix are not determined: their tangents are zeros.
    """
    m, n = A.shape[-2:]
    k = min(m, n)
    has_vectors = U.ndim == A.ndim
    full_u, full_v = (U.shape[-1], Vh.shape[-2]) if has_vectors else (k, k)
    if not has_vectors:
        U, S, Vh = aten._linalg_svd(A, False, True)
    U, Vh = U.narrow(-1, 0, k), Vh.narrow(-2, 0, k)
    V = adjoint(Vh)
    weights = S.to(A.dtype)
    D = adjoint(U).matmul(A_t).matmul(V)
    along = D.diagonal(0, -2, -1)
    S_t = (aten.real(along) if along.is_complex() else along).clone()
    if not has_vectors:
        return None, S_t, None

    def turned(X: Tensor) -> Tensor:
        return off_diagonal(divided_by_differences(X + adjoint(X), S * S, A.dtype))

    left, right = turned(D * weights.unsqueeze(-2)), turned(weights.unsqueeze(-1) * D)
    if A.dtype.is_complex:
        phase = diagonal_matrices((along - conj(along)) / (weights * 4))
        left, right = left + phase, right - phase
    U_t, Vh_t = U.matmul(left), adjoint(right).matmul(Vh)
    if m > k:
        away = A_t.matmul(V) / weights.unsqueeze(-2)
        U_t = U_t + away - U.matmul(adjoint(U).matmul(away))
    if n > k:
        away = adjoint(U).matmul(A_t) / weights.unsqueeze(-1)
        Vh_t = Vh_t + away - away.matmul(V).matmul(Vh)
    if full_u > k:
        U_t = aten.cat([U_t, U_t.new_zeros((*U_t.shape[:-1], full_u - k))], -1)
    if full_v > k:
        Vh_t = aten.cat([Vh_t, Vh_t.new_zeros((*Vh_t.shape[:-2], full_v - k, n))], -2)
    return U_t, S_t, Vh_t


def qr_tangent(A_t: Tensor, A: Tensor, Q: Tensor, R: Tensor, mode: str) -> tuple[Tensor, Tensor]:
    """(dA - Q dR) R^-1 and (Y - X) R, where Y is Q^H dA R^-1, and X is skew with Y's part below the diagonal.

    Of a wide matrix that is the square in front; the rest of R is Q^H times the rest of A.
    """
    m, n = A.shape[-2:]
    check_qr_mode(mode, m, n)
    k = min(m, n)
    square = R.narrow(-1, 0, k)
    inner = _right_solved(square, A_t.narrow(-1, 0, k))
    Y = adjoint(Q).matmul(inner)
    X = Y.tril(-1)
    X = X - adjoint(X)
    if Y.is_complex():
        along = Y.diagonal(0, -2, -1)
        X = X + diagonal_matrices((along - conj(along)) / 2)
    Q_t = inner - Q.matmul(Y - X)
    R_t: Any = (Y - X).matmul(square)
    if m < n:
        rest = A_t.narrow(-1, m, n - m)
        R_t = aten.cat([R_t, adjoint(Q_t).matmul(Q).matmul(R.narrow(-1, m, n - m)) + adjoint(Q).matmul(rest)], -1)
    return Q_t, R_t
