"""`gradient`: differences of neighbours divided by their distance, per dim.

In each dim, the points have a constant spacing (a number), or coordinates (a tensor).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


def gradient_scalarint(self: Tensor, *, spacing: Any = None, dim: int | None = None, edge_order: int = 1) -> list[Tensor]:
    """One distance for one dim, or for all of them."""
    dims = range(self.ndim) if dim is None else (dim,)
    return _gradients(self, [1 if spacing is None else spacing] * len(dims), dims, edge_order)


def gradient_scalararray(self: Tensor, *, spacing: Any, dim: Sequence[int], edge_order: int = 1) -> list[Tensor]:
    """One distance for some dims."""
    return _gradients(self, [spacing] * len(dim), dim, edge_order)


def gradient_array(self: Tensor, *, dim: Sequence[int], edge_order: int = 1) -> list[Tensor]:
    """The distance 1 for some dims."""
    return _gradients(self, [1] * len(dim), dim, edge_order)


def gradient_many(self: Tensor, *, spacing: Any, dim: Any = None, edge_order: int = 1) -> list[Tensor]:
    """A spacing, or the coordinates of the points, for each dim."""
    dims = range(self.ndim) if dim is None else (dim,) if isinstance(dim, int) else dim
    return _gradients(self, spacing, dims, edge_order)


def _gradients(self: Tensor, spacing: Sequence[Any], dims: Sequence[int], edge_order: int) -> list[Tensor]:
    if edge_order not in (1, 2):
        raise ArgumentError(f"gradient: edge_order must be 1 or 2, got {edge_order}")
    if len(spacing) != len(dims):
        raise ShapeError(f"gradient: needs one spacing for each of {len(dims)} dims, got {len(spacing)}")
    found = [wrap_dim(d, self.ndim) for d in dims]
    if len(set(found)) != len(found):
        raise ShapeError(texts.repeated_dim("gradient", dims))
    if self.dtype.category < FLOAT and not self.dtype.is_signed:
        raise DTypeError(f"gradient: needs a signed dtype, got {self.dtype.name}")
    for d in found:
        if self.ndim and self.shape[d] < edge_order + 1:
            raise ShapeError(f"gradient: dim {d} must have at least {edge_order + 1} elements, got {self.shape[d]}")
    each = zip(found, spacing, strict=True)
    return [(_at_places if isinstance(s, Tensor) else _at_distance)(self, d, s, edge_order) for d, s in each]


def _part(x: Tensor, d: int, start: int, length: int) -> Tensor:
    """`length` elements along a dim, starting at `start`, which counts from the end if negative."""
    start = start % x.shape[d]
    return aten.slice__Tensor(x, d, start, start + length)


def _joined(d: int, *parts: Tensor) -> Tensor:
    return aten.cat([p for p in parts if p.shape[d]], d)


def _at_distance(f: Tensor, d: int, h: Any, edge_order: int) -> Tensor:
    n = f.shape[d]
    inner = aten.div__Scalar(aten.sub__Tensor(_part(f, d, 2 % n, n - 2), _part(f, d, 0, n - 2)), 2 * h)
    if edge_order == 1:
        first = aten.div__Scalar(aten.sub__Tensor(_part(f, d, 1, 1), _part(f, d, 0, 1)), h)
        last = aten.div__Scalar(aten.sub__Tensor(_part(f, d, -1, 1), _part(f, d, -2, 1)), h)
    else:
        first = _combined(f, d, (0, 1, 2), (-1.5 / h, 2 / h, -0.5 / h))
        last = _combined(f, d, (-3, -2, -1), (0.5 / h, -2 / h, 1.5 / h))
    return _joined(d, first, inner, last)


def _combined(f: Tensor, d: int, places: tuple[int, ...], factors: tuple[Any, ...]) -> Tensor:
    total: Tensor | None = None
    for place, factor in zip(places, factors, strict=True):
        one = _part(f, d, place, 1)
        term = aten.mul__Tensor(one, factor) if isinstance(factor, Tensor) else aten.mul__Scalar(one, factor)
        total = term if total is None else aten.add__Tensor(total, term)
    assert total is not None
    return total


def _at_places(f: Tensor, d: int, x: Tensor, edge_order: int) -> Tensor:
    """The weights of a parabola through three neighbours; a and b are the distances before and after the middle one."""
    n = f.shape[d]
    if x.ndim != 1 or x.shape[0] != n:
        raise ShapeError(f"gradient: the coordinates of dim {d} must have shape {[n]}, got {list(x.shape)}")
    x = aten.reshape(x, (*(1,) * d, -1, *(1,) * (f.ndim - d - 1)))
    steps = aten.sub__Tensor(_part(x, d, 1, n - 1), _part(x, d, 0, n - 1))
    a, b = _part(steps, d, 0, n - 2), _part(steps, d, 1 % max(n - 1, 1), n - 2)
    inner = _weighted(
        (_part(f, d, 0, n - 2), _neg(b), a + b, a), (_part(f, d, 1, n - 2), b - a, a, b), (_part(f, d, 2 % n, n - 2), a, a + b, b)
    )
    if edge_order == 1:
        first = aten.div__Tensor(aten.sub__Tensor(_part(f, d, 1, 1), _part(f, d, 0, 1)), _part(steps, d, 0, 1))
        last = aten.div__Tensor(aten.sub__Tensor(_part(f, d, -1, 1), _part(f, d, -2, 1)), _part(steps, d, -1, 1))
        return _joined(d, first, inner, last)
    a, b = _part(steps, d, 0, 1), _part(steps, d, 1, 1)
    first = _weighted(
        (_part(f, d, 0, 1), _neg(a + a + b), a + b, a), (_part(f, d, 1, 1), a + b, a, b), (_part(f, d, 2, 1), _neg(a), a + b, b)
    )
    a, b = _part(steps, d, -2, 1), _part(steps, d, -1, 1)
    last = _weighted(
        (_part(f, d, -3, 1), b, a + b, a), (_part(f, d, -2, 1), _neg(a + b), a, b), (_part(f, d, -1, 1), a + b + b, a + b, b)
    )
    return _joined(d, first, inner, last)


def _neg(x: Any) -> Tensor:
    return aten.neg(x)


def _weighted(*terms: tuple[Any, Any, Any, Any]) -> Tensor:
    """The sum of value * over / (u * v)."""
    total: Tensor | None = None
    for value, over, u, v in terms:
        term = aten.mul__Tensor(value, aten.div__Tensor(over, aten.mul__Tensor(u, v)))
        total = term if total is None else aten.add__Tensor(total, term)
    assert total is not None
    return total
