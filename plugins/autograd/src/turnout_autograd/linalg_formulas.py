"""Gradients of matrix decompositions, solvers and Fourier transforms, written in operators like those of `formulas`.

`g` stands for gradients, ^H for the conjugate transpose; S(U^H g) is the skew part. Sources: Giles, "Collected matrix derivative
results" (2008); Walter and Lehmann, "Algorithmic differentiation of linear algebra functions" (2010); for complex matrices with
the phases of vectors left free, as PyTorch does it.
"""

from __future__ import annotations

from typing import Any

from turnout.state import exclude
from turnout_aten.generated import operators as aten
from turnout_aten.tensor.levels import peel
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.errors import GradientError
from turnout_autograd.formulas import Ints, conj, is_recorded, products_of_others, turned

Geometry = tuple[Ints, Ints, int]
_PHASE = 0.01  # what a gradient along a phase may be from rounding; PyTorch's bound


def _by_columns(geometry: Geometry) -> bool:
    """Whether a matrix lies in memory column by column, as a transposed weight does."""
    (rows, columns), strides, _ = geometry
    return strides == (1, rows) and columns > 1


def mm_self_grad(grad: Tensor, mat2: Tensor, geometry: Geometry) -> Tensor:
    """grad mat2^H, computed in the memory order of the matrix that it is the gradient of: a leaf then needs no copy."""
    if _by_columns(geometry):
        return turned(conj(mat2).mm(turned(grad)))
    return grad.mm(turned(conj(mat2)))


def mm_mat2_grad(grad: Tensor, self: Tensor, geometry: Geometry) -> Tensor:
    """self^H grad, likewise."""
    if _by_columns(geometry):
        return turned(turned(grad).mm(conj(self)))
    return turned(conj(self)).mm(grad)


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return conj(x.transpose(-2, -1))


def _identity(like: Tensor) -> Tensor:
    return aten.eye(like.shape[-1], dtype=like.dtype, device=like.device)


def _diag(x: Tensor) -> Tensor:
    """Diagonal matrices."""
    wide = x.unsqueeze(-1)
    one = aten.eye(x.shape[-1], dtype=x.dtype.to_real(), device=x.device) == 1
    return aten.where__self(one, wide, wide.new_zeros(()))


def _off_diagonal(x: Tensor) -> Tensor:
    """Zeros on the diagonal."""
    return x.tril(-1) + x.triu(1)


def _divided(x: Tensor, values: Tensor, dtype: Any) -> Tensor:
    """x[i, j] / (values[j] - values[i]); x[i, i] as it is."""
    difference = values.unsqueeze(-2) - values.unsqueeze(-1)
    return x / (difference.to(dtype) + _identity(x))


# ---- products


def matrix_exp_grad(grad: Tensor, self: Tensor) -> Tensor:
    """The upper right block of exp([[A^H, g], [0, A^H]])."""
    turned = adjoint(self)
    n = self.shape[-1]
    upper = aten.cat([turned, grad], -1)
    lower = aten.cat([turned.new_zeros(turned.shape), turned], -1)
    return aten.linalg_matrix_exp(aten.cat([upper, lower], -2)).narrow(-2, 0, n).narrow(-1, n, n)


# ---- cholesky and lu


def cholesky_grad(grad: Tensor, L: Tensor, upper: bool) -> Tensor:
    """L^-H T L^-1, where T is half of the lower triangle of L^H g and of its mirror image."""
    if upper:
        L, grad = adjoint(L), adjoint(grad)
    inner = adjoint(L).matmul(grad)
    T = (inner.tril() + adjoint(inner.tril(-1))) * 0.5
    return aten.linalg_solve_triangular(
        L, aten.linalg_solve_triangular(adjoint(L), T, upper=True), upper=False, left=False
    )


def _lower_solved(L: Tensor, x: Tensor) -> Tensor:
    """L^-H x."""
    return aten.linalg_solve_triangular(adjoint(L), x, upper=True, unitriangular=True)


def _upper_solved(U: Tensor, x: Tensor) -> Tensor:
    """x U^-H."""
    return aten.linalg_solve_triangular(adjoint(U), x, upper=False, left=False)


