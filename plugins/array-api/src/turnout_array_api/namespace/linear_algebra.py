"""The linear algebra of the main namespace: products and the transpose."""

from __future__ import annotations

from turnout.errors import DimError, ShapeError
from turnout_array_api.namespace.promotion import pair
from turnout_aten.functions import linear_algebra
from turnout_aten.generated import functions as fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Matrix products; batch dims broadcast. A vector on the left is a row, a vector on the right is a column.

    Arguments:
        x1: the first operand
        x2: the second operand

    Example:
        >>> turnout.array_api.matmul(turnout.tensor([[1, 2], [3, 4]]), turnout.tensor([1, 1]))
        tensor([3, 7])
    """
    return fn.matmul(*pair("matmul", x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view with the last two axes exchanged. Raises ShapeError below 2 dimensions.

    Arguments:
        x: an array

    Example:
        >>> turnout.array_api.matrix_transpose(turnout.tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]])
    """
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums of products over the last n axes of x1 and the first n of x2, or over two lists of axes.

    Arguments:
        x1: the first operand
        x2: the second operand
        axes: a number of axes, or two lists of them

    Example:
        >>> turnout.array_api.tensordot(turnout.tensor([1, 2]), turnout.tensor([3, 4]), axes=1)
        tensor(11)
    """
    return linear_algebra.tensordot(*pair("tensordot", x1, x2), dims=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of conj(x1) * x2 along an axis, counted from the end; the other axes broadcast.

    Arguments:
        x1: the first operand
        x2: the second operand
        axis: the axis of the vectors

    Example:
        >>> turnout.array_api.vecdot(turnout.tensor([1, 2]), turnout.tensor([3, 4]))
        tensor(11)
    """
    left, right = pair("vecdot", x1, x2)
    place = axis if axis < 0 else axis - min(left.ndim, right.ndim)
    if not -min(left.ndim, right.ndim) <= place < 0:
        raise DimError(f"vecdot: both arrays need axis {axis}, got shapes {list(left.shape)} and {list(right.shape)}")
    if left.shape[place] != right.shape[place]:
        raise ShapeError(
            f"vecdot: axis {axis} must have the same length in both, got shapes {list(left.shape)} and {list(right.shape)}"
        )
    return fn.sum(fn.mul(fn.conj(left), right), place, dtype=left.dtype)
