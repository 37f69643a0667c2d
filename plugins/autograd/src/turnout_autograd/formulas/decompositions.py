"""Gradients of matrix decompositions, written in operators.

`g` stands for gradients, ^H for the conjugate transpose; S(U^H g) is the skew part. Sources: Giles, "Collected matrix derivative
results" (2008); Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2010); for complex matrices with
the phases of vectors left free, as PyTorch does it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.state import exclude
from turnout_aten import operators as aten
from turnout_aten.tensor.levels import peel
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.errors import GradientError
from turnout_autograd.formulas.complex import conj
from turnout_autograd.formulas.linear_algebra import (
    adjoint,
    diagonal_matrices,
    divided_by_differences,
    identity_like,
    lower_solved,
    off_diagonal,
    upper_solved,
)

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints

_PHASE = 0.01  # what a gradient along a phase may be from rounding; PyTorch's bound


def cholesky_grad(grad: Tensor, L: Tensor, upper: bool) -> Tensor:
    """L^-H T L^-1, where T is half of the lower triangle of L^H g and of its mirror image."""
    if upper:
        L, grad = adjoint(L), adjoint(grad)
    inner = adjoint(L).matmul(grad)
    T = (inner.tril() + adjoint(inner.tril(-1))) * 0.5
    return aten.linalg_solve_triangular(L, aten.linalg_solve_triangular(adjoint(L), T, upper=True), upper=False, left=False)


def square_of(x: Tensor) -> Tensor:
    """The first rows and columns, as many of one as of the other."""
    k = min(x.shape[-2:])
    return x.narrow(-2, 0, k).narrow(-1, 0, k)


def square_parts(LU: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """P, and L and U without what sticks out of a square."""
    square = square_of(LU)
    return aten.lu_unpack(LU, pivots, False, True)[0], square.tril(-1) + identity_like(square), square.triu()


def lu_factor_grad(grad: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H; what sticks out of a square has a gradient of its own."""
    m, n = LU.shape[-2:]
    P, L, U = square_parts(LU, pivots)
    own = square_of(grad)
    gL, gU = own.tril(-1), own.triu()
    extra = None
    if m > n:
        L2, gL2 = LU.narrow(-2, n, m - n), grad.narrow(-2, n, m - n)
        extra = upper_solved(U, gL2)
        gU = gU - adjoint(L2).matmul(extra)
    elif m < n:
        U2, gU2 = LU.narrow(-1, m, n - m), grad.narrow(-1, m, n - m)
        extra = lower_solved(L, gU2)
        gL = gL - extra.matmul(adjoint(U2))
    inner = adjoint(L).matmul(gL).tril(-1) + gU.matmul(adjoint(U)).triu()
    made = upper_solved(U, lower_solved(L, inner))
    if extra is not None:
        made = aten.cat([made, extra], -2 if m > n else -1)
    return P.matmul(made)


def lu_unpack_grad(grads: Any, shape: Ints) -> Tensor:
    """The two triangles side by side."""
    gL, gU = (None if g is None or g.ndim < 2 else g for g in grads)  # of shape [0] where nothing was unpacked
    m, n = shape[-2:]
    parts = []
    if gL is not None:
        gL = gL.tril(-1)
        parts.append(gL if m >= n else aten.cat([gL, gL.new_zeros((*shape[:-1], n - m))], -1))
    if gU is not None:
        gU = gU.triu()
        parts.append(gU if m <= n else aten.cat([gU, gU.new_zeros((*shape[:-2], m - n, n))], -2))
    if not parts:
        return next(g for g in grads if g is not None).new_zeros(shape)
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def eigh_grad(grads: Any, A: Tensor, UPLO: str, values: Tensor, vectors: Tensor) -> Tensor:
    """V (diag(gL) + S(V^H gV)[i, j] / 2 / (L[j] - L[i])) V^H, where S(X) is X - X^H: Hermitian, whatever triangle was read."""
    if vectors.ndim != A.ndim:
        grads = (grads[0], None)
        values, vectors = aten._linalg_eigh(A, UPLO, True)
    turned = adjoint(vectors)
    if grads[0] is None and grads[1] is None:
        return A.new_zeros(A.shape)
    if grads[1] is None:
        return (vectors * grads[0].to(A.dtype).unsqueeze(-2)).matmul(turned)
    turn = _skew(turned.matmul(grads[1])) / 2
    _check_phases("linalg.eigh", turn.diagonal(0, -2, -1))
    inner = off_diagonal(divided_by_differences(turn, values, A.dtype))
    if grads[0] is not None:
        inner = inner + diagonal_matrices(grads[0].to(A.dtype))
    return vectors.matmul(inner).matmul(turned)


def eig_grad(grads: Any, values: Tensor, vectors: Tensor, is_complex: bool) -> Tensor:
    """V^-H (diag(gL) + (V^H gV - V^H V Re(diag(V^H gV)))[i, j] / conj(L[j] - L[i])) V^H."""
    turned = adjoint(vectors)
    inner: Any = None
    if grads[1] is not None:
        found = turned.matmul(grads[1])
        along = found.diagonal(0, -2, -1)
        # differs from torch: the gradient of `linalg.eig` accepts a loss that depends on the vector of a real eigenvalue of a
        # real matrix: that vector is real and has no phase.
        _check_phases("linalg.eig", along if is_complex else along * (aten.imag(values) != 0))
        lengths = aten.real(along).to(found.dtype)
        found = found - turned.matmul(vectors * lengths.unsqueeze(-2))
        inner = off_diagonal(divided_by_differences(found, conj(values), found.dtype))
    if grads[0] is not None:
        inner = diagonal_matrices(grads[0]) if inner is None else inner + diagonal_matrices(grads[0])
    made = aten._linalg_solve_ex(turned, inner.matmul(turned))[0]
    return made if is_complex else aten.real(made)