def lu_factor_grad(grad: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H; what sticks out of a square has a gradient of its own."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    P = aten.lu_unpack(LU, pivots, False, True)[0]
    square = LU.narrow(-2, 0, k).narrow(-1, 0, k)
    L = square.tril(-1) + _identity(square)
    U = square.triu()
    own = grad.narrow(-2, 0, k).narrow(-1, 0, k)
    gL, gU = own.tril(-1), own.triu()
    extra = None
    if m > n:
        L2, gL2 = LU.narrow(-2, n, m - n), grad.narrow(-2, n, m - n)
        extra = _upper_solved(U, gL2)
        gU = gU - adjoint(L2).matmul(extra)
    elif m < n:
        U2, gU2 = LU.narrow(-1, m, n - m), grad.narrow(-1, m, n - m)
        extra = _lower_solved(L, gU2)
        gL = gL - extra.matmul(adjoint(U2))
    inner = adjoint(L).matmul(gL).tril(-1) + gU.matmul(adjoint(U)).triu()
    made = _upper_solved(U, _lower_solved(L, inner))
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


# ---- solvers


def _inverse_adjoint(A: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """A^-H, by the factors that are there unless the gradient is to be differentiated."""
    if is_recorded(A):
        return adjoint(aten.linalg_inv_ex(A)[0])
    return aten.linalg_lu_solve(LU, pivots, _identity(LU).expand(LU.shape), adjoint=True)


def det_grad(grad: Tensor, A: Tensor, result: Tensor, LU: Tensor, pivots: Tensor) -> Tensor:
    """g conj(det) A^-H. Zeros on the diagonal of U become tiny ones, which gives the limit for a singular matrix."""
    tiny = 2.0**-23 if A.dtype.to_real().itemsize == 4 else 2.0**-52
    if is_recorded(A):
        return _recorded_det_grad(grad, A, result, 100 * tiny)
    LU = LU + _diag((LU.diagonal(0, -2, -1) == 0).to(LU.dtype) * tiny)
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
    one = _identity(A)
    inverse = aten.linalg_inv_ex(aten.where__self(singular, one, A))[0]
    regular = (grad * conj(result)).unsqueeze(-1).unsqueeze(-1) * adjoint(inverse)
    steps = _diag(aten.arange__start(1, A.shape[-1] + 1, dtype=A.dtype, device=A.device))
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
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
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
    """The same for a triangle, of which the part that is read gets a gradient."""
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
    vector = b.ndim == A.ndim - 1 and b.shape == A.shape[:-1]
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


# ---- eigenvalues, singular values, qr


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
    inner = _off_diagonal(_divided(turn, values, A.dtype))
    if grads[0] is not None:
        inner = inner + _diag(grads[0].to(A.dtype))
    return vectors.matmul(inner).matmul(turned)


def eig_grad(grads: Any, values: Tensor, vectors: Tensor, is_complex: bool) -> Tensor:
    """V^-H (diag(gL) + (V^H gV - V^H V Re(diag(V^H gV)))[i, j] / conj(L[j] - L[i])) V^H."""
    turned = adjoint(vectors)
    inner: Any = None
    if grads[1] is not None:
        found = turned.matmul(grads[1])
        along = found.diagonal(0, -2, -1)
        # differs from torch: to a real eigenvalue of a real matrix belongs a real vector, which has no phase.
        _check_phases("linalg.eig", along if is_complex else along * (aten.imag(values) != 0))
        lengths = aten.real(along).to(found.dtype)
        found = found - turned.matmul(vectors * lengths.unsqueeze(-2))
        inner = _off_diagonal(_divided(found, conj(values), found.dtype))
    if grads[0] is not None:
        inner = _diag(grads[0]) if inner is None else inner + _diag(grads[0])
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
    inner = _off_diagonal(_divided(inner, S * S, dtype))
    if gS is not None:
        inner = inner + _diag(gS.to(dtype))
    if dtype.is_complex and turn is not None:
        inner = inner + _diag(turn.diagonal(0, -2, -1) / (2 * weights))
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

    Inside vmap and on a device without values nobody can tell.
    """
    if not along.is_complex() or along.is_meta or peel(along)[1]:
        return
    with exclude("Tracer"):  # a question, and no part of the gradient
        if not bool((aten.imag(along).abs() > _PHASE).any()):
            return
    raise GradientError(
        f"{name}: the result depends on the phases of the complex vectors, which are not determined, and so has no gradient\n"
        "  to fix  compute it from what no phase changes, such as abs() of the vectors or V @ V.mH"
    )


def qr_grad(grads: Any, Q: Tensor, R: Tensor, mode: str, shape: Ints) -> Tensor:
    """(gQ + Q T) R^-H, where T is Hermitian with the lower triangle of R gR^H - gQ^H Q.

    Of a wide matrix this is the gradient of the square in front; the rest of R is Q^H times the rest of A.
    """
    m, n = shape[-2:]
    if mode == "r":
        raise GradientError("linalg.qr: mode 'r' keeps no Q, which the gradient needs; use mode 'reduced'")
    if mode == "complete" and m > n:
        raise GradientError(
            "linalg.qr: mode 'complete' of a matrix with more rows than columns has no gradient; use 'reduced'"
        )
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
    lower = lower - _diag(lower.diagonal(0, -2, -1)) * 0.5
    whole = Q.matmul(lower + adjoint(lower))
    made = _upper_solved(R, whole if gQ is None else gQ + whole)
    if m >= n:
        return made
    return aten.cat([made, made.new_zeros((*shape[:-1], n - m)) if extra is None else extra], -1)


# ---- Fourier transforms


def fft_r2c_grad(grad: Tensor, dim: Ints, normalization: int, onesided: bool, length: int) -> Tensor:
    """The transform in the other direction, zeros in the half that was not made."""
    last = dim[-1] % grad.ndim
    missing = length - grad.shape[last]
    if onesided and missing:
        shape = (*grad.shape[:last], missing, *grad.shape[last + 1 :])
        grad = aten.cat([grad, grad.new_zeros(shape)], last)
    return aten.real(aten._fft_c2c(grad, dim, normalization, False))


def fft_c2r_grad(grad: Tensor, dim: Ints, normalization: int) -> Tensor:
    """The transform in the other direction; elements that stand for two count twice."""
    made = aten._fft_r2c(grad, dim, normalization, True)
    last = dim[-1] % grad.ndim
    twice = grad.shape[last] - made.shape[last]
    if twice <= 0:
        return made
    parts = [made.narrow(last, 0, 1), made.narrow(last, 1, twice) * 2]
    rest = made.shape[last] - 1 - twice
    return aten.cat([*parts, made.narrow(last, 1 + twice, rest)] if rest else parts, last)


def fft_c2c_grad(grad: Tensor, dim: Ints, normalization: int, forward: bool) -> Tensor:
    """The transform in the other direction, scaled alike."""
    return aten._fft_c2c(grad, dim, normalization, not forward)
