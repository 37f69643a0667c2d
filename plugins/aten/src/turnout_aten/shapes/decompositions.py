"""Shapes of decompositions and triangular solvers: matrices are the last two dims, all before them a batch.

Matrices are float32, float64 or complex. Names in error texts are those of the public functions.
"""

from __future__ import annotations

from turnout.dtypes import FLOAT, int32
from turnout.errors import ArgumentError, CallError, DTypeError, ShapeError
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import broadcast
from turnout_aten.shapes.layouts import by_columns
from turnout_aten.shapes.specs import Out, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor

    Ints = tuple[int, ...]

    from turnout_aten.shapes.specs import ShapeTable


def matrices(name: str, self: Tensor, argument: str = "A", *, half: bool = False) -> Ints:
    """The shape of a batch of matrices. Raises ShapeError for fewer than two dims, DTypeError for integers and half precision."""
    shape: Ints = self.array.shape
    if len(shape) < 2:
        raise ShapeError(texts.few_dims(name, argument, 2, shape))
    floating(name, self, half=half)
    return shape


def floating(name: str, self: Tensor, *, half: bool = False) -> None:
    """Raise DTypeError unless the dtype is float32, float64 or complex."""
    dtype = self.dtype
    if dtype.category < FLOAT:
        raise DTypeError(texts.not_inexact(name, dtype))
    if dtype.itemsize == 2 and not half:
        raise DTypeError(texts.two_bytes(name, dtype))


def square(name: str, self: Tensor, argument: str = "A", *, half: bool = False) -> Ints:
    """The shape of a batch of square matrices."""
    shape = matrices(name, self, argument, half=half)
    if shape[-1] != shape[-2]:
        raise ShapeError(f"{name}: '{argument}' must be batches of square matrices, got shape {list(shape)}")
    return shape


def same_dtype(name: str, a: Tensor, b: Tensor, names: str = "A and B") -> None:
    """Raise DTypeError for two dtypes."""
    if a.dtype is not b.dtype:
        raise DTypeError(f"{name}: {names} must have one dtype, got {a.dtype.name} and {b.dtype.name}")


def cholesky_ex(self: Tensor, upper: bool = False, check_errors: bool = False) -> tuple[Out, Out]:
    """(L, info)."""
    shape = square("linalg.cholesky", self, "self")
    return Out(shape, self.dtype, by_columns(shape)), Out(shape[:-2], int32, exact=True)


def lu_factor_ex(A: Tensor, pivot: bool = True, check_errors: bool = False) -> tuple[Out, Out, Out]:
    """(LU, pivots, info)."""
    shape = matrices("linalg.lu_factor", A)
    pivots = (*shape[:-2], min(shape[-2:]))
    return Out(shape, A.dtype, by_columns(shape)), Out(pivots, int32, exact=True), Out(shape[:-2], int32, exact=True)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> tuple[Out, Out, Out]:
    """(P, L, U); unrequested ones have shape [0]."""
    shape = matrices("lu_unpack", LU_data, "LU_data")
    if unpack_pivots and LU_pivots.dtype is not int32:
        raise DTypeError(f"lu_unpack: 'LU_pivots' must be int32, got {LU_pivots.dtype.name}")
    batch, (m, n) = shape[:-2], shape[-2:]
    k = min(m, n)
    dtype = LU_data.dtype
    # differs from torch: PyTorch's `lu_unpack` takes any number of pivots, and ignores those without a row.
    if LU_pivots.array.shape != (*batch, k):
        raise ShapeError(
            f"lu_unpack: 'LU_pivots' must have shape {[*batch, k]} for 'LU_data' of shape {list(shape)}, "
            f"got {list(LU_pivots.shape)}"
        )
    return (
        Out((*batch, m, m) if unpack_pivots else (0,), dtype),
        Out((*batch, m, k) if unpack_data else (0,), dtype),
        Out((*batch, k, n) if unpack_data else (0,), dtype),
    )


def ldl_factor_ex(self: Tensor, hermitian: bool = False, check_errors: bool = False) -> tuple[Out, Out, Out]:
    """(LD, pivots, info)."""
    shape = square("linalg.ldl_factor", self, "self")
    return Out(shape, self.dtype, by_columns(shape)), Out(shape[:-1], int32, exact=True), Out(shape[:-2], int32, exact=True)


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool = False) -> Out:
    """The X with A X = B."""
    shape = square("linalg.ldl_solve", LD, "LD")
    other = matrices("linalg.ldl_solve", B, "B")
    same_dtype("linalg.ldl_solve", LD, B, "LD and B")
    if pivots.dtype.category >= FLOAT:
        raise DTypeError(f"linalg.ldl_solve: 'pivots' must be integers, got {pivots.dtype.name}")
    if pivots.array.shape != shape[:-1]:
        raise ShapeError(texts.wrong_shape("linalg.ldl_solve", "pivots", shape[:-1], pivots.array.shape))
    if other[-2] != shape[-1]:
        raise ShapeError(f"linalg.ldl_solve: 'LD' of shape {list(shape)} and 'B' of shape {list(other)} do not match")
    made = (*broadcast(shape[:-2], other[:-2]), *other[-2:])
    return Out(made, B.dtype, by_columns(made))


