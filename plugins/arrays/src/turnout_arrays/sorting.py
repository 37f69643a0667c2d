"""Sorting and searching. nan is greater than any number."""

from __future__ import annotations

from typing import Any

from turnout.errors import ArgumentError, DimError, ShapeError
from turnout_arrays.indexing import along, around
from turnout_arrays.numbers import POSTPONING, store, store_single, widen
from turnout_aten.errors import arguments as texts
from turnout_aten.kernels.rows import Row
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.shapes.sorting import bincount_dtype, check_bincount
from turnout_aten.tensor.checks import are_postponed

Table = dict[str, Any]

# Up to this many extremes are found one by one: finding one is vectorised and takes a hundredth of the time of a partition.
_FEW = 16


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    return ordering(xp) | searching(xp) | counting(xp)


# Elements up to which a plan is prepared, and a stable sort is the way.
_PREPARED = 64


def _first_of(xp: Any, self: Any, dim: int, count: int, descending: bool) -> Any:
    """A function of arrays like a small one: the indices along `dim` of its first elements in stable order."""
    lead = (slice(None),) * dim
    if not descending:
        part = (*lead, slice(0, count))
        return lambda array: array.argsort(dim, "stable")[part]
    # Reversed twice, so that equal elements keep their order.
    length = self.shape[dim]
    reverse, last = (*lead, slice(None, None, -1)), xp.asarray(length - 1)
    end = length - 1 - count
    back = (*lead, slice(length - 1, end if end >= 0 else None, -1))
    return lambda array: last - array[reverse].argsort(dim, "stable")[back]


def _prepared_order(xp: Any, outs: Any, self: Any, dim: int, descending: bool) -> Any:
    """`write(self, values, indices)` for arrays like a small one, or None."""
    if not self.shape or not 0 < self.size <= _PREPARED or self.dtype.itemsize < 4 or self.dtype.kind not in "fiu":
        return None
    shape, dim = outs[0].shape, dim % self.ndim
    places = around(xp, shape, dim, self)
    if places is None or 0 in shape:
        return None
    first, (before, behind) = _first_of(xp, self, dim, shape[dim], descending), places

    def write(self: Any, values: Any, indices: Any) -> None:
        at = first(self)
        values[...] = self[(*before, at, *behind)]
        indices[...] = at

    return write


def prepared_sort(xp: Any) -> Any:
    """What prepares plans of `sort` for few elements."""

    def prepares(outs: Any, self: Any, stable: Any, dim: int, descending: bool) -> Any:
        write = _prepared_order(xp, outs, self, dim, descending)
        return write and (lambda self, stable, dim, descending, values, indices: write(self, values, indices))

    return prepares