def svd_grad(grads: Any, A: Tensor, U: Tensor, S: Tensor, Vh: Tensor) -> Tensor:
    """U ((S(U^H gU) diag(S) + diag(S) S(V^H gV))[i, j] / (S[j]^2 - S[i]^2) + diag(gS)) V^H, and what lies outside the spans.

    S(X) is X - X^H. Vectors beyond the smaller side of the matrix are not determined, and have no gradient.
    """
    m, n = A.shape[-2:]
    k = min(m, n)
    gU, gS, gVh = grads
    if U.ndim != A.ndim:
        gU = gVh = None
        U, S, Vh = aten._linalg_svd(A, False, True)
    dtype = A.dtype
    weights = S.to(dtype)
    if U.shape[-1] > k:
        U, gU = U.narrow(-1, 0, k), (None if gU is None else gU.narrow(-1, 0, k))
    if Vh.shape[-2] > k:
        Vh, gVh = Vh.narrow(-2, 0, k), (None if gVh is None else gVh.narrow(-2, 0, k))
    if gU is None and gVh is None:
        if gS is None:
            return A.new_zeros(A.shape)
        return (U * gS.to(dtype).unsqueeze(-2)).matmul(Vh)
    inner: Any = 0
    turn: Any = None
    other: Any = None
    if gU is not None:
        turn = _skew(adjoint(U).matmul(gU))
        inner = turn * weights.unsqueeze(-2)
    if gVh is not None:
        other = _skew(Vh.matmul(adjoint(gVh)))
        inner = inner + weights.unsqueeze(-1) * other
    both = other if turn is None else turn if other is None else turn + other
    _check_phases("linalg.svd", both.diagonal(0, -2, -1) / 2)
    inner = off_diagonal(divided_by_differences(inner, S * S, dtype))
    if gS is not None:
        inner = inner + diagonal_matrices(gS.to(dtype))
    if dtype.is_complex and turn is not None:
        inner = inner + diagonal_matrices(turn.diagonal(0, -2, -1) / (2 * weights))
    made = U.matmul(inner).matmul(Vh)
    if m > k and gU is not None:
        scaled = gU / weights.unsqueeze(-2)
        made = made + (scaled - U.matmul(adjoint(U).matmul(scaled))).matmul(Vh)
    if n > k and gVh is not None:
        scaled = gVh / weights.unsqueeze(-1)
        made = made + U.matmul(scaled - scaled.matmul(adjoint(Vh)).matmul(Vh))
    return made


def _skew(x: Tensor) -> Tensor:
    return x - adjoint(x)


def _check_phases(name: str, along: Tensor) -> None:
    """Raise GradientError for a loss that depends on the phases of complex vectors; `along` is the diagonal of V^H gV.

    It cannot be checked inside vmap, nor on a device without values.
    """
    if not along.is_complex() or not along.device.backend.has_values or peel(along)[1]:
        return
    with exclude("Tracer"):  # a question, and no part of the gradient
        if not bool((aten.imag(along).abs() > _PHASE).any()):
            return
    raise GradientError(
        f"{name}: the result depends on the phases of the complex vectors, which are not determined, and so has no gradient\n"
        "  to fix  compute it from what no phase changes, such as abs() of the vectors or V @ V.mH"
    )


def check_qr_mode(mode: str, m: int, n: int) -> None:
    """Raise GradientError for factors of an m x n matrix that have no derivative."""
    if mode == "r":
        raise GradientError("linalg.qr: mode 'r' keeps no Q, which the gradient needs; use mode 'reduced'")
    if mode == "complete" and m > n:
        raise GradientError("linalg.qr: mode 'complete' of a matrix with more rows than columns has no gradient; use 'reduced'")


def qr_grad(grads: Any, Q: Tensor, R: Tensor, mode: str, shape: Ints) -> Tensor:
    """(gQ + Q T) R^-H, where T is Hermitian with the lower triangle of R gR^H - gQ^H Q.

    Of a wide matrix this is the gradient of the square in front; the rest of R is Q^H times the rest of A.
    """
    m, n = shape[-2:]
    check_qr_mode(mode, m, n)
    gQ, gR = grads
    extra = None
    if m < n:
        rest = R.narrow(-1, m, n - m)
        R = R.narrow(-1, 0, m)
        if gR is not None:
            gR2 = gR.narrow(-1, m, n - m)
            gR = gR.narrow(-1, 0, m)
            extra = Q.matmul(gR2)
            more = Q.matmul(rest).matmul(adjoint(gR2))
            gQ = more if gQ is None else gQ + more
    inner: Any = 0 if gR is None else R.matmul(adjoint(gR))
    inner = inner if gQ is None else inner - adjoint(gQ).matmul(Q)
    lower = inner.tril()
    lower = lower - diagonal_matrices(lower.diagonal(0, -2, -1)) * 0.5
    whole = Q.matmul(lower + adjoint(lower))
    made = upper_solved(R, whole if gQ is None else gQ + whole)
    if m >= n:
        return made
    return aten.cat([made, made.new_zeros((*shape[:-1], n - m)) if extra is None else extra], -1)
