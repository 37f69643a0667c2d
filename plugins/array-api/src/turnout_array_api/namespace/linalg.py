"""The extension linalg. Inputs to decompositions are floating-point or complex; all work in batches of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.config.tuples import NamedTuple
from turnout.errors import ArgumentError, ShapeError
from turnout_array_api.namespace.linear_algebra import matmul, matrix_transpose, tensordot, vecdot
from turnout_array_api.namespace.promotion import axes_of, pair, widened
from turnout_aten import linalg as operators
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as fn
from turnout_aten.shapes.extents import broadcast
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_array_api.namespace.promotion import Axis

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip
__dir__ = __all__.copy


class EigResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangle L with L L^H = x, or U with U^H U = x. Raises LinAlgError for a matrix that is not positive-definite.

    Arguments:
        upper: whether the upper triangle is wanted

    Example:
        >>> turnout.array_api.linalg.cholesky(turnout.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    return operators.cholesky(x, upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross products of vectors of length 3 along an axis, counted from the end; the other axes broadcast.

    Arguments:
        axis: the axis of the vectors

    Example:
        >>> turnout.array_api.linalg.cross(turnout.tensor([1, 0, 0]), turnout.tensor([0, 1, 0]))
        tensor([0, 0, 1])
    """
    left, right = pair("cross", x1, x2)
    ndim = max(left.ndim, right.ndim)
    left, right = [fn.reshape(each, (1,) * (ndim - each.ndim) + tuple(each.shape)) for each in (left, right)]
    return operators.cross(left, right, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """The determinants of square matrices.

    Example:
        >>> turnout.array_api.linalg.det(turnout.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(-2.0000)
    """
    return operators.det(x)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A view of the diagonals, `offset` above the main ones.

    Example:
        >>> turnout.array_api.linalg.diagonal(turnout.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    return operators.diagonal(x, offset=offset)


def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues, in no order, and eigenvectors as columns, of square matrices. Both are complex.

    Example:
        >>> turnout.array_api.linalg.eig(turnout.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
        tensor([2.+0.j, 3.+0.j])
    """
    return EigResult(*operators.eig(x))


def eigvals(x: Tensor, /) -> Tensor:
    """Only the eigenvalues of `eig`.

    Example:
        >>> turnout.array_api.linalg.eigvals(turnout.tensor([[0.0, -1.0], [1.0, 0.0]])).imag.abs()
        tensor([1., 1.])
    """
    return operators.eigvals(x)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues in ascending order, and eigenvectors as columns, of Hermitian matrices. Only lower triangles are read.

    Example:
        >>> turnout.array_api.linalg.eigh(turnout.tensor([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
        tensor([2., 3.])
    """
    return EighResult(*operators.eigh(x))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Only the eigenvalues of `eigh`.

    Example:
        >>> turnout.array_api.linalg.eigvalsh(turnout.tensor([[2.0, 0.0], [0.0, 3.0]]))
        tensor([2., 3.])
    """
    return operators.eigvalsh(x)


def inv(x: Tensor, /) -> Tensor:
    """Inverses. Raises LinAlgError for a singular matrix.

    Example:
        >>> turnout.array_api.linalg.inv(turnout.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return operators.inv(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tensor:
    """Norms of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf; None means "fro".

    Example:
        >>> turnout.array_api.linalg.matrix_norm(turnout.tensor([[3.0, 0.0], [0.0, 4.0]]))
        tensor(5.)
    """
    return operators.matrix_norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Each matrix to the n-th power; a negative n uses the inverse.

    Arguments:
        n: the exponent

    Example:
        >>> turnout.array_api.linalg.matrix_power(turnout.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
        tensor([[1., 3.],
                [0., 1.]])
    """
    return operators.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The number of singular values above `rtol` times the largest one. `rtol` defaults to max(M, N) * eps.

    Example:
        >>> turnout.array_api.linalg.matrix_rank(turnout.tensor([[2.0, 0.0], [0.0, 0.0]]))
        tensor(1)
    """
    return operators.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of each element of one vector with each element of another. Raises ShapeError for other shapes.

    Example:
        >>> turnout.array_api.linalg.outer(turnout.tensor([1, 2]), turnout.tensor([3, 4]))
        tensor([[3, 4],
                [6, 8]])
    """
    left, right = pair("outer", x1, x2)
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(f"outer: needs two vectors, got shapes {list(left.shape)} and {list(right.shape)}")
    return fn.outer(left, right)


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Pseudoinverses. Singular values up to `rtol` times the largest count as 0; `rtol` defaults to max(M, N) * eps.

    Example:
        >>> turnout.array_api.linalg.pinv(turnout.tensor([[2.0, 0.0], [0.0, 4.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.2500]])
    """
    return operators.pinv(x, rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Q with orthonormal columns and an upper triangle R, with Q R = x; `mode` "complete" gives a square Q.

    Arguments:
        mode: "reduced" or "complete"

    Example:
        >>> turnout.array_api.linalg.qr(turnout.tensor([[2.0, 0.0], [0.0, 3.0]])).R.abs()
        tensor([[2., 0.],
                [0., 3.]])
    """
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"qr: mode must be 'reduced' or 'complete', got {mode!r}")
    return QRResult(*operators.qr(x, mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """The signs of determinants and the logarithms of their absolute values.

    Example:
        >>> turnout.array_api.linalg.slogdet(turnout.tensor([[2.0, 0.0], [0.0, 3.0]])).logabsdet
        tensor(1.7918)
    """
    return SlogdetResult(*operators.slogdet(x))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The y with x1 y = x2. An x2 of 1 dimension is a vector; others are matrices. Raises LinAlgError if x1 is singular.

    Example:
        >>> turnout.array_api.linalg.solve(turnout.tensor([[2.0, 0.0], [0.0, 4.0]]), turnout.tensor([2.0, 8.0]))
        tensor([1., 2.])
    """
    left, right = pair("solve", x1, x2)
    if right.ndim > 1:
        return operators.solve(left, right.broadcast_to(_batch(left, right) + tuple(right.shape[-2:])))
    return operators.solve(left, right[:, None])[..., 0]


def _batch(x1: Tensor, x2: Tensor) -> tuple[int, ...]:
    # Give x2 as many dims as x1: with one dim fewer, the operator would read it as a batch of vectors.
    return broadcast(x1.shape[:-2], x2.shape[:-2])


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """U, S and Vh with U diag(S) Vh = x. The singular values S are in descending order.

    Arguments:
        full_matrices: whether U and Vh are square

    Example:
        >>> turnout.array_api.linalg.svd(turnout.tensor([[3.0, 0.0], [0.0, 2.0]])).S
        tensor([3., 2.])
    """
    return SVDResult(*operators.svd(x, full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """The singular values, in descending order.

    Example:
        >>> turnout.array_api.linalg.svdvals(turnout.tensor([[3.0, 0.0], [0.0, 2.0]]))
        tensor([3., 2.])
    """
    return operators.svdvals(x)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """Sums of the diagonals. Integers are summed as int64 or uint64 unless `dtype` is given.

    Arguments:
        dtype: the dtype of the sum

    Example:
        >>> turnout.array_api.linalg.trace(turnout.tensor([[1, 2], [3, 4]]))
        tensor(5)
    """
    return fn.sum(diagonal(x, offset=offset), -1, dtype=dtype or widened(x.dtype))


def vector_norm(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Vector norms along some axes; None means all axes. `ord` is any number, inf or -inf.

    Arguments:
        x: an array
        axis: the axis, or the axes, of a vector

    Example:
        >>> turnout.array_api.linalg.vector_norm(turnout.tensor([3.0, 4.0]))
        tensor(5.)
    """
    axes = axes_of("vector_norm", x, axis)
    if axes:
        return operators.vector_norm(x, ord, axes, keepdims)
    return operators.vector_norm(fn.unsqueeze(x, -1), ord, -1)


describe(
    globals(),
    x="matrices, in the last two axes",
    x1="the first operand",
    x2="the second operand",
    offset="the diagonal, counted upwards from the main one",
    keepdims="whether reduced axes stay, with length 1",
    ord="the order of the norm",
    rtol="the tolerance",
)
