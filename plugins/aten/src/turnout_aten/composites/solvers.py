"""Solvers, inverses, determinants and powers, in terms of the LU decomposition."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING

from turnout.dtypes import int64
from turnout.errors import ArgumentError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.decompositions import adjoint, identity
from turnout_aten.composites.layouts import lying
from turnout_aten.composites.pseudo_inverses import default_cut
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.decompositions import matrices, same_dtype, square, systems
from turnout_aten.shapes.extents import broadcast, numel
from turnout_aten.shapes.layouts import by_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor


# ---- systems


def holds_vectors(A: Tensor, B: Tensor) -> bool:
    """Whether B holds a vector, not a matrix, for each matrix of A."""
    return B.ndim == A.ndim - 1 and B.shape == A.shape[:-1]


def is_vector_case(A: Tensor, B: Tensor) -> bool:
    """The same where one vector may be that of all matrices."""
    return B.ndim == 1 or holds_vectors(A, B)


def linalg_solve_ex_(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(X, LU, pivots, info), where A X = B or X A = B."""
    name = "linalg.solve"
    a = square(name, A)
    same_dtype(name, A, B)
    vector = is_vector_case(A, B)
    if vector and not left:
        raise ShapeError(f"{name}: with left=False, 'B' must hold matrices, got shape {list(B.shape)}")
    right = aten.unsqueeze(B, -1) if vector else B
    b = matrices(name, right, "B")
    systems(name, a, b, left, B.shape)
    LU, pivots, info = aten.linalg_lu_factor_ex(A, check_errors=check_errors)
    made = aten.linalg_lu_solve(LU, pivots, right, left=left)
    return aten.squeeze__dim(made, -1) if vector else made, LU, pivots, info


def linalg_solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """(X, info)."""
    made, _, _, info = aten._linalg_solve_ex(A, B, left=left, check_errors=check_errors)
    return made, info


def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """The X with A X = B, or X A = B. Raises LinAlgError for a singular matrix."""
    return aten._linalg_solve_ex(A, B, left=left, check_errors=True)[0]


def linalg_inv_ex(A: Tensor, *, check_errors: bool = False) -> tuple[Tensor, Tensor]:
    """(inverse, info)."""
    shape = square("linalg.inv", A)
    made, _, _, info = aten._linalg_solve_ex(A, aten.expand(identity(A, shape[-1]), shape), check_errors=check_errors)
    return made, info


def linalg_inv(A: Tensor) -> Tensor:
    """The inverse. Raises LinAlgError for a singular matrix."""
    return aten.linalg_inv_ex(A, check_errors=True)[0]


def inverse(self: Tensor) -> Tensor:
    """linalg.inv."""
    return aten.linalg_inv(self)


def triangular_solve(
    self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Tensor, Tensor]:
    """(X, a copy of A), where A X = self; with `transpose`, A^T X = self."""
    b, a = matrices("triangular_solve", self, "self"), square("triangular_solve", A)
    same_dtype("triangular_solve", self, A, "self and A")
    if a[-1] != b[-2]:
        raise ShapeError(f"triangular_solve: shapes {list(a)} and {list(b)} do not match in A X = self")
    batch = broadcast(a[:-2], b[:-2])
    matrix = aten.transpose__int(A, -2, -1) if transpose else A
    made = aten.linalg_solve_triangular(matrix, self, upper=upper != transpose, unitriangular=unitriangular)
    factor = aten.transpose__int(aten.expand(A, (*batch, *a[-2:])), -2, -1)
    return made, aten.transpose__int(aten.clone(factor, memory_format="contiguous_format"), -2, -1)