def svd(A: Tensor, full_matrices: bool = False, compute_uv: bool = True, driver: str | None = None) -> tuple[Out, Out, Out]:
    """(U, S, Vh); U and Vh of shape [0] without `compute_uv`."""
    *batch, m, n = matrices("linalg.svd", A)
    if driver is not None:
        raise CallError("linalg.svd: 'driver' is only for CUDA tensors; omit it")
    k = min(m, n)
    left, right = (m, n) if full_matrices else (k, k)
    U, Vh = ((*batch, m, left), (*batch, right, n)) if compute_uv else ((0,), (0,))
    return Out(U, A.dtype, by_columns(U)), Out((*batch, k), A.dtype.to_real()), Out(Vh, A.dtype, by_columns(Vh))


def eigh(A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Out, Out]:
    """(eigenvalues, eigenvectors), the latter of shape [0] without `compute_v`."""
    shape = square("linalg.eigh", A)
    if UPLO.upper() not in ("L", "U"):
        raise ArgumentError(f"linalg.eigh: UPLO must be 'L' or 'U', got {UPLO!r}")
    vectors = shape if compute_v else (0,)
    return Out(shape[:-1], A.dtype.to_real()), Out(vectors, A.dtype, by_columns(vectors))


def eig(self: Tensor) -> tuple[Out, Out]:
    """(eigenvalues, eigenvectors), complex."""
    shape = square("linalg.eig", self, "self")
    dtype = self.dtype.to_complex()
    return Out(shape[:-1], dtype), Out(shape, dtype, by_columns(shape))


def qr(A: Tensor, mode: str = "reduced") -> tuple[Out, Out]:
    """(Q, R); Q of shape [0] for mode r."""
    *batch, m, n = matrices("linalg.qr", A)
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"linalg.qr: mode must be 'reduced', 'complete' or 'r', got {mode!r}")
    k = m if mode == "complete" else min(m, n)
    Q, R = (0,) if mode == "r" else (*batch, m, k), (*batch, k, n)
    return Out(Q, A.dtype, by_columns(Q)), Out(R, A.dtype, by_columns(R))


def geqrf(self: Tensor) -> tuple[Out, Out]:
    """(a, tau)."""
    shape = matrices("geqrf", self, "self")
    return Out(shape, self.dtype, by_columns(shape)), Out((*shape[:-2], min(shape[-2:])), self.dtype)


def systems(name: str, a: Ints, b: Ints, left: bool, given: Ints) -> Ints:
    """The batch dims of systems A X = B, or X A = B, of matrices. Raises ShapeError, which names the given shape of B."""
    if a[-1] != (b[-2] if left else b[-1]):
        raise ShapeError(texts.unsolvable(name, a, given, left))
    return broadcast(a[:-2], b[:-2])


def solve_triangular(self: Tensor, B: Tensor, upper: bool, left: bool = True, unitriangular: bool = False) -> Out | Result:
    """The X with A X = B, or X A = B; batch dims broadcast."""
    name = "linalg.solve_triangular"
    a, b = square(name, self, "self"), matrices(name, B, "B")
    same_dtype(name, self, B)
    made = (*systems(name, a, b, left, b), *b[-2:])
    return Out(made, B.dtype, by_columns(made))


def matrix_exp(self: Tensor) -> Out:
    """Square matrices of any floating dtype."""
    return Out(square("linalg.matrix_exp", self, "self", half=True), self.dtype)


# fmt: off
SHAPES: ShapeTable = {
    "linalg_cholesky_ex.L": cholesky_ex,
    "linalg_lu_factor_ex.out": lu_factor_ex,
    "lu_unpack.out": lu_unpack,
    "linalg_ldl_factor_ex.out": ldl_factor_ex,
    "linalg_ldl_solve.out": ldl_solve,
    "_linalg_svd.U": svd,
    "_linalg_eigh.eigenvalues": eigh,
    "linalg_eig.out": eig,
    "linalg_qr.out": qr,
    "geqrf.a": geqrf,
    "linalg_solve_triangular.out": solve_triangular,
    "linalg_matrix_exp.out": matrix_exp,
}
# fmt: on
