"""Decompositions under their public names, in terms of the few that have kernels; products of Householder reflections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.layouts import lying
from turnout_aten.shapes.decompositions import matrices, same_dtype, square, systems
from turnout_aten.shapes.extents import broadcast
from turnout_aten.shapes.layouts import by_columns

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of matrices."""
    turned: Tensor = aten.transpose__int(x, -2, -1)
    return aten.conj(turned) if x.dtype.is_complex else turned


def identity(like: Tensor, n: int, m: int | None = None) -> Tensor:
    """An n by m identity of a tensor's dtype, on its device."""
    return aten.eye__m(n, n if m is None else m, dtype=like.dtype, device=like.device)


# ---- cholesky


def linalg_cholesky(self: Tensor, *, upper: bool = False) -> Tensor:
    """L of A = L L^H. Raises LinAlgError for a matrix that is not positive-definite."""
    return aten.linalg_cholesky_ex(self, upper=upper, check_errors=True)[0]


def cholesky(self: Tensor, upper: bool = False) -> Tensor:
    """linalg.cholesky."""
    return aten.linalg_cholesky(self, upper=upper)


# differs from torch: the gradients of `cholesky_solve` and `cholesky_inverse` are 0 in the triangle that is not read. PyTorch's
# formula reads it, and gives it a gradient.
def cholesky_solve(self: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """The X with A X = self, from the Cholesky factor of A."""
    b, a = matrices("cholesky_solve", self, "self"), square("cholesky_solve", input2, "input2")
    same_dtype("cholesky_solve", self, input2, "self and input2")
    if a[-1] != b[-2]:
        raise ShapeError(f"cholesky_solve: a factor of shape {list(a)} does not fit right sides of shape {list(b)}")
    first, second = (adjoint(input2), input2) if upper else (input2, adjoint(input2))
    between = aten.linalg_solve_triangular(first, self, upper=False)
    return aten.linalg_solve_triangular(second, between, upper=True)


def cholesky_inverse(self: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A, from its Cholesky factor."""
    shape = square("cholesky_inverse", self, "self")
    return aten.cholesky_solve(aten.expand(identity(self, shape[-1]), shape), self, upper)


# ---- lu and ldl


def linalg_lu_factor(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:
    """(LU, pivots). Raises LinAlgError for a singular matrix."""
    LU, pivots, _ = aten.linalg_lu_factor_ex(A, pivot=pivot, check_errors=True)
    return LU, pivots


def lu_with_info(self: Tensor, pivot: bool = True, check_errors: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """linalg.lu_factor_ex."""
    LU, pivots, info = aten.linalg_lu_factor_ex(self, pivot=pivot, check_errors=check_errors)
    return LU, pivots, info


def linalg_lu(A: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """(P, L, U) with A = P L U."""
    LU, pivots, _ = aten.linalg_lu_factor_ex(A, pivot=pivot)
    P, L, U = aten.lu_unpack(LU, pivots)
    return P, L, U


def linalg_lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """The X with A X = B or X A = B, or with the adjoint of A in place of A."""
    name = "linalg.lu_solve"
    a, b = square(name, LU, "LU"), matrices(name, B, "B")
    same_dtype(name, LU, B, "LU and B")
    systems(name, a, b, left, b)
    if not left:
        # X A = B is A^H X^H = B^H.
        return lying(_turned(linalg_lu_solve(LU, pivots, _turned(B), adjoint=not adjoint)))
    P = aten.real(aten.lu_unpack(LU, pivots, False, True)[0])
    if not adjoint:
        between = aten.linalg_solve_triangular(LU, _reordered(B, P, -2), upper=False, unitriangular=True)
        made = aten.linalg_solve_triangular(LU, between, upper=True)
        return lying(made, by_columns(made.shape))
    turned = _turned(LU)
    between = aten.linalg_solve_triangular(turned, B, upper=False)
    made = aten.linalg_solve_triangular(turned, between, upper=True, unitriangular=True)
    made = _reordered(made, P, -1)
    return lying(made, by_columns(made.shape))


def _reordered(x: Tensor, P: Tensor, dim: int) -> Tensor:
    """P^T x for dim -2, P x for -1. Uses indices, not a product, because autocast would round a product."""
    if not P.shape[-1]:
        return x
    rows = aten.argmax(P, dim)
    batch = broadcast(x.shape[:-2], rows.shape[:-1])
    positions = aten.expand(aten.unsqueeze(rows, -1), (*batch, *x.shape[-2:]))
    return aten.gather(aten.expand(x, (*batch, *x.shape[-2:])), -2, positions)


_turned = adjoint  # a name that no argument hides


def lu_solve(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """The X with A X = self."""
    return aten.linalg_lu_solve(LU_data, LU_pivots, self)


def linalg_ldl_factor(self: Tensor, *, hermitian: bool = False) -> tuple[Tensor, Tensor]:
    """(LD, pivots). Raises LinAlgError for a singular matrix."""
    LD, pivots, _ = aten.linalg_ldl_factor_ex(self, hermitian=hermitian, check_errors=True)
    return LD, pivots


# ---- eigenvalues and singular values


def linalg_eigvals(self: Tensor) -> Tensor:
    """The eigenvalues, complex."""
    return aten.linalg_eig(self)[0]


def linalg_eigh(self: Tensor, UPLO: str = "L") -> tuple[Tensor, Tensor]:
    """(eigenvalues in ascending order, eigenvectors) of Hermitian matrices. Only one triangle is read."""
    values, vectors = aten._linalg_eigh(self, UPLO, True)
    return values, vectors


def linalg_eigvalsh(self: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian matrices."""
    return aten._linalg_eigh(self, UPLO, False)[0]


def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, Vh) of A = U diag(S) Vh."""
    U, S, Vh = aten._linalg_svd(A, full_matrices, True, driver=driver)
    return U, S, Vh


def linalg_svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values in descending order."""
    return aten._linalg_svd(A, False, False, driver=driver)[1]


def svd(self: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of A = U diag(S) V^H; U and V are zeros without `compute_uv`."""
    shape = matrices("svd", self, "self")
    if compute_uv:
        U, S, Vh = aten.linalg_svd(self, not some)
        return U, S, adjoint(Vh)
    zeros = [aten.new_zeros(self, (*shape[:-2], n, n)) for n in shape[-2:]]
    return zeros[0], aten.linalg_svdvals(self), zeros[1]


# ---- qr and reflections


def qr(self: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """linalg.qr, reduced or complete."""
    Q, R = aten.linalg_qr(self, "reduced" if some else "complete")
    return Q, R


def _reflections(name: str, a: Tensor, tau: Tensor, rows: int) -> list[tuple[Tensor, Tensor]]:
    """(v, tau) of each reflection 1 - tau v v^H. v has zeros above row i, 1 in row i, and the elements of `a` below."""
    shape = matrices(name, a, "input")
    same_dtype(name, a, tau, "input and tau")
    if tau.ndim != a.ndim - 1 or tau.shape[:-1] != shape[:-2]:
        raise ShapeError(f"{name}: tau of shape {list(tau.shape)} does not fit reflections of shape {list(shape)}")
    count = tau.shape[-1]
    if count > shape[-1] or shape[-2] < count:
        raise ShapeError(f"{name}: {count} reflections need at least {count} rows and columns, got shape {list(shape)}")
    lower = aten.add__Tensor(aten.tril(aten.slice__Tensor(a, -1, 0, count, 1), -1), identity(a, rows, count))
    factors = aten.unsqueeze(tau, -2)
    return [(aten.slice__Tensor(lower, -1, i, i + 1, 1), aten.slice__Tensor(factors, -1, i, i + 1, 1)) for i in range(count)]


def _reflected(x: Tensor, v: Tensor, tau: Any) -> Tensor:
    """(1 - tau v v^H) x."""
    return aten.sub__Tensor(x, aten.mul__Tensor(aten.matmul(v, aten.matmul(adjoint(v), x)), tau))


def linalg_householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """The first columns of the product of reflections, as many as `input` has."""
    name = "linalg.householder_product"
    *batch, m, n = matrices(name, input, "input")
    if m < n:
        raise ShapeError(f"{name}: 'input' must have at least as many rows as columns, got shape {list(input.shape)}")
    made: Tensor = aten.expand(identity(input, m, n), (*batch, m, n))
    for v, factor in reversed(_reflections(name, input, tau, m)):
        made = _reflected(made, v, factor)
    return lying(made if tau.shape[-1] else aten.copy_(aten.clone(input), made), by_columns(made.shape))


def orgqr(self: Tensor, input2: Tensor) -> Tensor:
    """linalg.householder_product."""
    return aten.linalg_householder_product(self, input2)


def ormqr(self: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Q C or C Q, where Q is the full product of reflections, or its adjoint with `transpose`."""
    shape = matrices("ormqr", input3, "input3")
    same_dtype("ormqr", self, input3, "self and input3")
    if self.ndim < 2 or input3.shape[:-2] != self.shape[:-2] or self.shape[-2] != (shape[-2] if left else shape[-1]):
        raise ShapeError(f"ormqr: reflections of shape {list(self.shape)} do not fit a matrix of shape {list(shape)}")
    if not left:
        # C Q is (Q^H C^H)^H.
        made = adjoint(ormqr(self, input2, adjoint(input3), True, not transpose))
        return lying(made, by_columns(made.shape))
    reflections = _reflections("ormqr", self, input2, self.shape[-2])
    made = input3
    for v, factor in reflections if transpose else reversed(reflections):
        made = _reflected(made, v, aten.conj(factor) if transpose and factor.dtype.is_complex else factor)
    return lying(made if reflections else aten.clone(made), by_columns(made.shape))
