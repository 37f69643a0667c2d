"""Functions that take tensors either one by one or in a list: `meshgrid(x, y)` and `meshgrid([x, y])`.

Their operators take a list. `broadcast_shapes` takes shapes in the same two ways.
"""

from __future__ import annotations

from turnout.operators.tracebacks import shortening
from turnout_aten.errors import arguments as texts
from turnout_aten.generated import functions
from turnout_aten.tensor.size import Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor

listed: Any = functions  # its type stubs omit the names defined here


def _listed(tensors: tuple[Any, ...]) -> Any:
    """The tensors as one list."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def _one_or_all(function: Any, tensors: tuple[Any, ...]) -> Any:
    """A function of one tensor, or of a list, which gives a tuple."""
    given = _listed(tensors)
    return function(given[0]) if given is tensors and len(given) == 1 else tuple(function(given))


@shortening
def atleast_1d(*tensors: Any) -> Any:
    """The tensors with at least 1 dimension: a tensor for one argument, a tuple for several.

    Arguments:
        tensors: the tensors, one by one or in one list

    Example:
        >>> turnout.atleast_1d(turnout.tensor([1, 2]), turnout.tensor(3))
        (tensor([1, 2]), tensor([3]))
    """
    return _one_or_all(listed.atleast_1d, tensors)


@shortening
def atleast_2d(*tensors: Any) -> Any:
    """The tensors with at least 2 dimensions: a tensor for one argument, a tuple for several.

    Arguments:
        tensors: the tensors, one by one or in one list

    Example:
        >>> turnout.atleast_2d(turnout.tensor([1, 2]))
        tensor([[1, 2]])
    """
    return _one_or_all(listed.atleast_2d, tensors)


@shortening
def atleast_3d(*tensors: Any) -> Any:
    """The tensors with at least 3 dimensions: a tensor for one argument, a tuple for several.

    Arguments:
        tensors: the tensors, one by one or in one list

    Example:
        >>> turnout.atleast_3d(turnout.tensor([1, 2])).shape
        turnout.Size([1, 2, 1])
    """
    return _one_or_all(listed.atleast_3d, tensors)


@shortening
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape. Raises ShapeError if they have none.

    Arguments:
        tensors: the tensors, one by one or in one list

    Example:
        >>> turnout.broadcast_tensors(turnout.tensor([1, 2]), turnout.tensor([[3]]))
        (tensor([[1, 2]]), tensor([[3, 3]]))
    """
    return tuple(listed.broadcast_tensors(_listed(tensors)))


@shortening
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that all given shapes broadcast to; an int is a shape of 1 dimension. Raises ShapeError if there is none.

    Arguments:
        shapes: the shapes

    Example:
        >>> turnout.broadcast_shapes((2, 1), (3,))
        turnout.Size([2, 3])
    """
    from turnout.errors import ShapeError
    from turnout_aten.shapes.extents import broadcast_all

    found = [(s,) if hasattr(s, "__index__") else tuple(s) for s in shapes]
    for shape in found:
        if any(n < 0 for n in shape):
            raise ShapeError(texts.negative_length("broadcast_shapes", shape))
    return Size(broadcast_all(found))


@shortening
def block_diag(*tensors: Any) -> Tensor:
    """A block-diagonal matrix of the given matrices, with zeros elsewhere.

    Arguments:
        tensors: the matrices; vectors are rows, numbers are 1 x 1

    Example:
        >>> turnout.block_diag(turnout.tensor([[1, 2]]), turnout.tensor([[3]]))
        tensor([[1, 2, 0],
                [0, 0, 3]])
    """
    return listed.block_diag(_listed(tensors))


@shortening
def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of one element from each vector, one per row.

    Arguments:
        tensors: the vectors

    Example:
        >>> turnout.cartesian_prod(turnout.tensor([1, 2]), turnout.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    return listed.cartesian_prod(_listed(tensors))


@shortening
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid: for each axis, a tensor with the shape of the grid.

    # differs from torch: `meshgrid` without `indexing` does not warn; the default is "ij".

    Arguments:
        tensors: the coordinates along each axis, vectors
        indexing: "ij" (matrix order), or "xy", which exchanges the first two dims

    Example:
        >>> turnout.meshgrid(turnout.tensor([1, 2]), turnout.tensor([3, 4]))
        (tensor([[1, 1],
                [2, 2]]), tensor([[3, 4],
                [3, 4]]))
    """
    return tuple(listed.meshgrid(_listed(tensors), indexing="ij" if indexing is None else indexing))


@shortening
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates of flat indices into a row-major tensor of `shape`, one tensor of int64 per dim.

    Raises DTypeError for indices that are not integers, ShapeError for a negative length or an index outside the shape.

    Arguments:
        indices: the flat indices
        shape: the shape into which they lead

    Example:
        >>> turnout.unravel_index(turnout.tensor([4]), (2, 3))
        (tensor([1]), tensor([1]))
    """
    from turnout.dtypes import BOOL, INT, int64
    from turnout.errors import DTypeError, ShapeError

    if indices.dtype.category not in (BOOL, INT) or indices.dtype.category == BOOL:
        raise DTypeError(f"unravel_index: 'indices' must be integers, got {indices.dtype.name}")
    lengths: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in lengths):
        raise ShapeError(texts.negative_length("unravel_index", lengths))
    total = 1
    for n in lengths:
        total *= n
    if indices.numel() and indices.device.backend.has_values and not 0 <= indices.min().item() <= indices.max().item() < total:
        raise ShapeError(f"unravel_index: an index is outside shape {list(lengths)}")
    found = []
    indices = indices.to(dtype=int64)  # a narrower dtype may hold an index, and not the lengths that divide it
    for n in reversed(lengths):
        found.append(indices.remainder(n))
        indices = indices.div(n, rounding_mode="floor")
    return tuple(reversed(found))