def ordering(xp: Any) -> Table:
    """Sorting, always stable."""

    def order(self: Any, dim: int, descending: bool) -> Any:
        if not descending:
            return self.argsort(dim, "stable")
        # Reverse twice, so that equal elements keep their order.
        reverse = (*(slice(None),) * (dim % self.ndim), slice(None, None, -1))
        backwards = self[reverse].argsort(dim, "stable")
        return (self.shape[dim] - 1 - backwards)[reverse]

    def sort(self: Any, stable: Any, dim: int, descending: bool, values: Any, indices: Any) -> None:
        if not self.shape:
            return store_single(xp, self, values, indices)
        at = order(widen(xp, self), dim, descending)
        store(xp, values, self[along(xp, at.shape, dim % self.ndim, at)])
        store(xp, indices, at)

    def nearest(x: Any, k: int, dim: int, largest: bool) -> Any:
        """The indices along `dim` of the k largest or smallest elements, in any order."""
        length = x.shape[dim]
        if xp.__class__ in POSTPONING and are_postponed():
            return order(x, dim, largest)[(*(slice(None),) * dim, slice(0, k))]
        if k <= _FEW and x.dtype.kind in "fiu":
            picked = one_by_one(x, k, dim, largest)
            if picked is not None:
                return picked
        found = xp.argpartition(x, length - k if largest else k - 1, dim)
        return found[(*(slice(None),) * dim, slice(length - k, length) if largest else slice(0, k))]

    def one_by_one(x: Any, k: int, dim: int, largest: bool) -> Any:
        """The same, one extreme after the other; None if one of them is nan or the value that overwrites those found."""
        find = xp.argmax if largest else xp.argmin
        end = (-xp.inf if largest else xp.inf) if x.dtype.kind == "f" else getattr(xp.iinfo(x.dtype), "min" if largest else "max")
        rest, found = x.copy(), []
        for _ in range(k):
            found.append(find(rest, dim, keepdims=True))
            value = xp.take_along_axis(rest, found[-1], dim)
            if bool(xp.any((value == end) | (value != value))):
                return None
            xp.put_along_axis(rest, found[-1], xp.asarray(end, x.dtype), dim)
        return xp.concatenate(found, dim)

    def topk(self: Any, k: int, dim: int, largest: bool, sorted: bool, values: Any, indices: Any) -> None:
        if not self.shape:
            return store_single(xp, self, values, indices)
        length = self.shape[dim]
        chosen = widen(xp, self)
        at = None
        if 0 < k < length // 4:  # sorting all would cost more than finding the k and sorting those
            at = nearest(chosen, k, dim % self.ndim, largest)
            chosen = xp.take_along_axis(chosen, at, dim)
        first = (slice(None),) * (dim % self.ndim) + (slice(0, k),)
        place = order(chosen, dim, largest)[first]
        dim %= self.ndim
        at = place if at is None else at[along(xp, place.shape, dim, place)]
        store(xp, values, self[along(xp, at.shape, dim, at)])
        store(xp, indices, at)

    def prepared_topk(outs: Any, self: Any, k: int, dim: int, largest: bool, sorted: bool) -> Any:
        if not self.shape or 0 < k < self.shape[dim] // 4:
            return None
        write = _prepared_order(xp, outs, self, dim, largest)
        return write and (lambda self, k, dim, largest, sorted, values, indices: write(self, values, indices))

    return {
        "sort.values_stable": Row(sort, prepares=prepared_sort(xp)),
        "topk.values": Row(topk, quiet=True, prepares=prepared_topk),
    }


def searching(xp: Any) -> Table:
    """Positions in sorted sequences; positions of nonzero elements."""

    def searchsorted(sorted_sequence: Any, self: Any, out_int32: bool, right: bool, side: Any, sorter: Any, out: Any) -> Any:
        if sorter is not None:
            bounds = sorted_sequence.shape[-1]
            if sorter.size and (int(sorter.min()) < 0 or int(sorter.max()) >= bounds):
                raise DimError(f"searchsorted: sorter has an index out of bounds for {bounds} elements")
            sorted_sequence = xp.take_along_axis(sorted_sequence, sorter, -1)
        sequence = widen(xp, sorted_sequence)
        values = widen(xp, xp.asarray(self))
        if not hasattr(self, "dtype"):
            values = values.astype(xp.promote_types(values.dtype, sequence.dtype) if sequence.size else sequence.dtype)
        where = "right" if right or side == "right" else "left"
        if len(sequence.shape) == 1:
            return store(xp, out, xp.searchsorted(sequence, values, where))
        if not out.size:
            return out
        rows, wanted = sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1])
        found = [xp.searchsorted(row, value, where) for row, value in zip(rows, wanted, strict=True)]
        return store(xp, out, xp.stack(found).reshape(out.shape))

    def nonzero_static(self: Any, size: int, fill_value: int, out: Any) -> Any:
        found = xp.argwhere(self)[:size]
        out[: len(found)] = found
        out[len(found) :] = fill_value
        return out

    return {"searchsorted.Tensor_out": Row(searchsorted), "nonzero_static.out": Row(nonzero_static)}