def linalg_lstsq(
    self: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(least-norm solution, residuals, rank, singular values). Every driver uses singular values.

    Residuals, rank and singular values are empty if the driver does not return them. Residuals are also empty unless all
    matrices have more rows than columns and full rank.
    """
    name = "linalg.lstsq"
    shape = matrices(name, self, "self")
    same_dtype(name, self, b, "self and b")
    driver = "gelsy" if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise ArgumentError(f"{name}: driver must be 'gels', 'gelsy', 'gelsd' or 'gelss', got {driver!r}")
    vector = holds_vectors(self, b)
    right = aten.unsqueeze(b, -1) if vector else b
    if not right.ndim >= 2 or right.shape[-2] != shape[-2]:
        raise ShapeError(f"{name}: 'b' of shape {list(b.shape)} does not fit 'self' of shape {list(shape)}")
    broadcast(shape[:-2], right.shape[:-2])
    m, n = shape[-2:]
    U, S, Vh = aten.linalg_svd(self, False)
    least = S
    if min(m, n):
        least = default_cut(self, S) if rcond is None else aten.mul__Scalar(aten.amax(S, (-1,), True), rcond)
    counts = aten.gt__Tensor(S, least)
    inverted = aten.masked_fill__Scalar(aten.reciprocal(S), aten.logical_not(counts), 0)
    weights = aten.to__dtype(aten.unsqueeze(inverted, -1), self.dtype)
    solution = aten.matmul(adjoint(Vh), aten.mul__Tensor(weights, aten.matmul(adjoint(U), right)))
    rank = aten.sum__dim_IntList(counts, (-1,))
    residuals = aten.new_empty(self, (0,), dtype=self.dtype.to_real())
    if m > n and driver != "gelsy" and bool(aten.all(aten.eq__Scalar(rank, n))):
        away = aten.abs(aten.sub__Tensor(aten.matmul(self, solution), right))
        residuals = aten.sum__dim_IntList(aten.mul__Tensor(away, away), (-2,))
        residuals = aten.squeeze__dim(residuals, -1) if vector else residuals
    # differs from torch: the solution of `linalg.lstsq` has no gaps between its columns, where LAPACK leaves other numbers.
    solution = lying(solution, by_columns(solution.shape))
    return (
        aten.squeeze__dim(solution, -1) if vector else solution,
        residuals,
        rank if driver != "gels" else aten.new_empty(self, (0,), dtype=int64),
        S if driver in ("gelsd", "gelss") else aten.new_empty(self, (0,), dtype=S.dtype),
    )


# ---- tensors as matrices


def linalg_tensorinv(self: Tensor, ind: int = 2) -> Tensor:
    """The inverse of the linear map from the last dims to the first `ind` ones."""
    if ind <= 0:
        raise ShapeError(texts.not_positive("linalg.tensorinv", "ind", ind))
    first, last = self.shape[:ind], self.shape[ind:]
    if numel(first) != numel(last):
        raise ShapeError(
            f"linalg.tensorinv: with ind={ind}, shape {list(self.shape)} is {list(first)} and {list(last)}, which must hold "
            "equally many elements"
        )
    found = aten.linalg_inv(aten.reshape(self, (numel(first), numel(last))))
    return aten.reshape(found, (*last, *first))


def linalg_tensorsolve(self: Tensor, other: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X with tensordot(self, X, X.ndim) = other. `dims` of self are moved to the end first."""
    moved = self
    if dims is not None:
        moved = aten.movedim__intlist(self, dims, tuple(range(-len(dims), 0)))
    result = moved.shape[other.ndim :]
    if numel(result) != numel(other.shape):
        raise ShapeError(f"linalg.tensorsolve: shapes {list(moved.shape)} and {list(other.shape)} do not form a square system")
    matrix = aten.reshape(moved, (numel(other.shape), numel(result)))
    return aten.reshape(aten.linalg_solve(matrix, aten.reshape(other, (numel(other.shape),))), result)


# ---- determinants


def _parity(pivots: Tensor) -> Tensor:
    """Whether the number of row exchanges is odd."""
    steps = aten.arange__start(1, pivots.shape[-1] + 1, device=pivots.device)
    exchanges = aten.sum__dim_IntList(aten.ne__Tensor(pivots, steps), (-1,))
    return aten.eq__Scalar(aten.remainder__Scalar(exchanges, 2), 1)


def _signed(x: Tensor, odd: Tensor) -> Tensor:
    return aten.where__self(odd, aten.neg(x), x)


def linalg_det_(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(determinant, LU, pivots)."""
    square("linalg.det", A)
    LU, pivots, _ = aten.linalg_lu_factor_ex(A)
    product = aten.prod__dim_int(aten.diagonal(LU, 0, -2, -1), -1)
    return _signed(product, _parity(pivots)), LU, pivots


def linalg_slogdet_(A: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(sign, logarithm of the absolute value, LU, pivots)."""
    square("linalg.slogdet", A)
    LU, pivots, _ = aten.linalg_lu_factor_ex(A)
    entries = aten.diagonal(LU, 0, -2, -1)
    sign = _signed(aten.prod__dim_int(aten.sgn(entries), -1), _parity(pivots))
    return sign, aten.sum__dim_IntList(aten.log(aten.abs(entries)), (-1,)), LU, pivots


def linalg_det(A: Tensor) -> Tensor:
    """The determinant."""
    return aten._linalg_det(A)[0]


def det(self: Tensor) -> Tensor:
    """linalg.det."""
    return aten.linalg_det(self)


def linalg_slogdet(A: Tensor) -> tuple[Tensor, Tensor]:
    """(sign, logarithm of the absolute value) of the determinant."""
    sign, logarithm, _, _ = aten._linalg_slogdet(A)
    return sign, logarithm


def slogdet(self: Tensor) -> tuple[Tensor, Tensor]:
    """linalg.slogdet."""
    sign, logarithm = aten.linalg_slogdet(self)
    return sign, logarithm


def logdet(self: Tensor) -> Tensor:
    """The logarithm of the determinant; nan if it is negative."""
    sign, logarithm = aten.linalg_slogdet(self)
    if sign.dtype.is_complex:
        return aten.add__Tensor(aten.log(sign), logarithm)
    return aten.masked_fill__Scalar(logarithm, aten.eq__Scalar(sign, -1), nan)


# ---- powers


def linalg_matrix_power(self: Tensor, n: int) -> Tensor:
    """The n-th power: the identity for 0, powers of the inverse for negative n."""
    shape = self.shape
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ShapeError(f"linalg.matrix_power: expected batches of square matrices, got shape {list(shape)}")
    if n == 0:
        # Written into a copy of self, so that the result is in self's graph, with a gradient of zeros.
        return aten.copy_(aten.clone(self, memory_format="contiguous_format"), identity(self, shape[-1]))
    base = aten.linalg_inv(self) if n < 0 else self
    result: Tensor | None = None
    bits = abs(n)
    while True:
        if bits & 1:
            result = base if result is None else aten.matmul(result, base)
        bits >>= 1
        if not bits:
            break
        base = aten.matmul(base, base)
    assert result is not None
    return aten.clone(self, memory_format="contiguous_format") if result is self else result


def matrix_power(self: Tensor, n: int) -> Tensor:
    """linalg.matrix_power."""
    return aten.linalg_matrix_power(self, n)


def matrix_exp(self: Tensor) -> Tensor:
    """linalg.matrix_exp."""
    return aten.linalg_matrix_exp(self)
