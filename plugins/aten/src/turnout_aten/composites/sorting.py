"""Sorting and searching in terms of sort.stable, searchsorted and nonzero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import bool_
from turnout.errors import ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.layouts import lying
from turnout_aten.composites.reshaping import write_out
from turnout_aten.shapes.promotion import result_type

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def sort(self: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """(values, indices), sorted along a dim."""
    values, indices = aten.sort__stable(self, stable=False, dim=dim, descending=descending)
    return values, indices


def sort_values(
    self: Tensor, dim: int = -1, descending: bool = False, *, values: Tensor, indices: Tensor
) -> tuple[Tensor, Tensor]:
    """sort into `values` and `indices`."""
    aten.sort__values_stable(self, stable=False, dim=dim, descending=descending, values=values, indices=indices)
    return values, indices


def argsort(self: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """The indices that sort along a dim."""
    return aten.sort__stable(self, stable=False, dim=dim, descending=descending)[1]


def argsort_stable(self: Tensor, *, stable: bool, dim: int = -1, descending: bool = False) -> Tensor:
    """argsort; equal elements keep their order if `stable`."""
    return aten.sort__stable(self, stable=stable, dim=dim, descending=descending)[1]


def argsort_stable_out(self: Tensor, *, stable: bool, dim: int = -1, descending: bool = False, out: Tensor) -> Tensor:
    """argsort into `out`."""
    found = argsort_stable(self, stable=stable, dim=dim, descending=descending)
    return write_out("aten::argsort.stable_out", out, found)


def msort(self: Tensor) -> Tensor:
    """The elements sorted along the first dim."""
    return aten.sort__stable(self, stable=False, dim=0)[0]


def bucketize(self: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bucket of each element among sorted one-dimensional boundaries."""
    _check_boundaries(boundaries)
    return aten.searchsorted__Tensor(boundaries, self, out_int32=out_int32, right=right)


def bucketize_scalar(self: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """bucketize for a number."""
    _check_boundaries(boundaries)
    return aten.searchsorted__Scalar(boundaries, self, out_int32=out_int32, right=right)


def _check_boundaries(boundaries: Tensor) -> None:
    if boundaries.ndim != 1:
        raise ShapeError(f"bucketize: boundaries must have one dimension, got shape {list(boundaries.shape)}")


def isin(elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is one of `test_elements`; with `invert`, whether it is not. nan never is."""
    dtype = result_type(elements, test_elements)
    among = aten.reshape(aten.to__dtype(test_elements, dtype), (-1,))
    if not among.numel():
        return aten.full_like(elements, invert, dtype=bool_, memory_format="contiguous_format")
    among = aten.sort(among)[0]
    elements = aten.to__dtype(elements, dtype)
    at = aten.clamp(aten.searchsorted__Tensor(among, elements), 0, among.numel() - 1)
    found = aten.reshape(aten.index_select(among, 0, aten.reshape(at, (-1,))), elements.shape)
    return lying(aten.ne__Tensor(found, elements) if invert else aten.eq__Tensor(found, elements))


def isin_scalar(elements: Tensor, test_element: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element equals a number."""
    return lying((aten.ne__Scalar if invert else aten.eq__Scalar)(elements, test_element))


def scalar_isin(element: Any, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether a number is one of `test_elements`."""
    made: Tensor = aten.any(aten.eq__Scalar(test_elements, element))
    return aten.logical_not(made) if invert else made


def argwhere(self: Tensor) -> Tensor:
    """The indices of the nonzero elements, one per row."""
    return aten.nonzero(self)


def nonzero_numpy(self: Tensor) -> list[Tensor]:
    """The indices of nonzero elements, one tensor per dim; a 0-dim tensor counts as a vector."""
    x = self if self.ndim else aten.unsqueeze(self, 0)
    return aten.unbind__int(aten.nonzero(x), 1)