def counting(xp: Any) -> Table:
    """Distinct values and their counts. Every nan is distinct."""

    def nothing() -> Any:
        return xp.empty(0, xp.int64)

    def distinct(rows: Any, order: Any, want_inverse: bool, want_counts: bool) -> tuple[Any, Any, Any]:
        """(index of the first element of each run, inverse, counts) of rows (N, M) in an order; None keeps their order."""
        ordered = rows if order is None else rows[order]
        new = xp.ones(len(rows), bool)
        new[1:] = xp.any(ordered[1:] != ordered[:-1], 1)
        starts = xp.nonzero(new)[0]
        inverse, counts = nothing(), nothing()
        if want_inverse:
            inverse = xp.empty(len(rows), xp.int64)
            inverse[slice(None) if order is None else order] = xp.cumsum(new) - 1
        if want_counts:
            counts = xp.diff(xp.concatenate([starts, xp.asarray([len(rows)])])).astype(xp.int64)
        return (starts if order is None else order[starts]), inverse, counts

    def by_rows(self: Any, dim: int) -> tuple[Any, Any]:
        """The array with `dim` first, and its slices as rows."""
        dim = wrap_dim(dim, len(self.shape))
        first = xp.moveaxis(self, dim, 0)
        size = 1
        for n in first.shape[1:]:
            size *= n
        if not size:
            raise ShapeError(texts.empty_slices("unique"))
        return first, first.reshape(first.shape[0], size)

    def unique(self: Any, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Any, Any, Any]:
        flat = widen(xp, self).reshape(-1)
        if not (return_inverse or return_counts):
            ordered = xp.sort(flat)
            new = xp.ones(len(flat), bool)
            new[1:] = ordered[1:] != ordered[:-1]
            return ordered[new].astype(self.dtype, copy=False), nothing(), nothing()
        order = xp.argsort(flat, kind="stable")
        places, inverse, counts = distinct(flat.reshape(-1, 1), order, return_inverse, return_counts)
        return (self.reshape(-1)[places], inverse.reshape(self.shape) if return_inverse else inverse, counts)

    def unique_dim(self: Any, dim: int, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Any, Any, Any]:
        """The kernel along a dim. It always returns inverse and counts."""
        first, rows = by_rows(self, dim)
        wide = widen(xp, rows)
        order = xp.lexsort(wide.T[::-1]) if rows.shape[1] else xp.arange(len(rows))
        places, inverse, counts = distinct(wide, order, True, True)
        return xp.moveaxis(xp.ascontiguousarray(first[places]), 0, dim), inverse, counts

    def unique_consecutive(self: Any, return_inverse: bool, return_counts: bool, dim: Any) -> tuple[Any, Any, Any]:
        if dim is not None:
            first, rows = by_rows(self, dim)
            places, inverse, counts = distinct(widen(xp, rows), None, True, True)
            return xp.moveaxis(xp.ascontiguousarray(first[places]), 0, dim), inverse, counts
        flat = self.reshape(-1)
        places, inverse, counts = distinct(widen(xp, flat).reshape(-1, 1), None, return_inverse, return_counts)
        return flat[places], inverse.reshape(self.shape) if return_inverse else inverse, counts

    def bincount(self: Any, weights: Any, minlength: int) -> Any:
        shape = None if weights is None else weights.shape
        check_bincount(self.shape, str(self.dtype), self.dtype.kind in "iu", minlength, shape)
        if self.size and int(self.min()) < 0:
            raise ArgumentError(f"bincount: values must not be negative, got {int(self.min())}")
        made = xp.bincount(self.astype(xp.int64), None if weights is None else widen(xp, weights), minlength)
        return made.astype(bincount_dtype(None if weights is None else str(weights.dtype)).name)

    # fmt: off
    return {
        "_unique2":           unique,
        "unique_dim":         unique_dim,
        "unique_consecutive": unique_consecutive,
        "bincount":           bincount,
    }
    # fmt: on
