"""Tangents of determinants, inverses and solvers; `dX` stands for tangents."""

from __future__ import annotations

from typing import Any

from turnout_aten import operators as aten
from turnout_aten.composites.solvers import holds_vectors, is_vector_case
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.linear_algebra import adjoint
from turnout_autograd.formulas.recorded_calls import is_recorded


def _solved(A: Tensor, B: Tensor, LU: Tensor, pivots: Tensor, left: bool = True) -> Tensor:
    """A^-1 B, or B A^-1: from the factors at hand unless the tangent will be differentiated."""
    if is_recorded(A):
        return aten._linalg_solve_ex(A, B, left=left)[0]
    return aten.linalg_lu_solve(LU, pivots, B, left=left)


def slogdet_tangent(
    A_t: Tensor, A: Tensor, sign: Tensor, LU: Tensor, pivots: Tensor
) -> tuple[Tensor | None, Tensor]:  # fmt: skip
    """i Im(t) sign and Re(t), where t is the trace of A^-1 dA; the sign of a real determinant is constant."""
    trace = _solved(A, A_t, LU, pivots).diagonal(0, -2, -1).sum(-1)
    if not trace.is_complex():
        return None, trace
    return aten.complex(-aten.imag(sign), aten.real(sign)) * aten.imag(trace), aten.real(trace).clone()


def solve_tangent(
    A_t: Tensor | None, B_t: Tensor | None, A: Tensor, B: Tensor, result: Tensor, LU: Tensor, pivots: Tensor, left: bool
) -> Tensor:
    """A^-1 (dB - dA X); from the other side for X A = B."""
    vector = is_vector_case(A, B)
    X = result.unsqueeze(-1) if vector else result
    right: Any = None if B_t is None else B_t.unsqueeze(-1) if vector else B_t
    if A_t is not None:
        moved = A_t.matmul(X) if left else X.matmul(A_t)
        right = -moved if right is None else right - moved
    made = _solved(A, right, LU, pivots, left)
    return made.squeeze(-1) if vector else made


def solve_triangular_tangent(
    self_t: Tensor | None, B_t: Tensor | None, self: Tensor, result: Tensor, upper: bool, left: bool, unitriangular: bool
) -> Tensor:
    """The same for a triangle: only the part that is read has a tangent."""
    right = B_t
    if self_t is not None:
        part = self_t.triu(int(unitriangular)) if upper else self_t.tril(-int(unitriangular))
        moved = part.matmul(result) if left else result.matmul(part)
        right = -moved if right is None else right - moved
    return aten.linalg_solve_triangular(self, right, upper=upper, left=left, unitriangular=unitriangular)


def pinv_tangent(dA: Tensor, A: Tensor, P: Tensor) -> Tensor:
    """-P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P."""
    turned, moved = adjoint(P), adjoint(dA)
    left = P.matmul(turned).matmul(moved)
    right = moved.matmul(turned).matmul(P)
    return (left - left.matmul(A).matmul(P)) + (right - P.matmul(A.matmul(right))) - P.matmul(dA).matmul(P)


def lstsq_tangent(
    self_t: Tensor | None, b_t: Tensor | None, A: Tensor, b: Tensor, solution: Tensor, residuals: Tensor
) -> tuple[Tensor, Tensor | None]:
    """dP B + P dB by the pseudo-inverse P; residuals |A X - B|^2 change with A and B alone, for A^H (A X - B) is 0."""
    vector = holds_vectors(A, b)
    B, X = (b.unsqueeze(-1), solution.unsqueeze(-1)) if vector else (b, solution)
    dB: Any = None if b_t is None else b_t.unsqueeze(-1) if vector else b_t
    P = aten.linalg_pinv__atol_rtol_tensor(A)
    made: Any = 0 if dB is None else P.matmul(dB)
    change: Any = 0 if dB is None else -dB
    if self_t is not None:
        made = made + pinv_tangent(self_t, A, P).matmul(B)
        change = change + self_t.matmul(X)
    residuals_t = None
    if residuals.shape != (0,):
        away = A.matmul(X) - B
        residuals_t = _real_products(away, change).sum(-2) * 2
        residuals_t = residuals_t.squeeze(-1) if vector and residuals.ndim < residuals_t.ndim else residuals_t
    return (made.squeeze(-1) if vector else made), residuals_t


def _real_products(x: Tensor, y: Tensor) -> Tensor:
    """Re(conj(x) y)."""
    if not x.is_complex():
        return x * y
    return aten.real(x) * aten.real(y) + aten.imag(x) * aten.imag(y)
