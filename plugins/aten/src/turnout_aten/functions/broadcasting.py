"""Functions that take their tensors one by one, or in one list: `meshgrid(x, y)` and `meshgrid([x, y])`.

The operators behind them take a list. Shapes go the same way in `broadcast_shapes`.
"""

from __future__ import annotations

from turnout_aten.generated import functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor

listed: Any = functions  # its type stubs leave out what is named here


def _listed(tensors: tuple[Any, ...]) -> Any:
    """The list of tensors that was meant."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def atleast_1d(*tensors: Any) -> Any:
    """Tensors of at least 1 dimension: one for one, a tuple for several."""
    given = _listed(tensors)
    return listed.atleast_1d(given[0]) if given is tensors and len(given) == 1 else tuple(listed.atleast_1d(given))


def atleast_2d(*tensors: Any) -> Any:
    """Tensors of at least 2 dimensions: one for one, a tuple for several."""
    given = _listed(tensors)
    return listed.atleast_2d(given[0]) if given is tensors and len(given) == 1 else tuple(listed.atleast_2d(given))


def atleast_3d(*tensors: Any) -> Any:
    """Tensors of at least 3 dimensions: one for one, a tuple for several."""
    given = _listed(tensors)
    return listed.atleast_3d(given[0]) if given is tensors and len(given) == 1 else tuple(listed.atleast_3d(given))


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors expanded to their common shape. Raises ShapeError where there is none."""
    return tuple(listed.broadcast_tensors(_listed(tensors)))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The common shape of shapes, an int counting as one of 1 dimension. Raises ShapeError where there is none."""
    from turnout.errors import ShapeError
    from turnout_aten.shapes.extents import broadcast_all

    found = [(s,) if hasattr(s, "__index__") else tuple(s) for s in shapes]
    for shape in found:
        if any(n < 0 for n in shape):
            raise ShapeError(f"broadcast_shapes: {list(shape)} has a negative length")
    return broadcast_all(found)


def block_diag(*tensors: Any) -> Tensor:
    """Matrices one behind the other along the diagonal, zeros elsewhere."""
    made: Tensor = listed.block_diag(_listed(tensors))
    return made


def cartesian_prod(*tensors: Any) -> Tensor:
    """All tuples with one element of each vector, as rows."""
    made: Tensor = listed.cartesian_prod(_listed(tensors))
    return made


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinates of a grid, one tensor of the grid's shape for each axis.

    `indexing` is "ij", as for a matrix, or "xy", which exchanges the first two dims.
    # differs from torch: leaving `indexing` out gives no warning; it means "ij".
    """
    return tuple(listed.meshgrid(_listed(tensors), indexing="ij" if indexing is None else indexing))


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The coordinates, one tensor per dim of `shape`, of places in a row-major tensor of that shape.

    Raises DTypeError for indices that are not integers, ShapeError for a negative length or a place outside.
    """
    from turnout.dtypes import BOOL, INT
    from turnout.errors import DTypeError, ShapeError

    if indices.dtype.category not in (BOOL, INT) or indices.dtype.category == BOOL:
        raise DTypeError(f"unravel_index: 'indices' must be integers, got {indices.dtype.name}")
    lengths: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in lengths):
        raise ShapeError(f"unravel_index: shape {list(lengths)} has a negative length")
    total = 1
    for n in lengths:
        total *= n
    if indices.numel() and not indices.is_meta and not 0 <= indices.min().item() <= indices.max().item() < total:
        raise ShapeError(f"unravel_index: a place is outside of shape {list(lengths)}")
    found = []
    for n in reversed(lengths):
        found.append(indices.remainder(n))
        indices = indices.div(n, rounding_mode="floor")
    return tuple(reversed(found))
