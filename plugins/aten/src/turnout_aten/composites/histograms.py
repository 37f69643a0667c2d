"""Histograms: a search among the edges gives the bin of each value, then index_add counts.

The last bin includes its upper edge. Values outside all bins, and nan, are not counted.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from turnout.dtypes import FLOAT, int64
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.reshaping import write_out
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import numel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor

    Floats = Sequence[float] | None


def histc(self: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """The number of elements in each of `bins` equal parts of [min, max]. If min equals max, uses the range of the data.

    # differs from torch: `histc` without a range counts 0 everywhere if the data has nan or infinities; PyTorch raises.
    """
    if bins <= 0:
        raise ArgumentError(texts.not_positive("histc", "bins", bins))
    if not (isfinite(min) and isfinite(max)) or min > max:
        raise ArgumentError(f"histc: the range must be finite and in order, got {min} to {max}")
    x = aten.reshape(self, (-1,))
    low, high = aten.new_full(x, (), min), aten.new_full(x, (), max)
    if min == max and x.numel():
        low, high = aten.aminmax(x)
    equal = aten.eq__Tensor(low, high)
    low, high = aten.sub__Tensor(low, _as(equal, low)), aten.add__Tensor(high, _as(equal, high))
    inside = aten.logical_and(aten.ge__Tensor(x, low), aten.le__Tensor(x, high))
    inside = aten.logical_and(inside, aten.isfinite(aten.sub__Tensor(high, low)))
    scaled = aten.div__Tensor(aten.mul__Scalar(aten.sub__Tensor(x, low), bins), aten.sub__Tensor(high, low))
    at = aten.clamp(aten.to__dtype(aten.where__ScalarOther(inside, scaled, 0), int64), 0, bins - 1)
    return aten.index_add(aten.new_zeros(x, (bins,)), 0, at, _as(inside, x))


def _as(x: Tensor, like: Tensor) -> Tensor:
    return aten.to__dtype(x, like.dtype)


# ---- edges


def bin_edges(
    self: Tensor, bins: Sequence[int], *, range: Floats = None, weight: Tensor | None = None, density: bool = False
) -> list[Tensor]:
    """The edges of equal bins in each of the last dim's columns: over `range`, or the range of the data.

    # differs from torch: `histogram` and `histogramdd` without a range make edges of nan if the data has nan or infinities;
    PyTorch raises.
    """
    columns = _columns(self)
    if columns.shape[1] != len(bins):
        raise ShapeError(f"histogramdd: needs one number of bins for each of {columns.shape[1]} columns, got {list(bins)}")
    if range is not None and len(range) != 2 * len(bins):
        raise ShapeError(f"histogram: 'range' must be {2 * len(bins)} numbers, got {len(range)}")
    made = []
    for i, count in enumerate(bins):
        if count <= 0:
            raise ArgumentError(texts.not_positive("histogram", "bins", count))
        low, high = _ends(aten.select__int(columns, 1, i), None if range is None else range[2 * i : 2 * i + 2])
        made.append(_spread(low, high, count))
    return made


def _ends(x: Tensor, given: Floats) -> tuple[Tensor, Tensor]:
    if given is not None:
        low, high = given
        if not (isfinite(low) and isfinite(high)) or low > high:
            raise ArgumentError(f"histogram: the range must be finite and in order, got {low} to {high}")
        ends = aten.new_full(x, (), low), aten.new_full(x, (), high)
    else:
        ends = aten.aminmax(x) if x.numel() else (aten.new_zeros(x, ()), aten.new_ones(x, ()))
    half = aten.mul__Scalar(_as(aten.eq__Tensor(*ends), x), 0.5)
    return aten.sub__Tensor(ends[0], half), aten.add__Tensor(ends[1], half)


def _spread(low: Tensor, high: Tensor, count: int) -> Tensor:
    """count + 1 equidistant numbers. Each is counted from the nearer end, so that both ends are exact."""
    number = aten.arange(count + 1, dtype=low.dtype, device=low.device)
    step = aten.div__Scalar(aten.sub__Tensor(high, low), count)
    up = aten.add__Tensor(low, aten.mul__Tensor(number, step))
    down = aten.sub__Tensor(high, aten.mul__Tensor(aten.rsub__Scalar(number, count), step))
    return aten.where__self(aten.lt__Scalar(number, (count + 1) // 2), up, down)


# ---- counts


def _columns(self: Tensor) -> Tensor:
    if self.ndim < 2:
        raise ShapeError(texts.few_dims("histogramdd", "self", 2, self.shape))
    return aten.reshape(self, (numel(self.shape[:-1]), self.shape[-1]))


def from_bin_tensors(self: Tensor, bins: Sequence[Tensor], *, weight: Tensor | None = None, density: bool = False) -> Tensor:
    """The counts or summed weights of points [..., D] in bins with these edges; with `density`, the density."""
    if self.dtype.category != FLOAT:
        raise DTypeError(texts.not_float("histogram", self.dtype))
    columns = _columns(self)
    if columns.shape[1] != len(bins):
        raise ShapeError(f"histogramdd: needs edges for each of {columns.shape[1]} columns, got {len(bins)}")
    added = _weights(self, weight)
    place = None
    for i, edges in enumerate(bins):
        _check_edges(self, edges)
        x, count = aten.select__int(columns, 1, i), edges.shape[0] - 1
        first, last = aten.select__int(edges, 0, 0), aten.select__int(edges, 0, -1)
        inside = aten.logical_and(aten.ge__Tensor(x, first), aten.le__Tensor(x, last))
        added = aten.masked_fill__Scalar(added, aten.logical_not(inside), 0)
        at = aten.searchsorted__Tensor(edges, aten.contiguous(x), right=True)
        at = aten.clamp(aten.sub__Scalar(at, 1), 0, max(count - 1, 0))
        place = at if place is None else aten.add__Tensor(aten.mul__Scalar(place, count), at)
    shape = [edges.shape[0] - 1 for edges in bins]
    zeros = aten.new_zeros(self, (numel(shape),))
    counted: Tensor = zeros if not zeros.numel() else aten.index_add(zeros, 0, place, added)
    counted = aten.reshape(counted, shape)
    return _density(counted, bins) if density else counted


def _check_edges(self: Tensor, edges: Tensor) -> None:
    if edges.dtype is not self.dtype:
        raise DTypeError(f"histogram: the edges must have dtype {self.dtype.name}, got {edges.dtype.name}")
    if edges.ndim != 1 or not edges.shape[0]:
        raise ShapeError(f"histogram: the edges must have one dimension and an element, got shape {list(edges.shape)}")


def _weights(self: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return aten.new_ones(self, (numel(self.shape[:-1]),))
    if weight.dtype is not self.dtype:
        raise DTypeError(texts.wrong_dtype("histogram", "weight", self.dtype, weight.dtype))
    if weight.shape != self.shape[:-1]:
        raise ShapeError(texts.wrong_shape("histogram", "weight", self.shape[:-1], weight.shape))
    return aten.reshape(weight, (-1,))


def _density(counted: Tensor, bins: Sequence[Tensor]) -> Tensor:
    made: Tensor = aten.div__Tensor(counted, aten.sum(counted))
    for i, edges in enumerate(bins):
        widths = aten.reshape(aten.diff(edges), (-1, *(1,) * (len(bins) - i - 1)))
        made = aten.div__Tensor(made, widths)
    return made


def from_bin_counts(
    self: Tensor, bins: Sequence[int], *, range: Floats = None, weight: Tensor | None = None, density: bool = False
) -> Tensor:
    """histogramdd from the number of bins, which are equally wide."""
    return from_bin_tensors(self, bin_edges(self, bins, range=range), weight=weight, density=density)


def histogramdd(
    self: Tensor, bins: Sequence[int], range: Floats = None, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """(counts, the edges of each dim) of points [..., D], `bins` equal bins in each dim."""
    return histogramdd_tensors(self, bin_edges(self, bins, range=range), None, weight, density)


def histogramdd_int_bins(
    self: Tensor, bins: int, range: Floats = None, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """histogramdd with one number for all dims."""
    return histogramdd(self, [bins] * _columns(self).shape[1], range, weight, density)


def histogramdd_tensors(
    self: Tensor, bins: Sequence[Tensor], range: Floats = None, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """histogramdd with given edges.

    # differs from torch: the edges that `histogramdd` returns have no gaps between their elements.
    """
    counted = from_bin_tensors(self, bins, weight=weight, density=density)
    return counted, [aten.clone(edges) for edges in bins]


def histogram_bins(self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False) -> tuple[Tensor, Tensor]:
    """(counts, edges) of all elements in bins with the given edges."""
    if weight is not None and weight.shape != self.shape:
        raise ShapeError(texts.wrong_shape("histogram", "weight", self.shape, weight.shape))
    flat = None if weight is None else aten.reshape(weight, (-1,))
    return from_bin_tensors(_one_column(self), [bins], weight=flat, density=density), aten.clone(bins)


def _one_column(self: Tensor) -> Tensor:
    return aten.reshape(self, (self.numel(), 1))


def histogram(
    self: Tensor, bins: int = 100, *, range: Floats = None, weight: Tensor | None = None, density: bool = False
) -> tuple[Tensor, Tensor]:
    """histogram_bins for equal bins over `range`, or the range of the data."""
    if self.dtype.category != FLOAT:
        raise DTypeError(texts.not_float("histogram", self.dtype))
    return histogram_bins(self, bin_edges(_one_column(self), [bins], range=range)[0], weight=weight, density=density)


def histogram_bins_out(
    self: Tensor, bins: Tensor, *, weight: Tensor | None = None, density: bool = False, hist: Tensor, bin_edges: Tensor
) -> tuple[Tensor, Tensor]:
    """histogram with given edges into `hist` and `bin_edges`."""
    name = "aten::histogram.bins_tensor_out"
    counted, edges = histogram_bins(self, bins, weight=weight, density=density)
    return write_out(name, hist, counted), write_out(name, bin_edges, edges)


def histogram_out(
    self: Tensor, bins: int = 100, *, range: Floats = None, weight: Tensor | None = None, density: bool = False,
    hist: Tensor, bin_edges: Tensor,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """histogram into `hist` and `bin_edges`."""
    name = "aten::histogram.bin_ct_out"
    counted, edges = histogram(self, bins, range=range, weight=weight, density=density)
    return write_out(name, hist, counted), write_out(name, bin_edges, edges)
