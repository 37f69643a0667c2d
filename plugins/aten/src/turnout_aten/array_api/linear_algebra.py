"""The linear algebra of the main namespace: products and the transpose."""

from __future__ import annotations

from turnout.errors import DimError, ShapeError
from turnout_aten.array_api.promotion import pair
from turnout_aten.functions import linear_algebra
from turnout_aten.generated import functions as fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of matrices, in batches that broadcast; a vector counts as a row on the left, as a column on the right."""
    return fn.matmul(*pair("matmul", x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged. Raises ShapeError below 2 dimensions."""
    transposed: Tensor = x.mT
    return transposed


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums of products along the last axes of x1 with the first of x2, so many, or along two lists of axes."""
    return linear_algebra.tensordot(*pair("tensordot", x1, x2), dims=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of the products conj(x1) * x2 along an axis of both, counted from the end; the other axes broadcast."""
    left, right = pair("vecdot", x1, x2)
    place = axis if axis < 0 else axis - min(left.ndim, right.ndim)
    if not -min(left.ndim, right.ndim) <= place < 0:
        raise DimError(f"vecdot: axis {axis} is not one of both shapes {list(left.shape)} and {list(right.shape)}")
    if left.shape[place] != right.shape[place]:
        raise ShapeError(
            f"vecdot: axis {axis} must be equally long in both, got shapes {list(left.shape)} and {list(right.shape)}"
        )
    return fn.sum(fn.mul(fn.conj(left), right), place, dtype=left.dtype)
