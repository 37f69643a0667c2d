"""Gradients of determinants, inverses and solvers; the notation and the sources are those of `decompositions`."""

from __future__ import annotations

from typing import Any

from turnout_aten import operators as aten
from turnout_aten.composites.solvers import holds_vectors, is_vector_case
from turnout_aten.dtypes import EPSILON
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.complex import conj
from turnout_autograd.formulas.linear_algebra import adjoint, diagonal_matrices, identity_like
from turnout_autograd.formulas.recorded_calls import is_recorded
from turnout_autograd.formulas.reductions import products_of_others


def matrix_exp_grad(grad: Tensor, self: Tensor) -> Tensor:
    """The upper right block of exp([[A^H, g], [0, A^H]])."""
    turned = adjoint(self)
    n = self.shape[-1]
    upper = aten.cat([turned, grad], -1)
    lower = aten.cat([turned.new_zeros(turned.shape), turned], -1)
    return aten.linalg_matrix_exp(aten.cat([upper, lower], -2)).narrow(-2, 0, n).narrow(-1, n, n)


def _inverse_adjoint(A: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """A^-H, from the factors at hand unless the gradient will be differentiated."""
    if is_recorded(A):
        return adjoint(aten.linalg_inv_ex(A)[0])
    return aten.linalg_lu_solve(LU, pivots, identity_like(LU).expand(LU.shape), adjoint=True)


def det_grad(grad: Tensor, A: Tensor, result: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """g conj(det) A^-H. Zeros on the diagonal of U become tiny ones, which gives the limit for a singular matrix."""
    tiny = EPSILON[A.dtype]
    if is_recorded(A):
        return _recorded_det_grad(grad, A, result, 100 * tiny)
    LU = LU + diagonal_matrices((LU.diagonal(0, -2, -1) == 0).to(LU.dtype) * tiny)
    steps = (pivots != aten.arange__start(1, pivots.shape[-1] + 1, device=pivots.device)).sum(-1)
    odd = steps.remainder(2) == 1
    product = LU.diagonal(0, -2, -1).prod(-1)
    product = aten.where__self(odd, -product, product)
    return (grad * conj(product)).unsqueeze(-1).unsqueeze(-1) * _inverse_adjoint(A, LU, pivots)


def _recorded_det_grad(grad: Tensor, A: Tensor, result: Tensor, tiny: float) -> Tensor:
    """The same to be differentiated: for a singular matrix by its singular values, as the adjugate's conjugate transpose.

    Each of the two ways gets a matrix in whose place the other counts that does it no harm.
    """
    singular = result.abs().unsqueeze(-1).unsqueeze(-1) < tiny
    one = identity_like(A)
    inverse = aten.linalg_inv_ex(aten.where__self(singular, one, A))[0]
    regular = (grad * conj(result)).unsqueeze(-1).unsqueeze(-1) * adjoint(inverse)
    steps = diagonal_matrices(aten.arange__start(1, A.shape[-1] + 1, dtype=A.dtype, device=A.device))
    U, S, Vh = aten._linalg_svd(aten.where__self(singular, A, steps), True, True)
    signed = grad * conj(aten._linalg_det(U)[0] * aten._linalg_det(Vh)[0])
    others = products_of_others(S).to(A.dtype)
    limit = (U * others.unsqueeze(-2)).matmul(Vh) * signed.unsqueeze(-1).unsqueeze(-1)
    return aten.where__self(singular, limit, regular)


def slogdet_grad(grads: Any, A: Tensor, sign: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """(g_log - i Im(conj(g_sign) sign)) A^-H; the sign of a real determinant is constant."""
    factor = grads[1]
    if A.dtype.is_complex:
        real = sign.new_zeros(sign.shape, dtype=A.dtype.to_real()) if factor is None else factor
        turn = real.new_zeros(real.shape) if grads[0] is None else -aten.imag(conj(grads[0]) * sign)
        factor = aten.complex(real, turn)
    elif factor is None:
        return A.new_zeros(A.shape)
    return factor.unsqueeze(-1).unsqueeze(-1) * _inverse_adjoint(A, LU, pivots)


def solve_grad(
    grad: Tensor, A: Tensor, B: Tensor, result: Tensor, LU: Tensor, pivots: Tensor, left: bool, mask: Any
) -> tuple[Tensor | None, Tensor | None]:
    """gB = A^-H g, gA = -gB X^H; from the other side for X A = B."""
    vector = is_vector_case(A, B)
    g, X = (grad.unsqueeze(-1), result.unsqueeze(-1)) if vector else (grad, result)
    if is_recorded(A):
        gB = aten._linalg_solve_ex(adjoint(A), g, left=left)[0]
    else:
        gB = aten.linalg_lu_solve(LU, pivots, g, left=left, adjoint=True)
    gA = None
    if mask[0]:
        gA = -gB.matmul(adjoint(X)) if left else -adjoint(X).matmul(gB)
    return gA, (gB.squeeze(-1) if vector else gB)


def solve_triangular_grad(
    grad: Tensor, self: Tensor, result: Tensor, upper: bool, left: bool, unitriangular: bool, mask: Any
) -> tuple[Tensor | None, Tensor | None]:
    """The same for a triangle: only the part that is read gets a gradient."""
    gB = aten.linalg_solve_triangular(adjoint(self), grad, upper=not upper, left=left, unitriangular=unitriangular)
    gA = None
    if mask[0]:
        gA = -gB.matmul(adjoint(result)) if left else -adjoint(result).matmul(gB)
        gA = gA.triu(int(unitriangular)) if upper else gA.tril(-int(unitriangular))
    return gA, gB


def inverse_grad(grad: Tensor, inverse: Tensor) -> Tensor:
    """-A^-H g A^-H."""
    turned = adjoint(inverse)
    return -turned.matmul(grad.matmul(turned))


def pinv_grad(grad: Tensor, A: Tensor, P: Tensor) -> Tensor:
    """-P^H g P^H + (1 - A P) g^H P P^H + P^H P g^H (1 - P A)."""
    turned, g = adjoint(P), adjoint(grad)
    left = g.matmul(P).matmul(turned)
    right = turned.matmul(P).matmul(g)
    made = -turned.matmul(grad).matmul(turned)
    return made + (left - A.matmul(P.matmul(left))) + (right - right.matmul(P).matmul(A))


def lstsq_grad(grads: Any, A: Tensor, b: Tensor, solution: Tensor, mask: Any) -> tuple[Tensor | None, Tensor | None]:
    """By the pseudo-inverse; residuals |A X - B|^2 change with A and B alone, for A^H (A X - B) is 0."""
    vector = holds_vectors(A, b)
    B, X = (b.unsqueeze(-1), solution.unsqueeze(-1)) if vector else (b, solution)
    gA: Any = 0
    gB: Any = 0
    if grads[0] is not None:
        g = grads[0].unsqueeze(-1) if vector else grads[0]
        P = aten.linalg_pinv__atol_rtol_tensor(A)
        gB = adjoint(P).matmul(g)
        gA = pinv_grad(g.matmul(adjoint(B)), A, P) if mask[0] else 0
    if grads[1] is not None and grads[1].shape != (0,):
        weight = grads[1].unsqueeze(-1) if vector else grads[1]
        away = (A.matmul(X) - B) * (2 * weight.unsqueeze(-2))
        gA, gB = gA + away.matmul(adjoint(X)), gB - away
    if vector and isinstance(gB, Tensor):
        gB = gB.squeeze(-1)
    return (gA if isinstance(gA, Tensor) else None), (gB if isinstance(gB, Tensor) else None)
