"""Kernels that write by index into a copy of `self`. Where an index repeats, sums add up and writes keep the last one."""

from __future__ import annotations

from math import copysign
from typing import Any

from turnout_arrays.indexing import FEW, Table, along, around, check_indices, flat_places, in_range, tuple_of
from turnout_arrays.numbers import number_as, sign_of_zero, store, widen
from turnout_aten.kernels.rows import Move, Row

_UFUNCS = {
    "sum": lambda xp: xp.add, "mean": lambda xp: xp.add, "prod": lambda xp: xp.multiply, "amax": lambda xp: xp.maximum,
    "amin": lambda xp: xp.minimum,
}  # fmt: skip
FEW_DIMS = 32  # NumPy 2.4 ends the process in `ufunc.at` where the elements that an index selects have more dims


def _identity(xp: Any, reduce: str, dtype: Any) -> Any:
    """The start value of a reduction that does not include self."""
    if reduce in ("sum", "mean", "prod"):
        return dtype.type(reduce == "prod")
    lowest = reduce == "amax"
    if dtype.kind == "b":
        return dtype.type(not lowest)
    if dtype.kind == "f":
        return dtype.type("-inf" if lowest else "inf")
    limits = xp.iinfo(dtype)
    return dtype.type(limits.min if lowest else limits.max)


def kernels(xp: Any) -> Table:
    """Writing by index into a copy of `self`. Where an index repeats, sums add up and writes keep the last one."""

    def combine_at(ufunc: Any, target: Any, places: Any, values: Any) -> None:
        """`ufunc.at`, for any number of dims."""
        dims = 0
        for place in places:
            if place.__class__ is not slice and place.ndim > dims:  # `max` is a call more
                dims = place.ndim
        if target.ndim + dims > FEW_DIMS:
            line = xp.reshape(target, (-1,))
            at = xp.reshape(xp.arange(line.size), target.shape)[places]
            ufunc.at(line, at.reshape(-1), xp.broadcast_to(values, at.shape).reshape(-1))
            store(xp, target, line.reshape(target.shape))
        else:
            ufunc.at(target, places, values)

    def added_at(target: Any, places: Any, values: Any) -> None:
        """`values` added to the elements at `places`; two-byte floats in float32, and rounded once."""
        room, values = widen(xp, target), widen(xp, values)
        if room.ndim == 1 == values.ndim:  # NumPy 2.4 reads beyond a line of values if the index has more dims
            values = xp.broadcast_to(values, places[0].shape)
        combine_at(xp.add, room, places, values)
        if room is not target:
            store(xp, target, room)

    def index_put(self: Any, indices: Any, values: Any, accumulate: bool, out: Any) -> Any:
        if out is not self:
            store(xp, out, self)
        if not out.size or 0 in [index.size for index in indices if index is not None]:
            return out  # nothing is written, so no index is wrong
        places = tuple_of(xp, "index_put", indices, self.shape)
        try:
            if accumulate:
                added_at(out, places, values)
            else:
                out[places] = values
        except IndexError:
            check_indices(xp, "index_put", indices, self.shape)
            raise
        return out

    def start(name: str, self: Any, dim: int, index: Any, out: Any) -> tuple[Any, tuple[Any, ...]]:
        """`out` filled from `self`, with at least one dim, and the index tuple for `index`."""
        if out is not self:
            store(xp, out, self)
        target = out.reshape(1) if not out.shape else out
        index = xp.reshape(index, (-1,)) if not index.shape else index
        if not index.size:  # its other dims are unchecked
            return target, ()
        in_range(xp, name, index, target.shape[dim])
        return target, along(xp, index.shape, dim, index)

    def part(src: Any, index: Any) -> Any:
        """The part of `src` that `index` covers."""
        if not src.shape or not index.shape:
            return src.reshape(-1)[: max(index.size, 0)]
        return src[tuple(slice(0, length) for length in index.shape)]

    def scatter_src(self: Any, dim: int, index: Any, src: Any, out: Any) -> Any:
        target, places = start("scatter", self, dim, index, out)
        if not index.size:
            return out
        target[places] = part(src, index)
        return out

    def scatter_value(self: Any, dim: int, index: Any, value: Any, out: Any) -> Any:
        target, places = start("scatter", self, dim, index, out)
        if not index.size:
            return out
        target[places] = number_as(xp, value, out.dtype)
        return out

    def prepared_value(outs: Any, self: Any, dim: int, index: Any, value: Any) -> Any:
        """For few indices, what stands around them and the number as an array are always the same."""
        places = around(xp, index.shape, dim, index)
        if places is None or not self.shape or not 0 < index.size <= FEW or outs[0].dtype.name != self.dtype.name:
            return None
        number, length, (before, behind) = number_as(xp, value, self.dtype), self.shape[dim], places
        sign = sign_of_zero(value)

        def scattered(self: Any, dim: int, index: Any, value: Any, out: Any) -> Any:
            if sign is not None and copysign(1.0, value) != sign:
                return scatter_value(self, dim, index, value, out)
            if out is not self:
                out[...] = self
            in_range(xp, "scatter", index, length)
            out[(*before, index, *behind)] = number
            return out

        return scattered

    def scatter_add(self: Any, dim: int, index: Any, src: Any, out: Any) -> Any:
        target, places = start("scatter_add", self, dim, index, out)
        if not index.size:
            return out
        room, source = widen(xp, target), widen(xp, part(src, index))
        if not room.flags.c_contiguous or not index.shape:
            combine_at(xp.add, room, places, source)
        else:
            # Two one-dimensional arrays: array modules are several times faster than with a tuple of indices.
            flat = room.reshape(-1)
            for rows, at in flat_places(xp, room.shape, dim, index):
                xp.add.at(flat, at.reshape(-1), source[rows].reshape(-1))
        if room is not target:
            store(xp, target, room)
        return out

    def index_add(self: Any, dim: int, index: Any, source: Any, alpha: Any, out: Any) -> Any:
        if out is not self:
            store(xp, out, self)
        target = out.reshape(1) if not out.shape else out
        in_range(xp, "index_add", index, target.shape[dim])
        if alpha != 1:
            source = xp.multiply(source, number_as(xp, alpha, source.dtype))
        index = xp.reshape(index, (-1,))
        if not source.shape:
            source = source.reshape(1)
        places = (slice(None),) * (dim % len(target.shape)) + (index,)
        added_at(target, places, source)
        return out

    def scatter_reduce(self: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, out: Any) -> Any:
        target, places = start("scatter_reduce", self, dim, index, out)
        if not index.size:
            return out
        values = widen(xp, part(src, index))
        # Two-byte floats add up in float32 and are rounded once.
        room = widen(xp, target)
        if not include_self:
            room = xp.array(room)
            room[places] = _identity(xp, reduce, room.dtype)
        combine_at(_UFUNCS[reduce](xp), room, places, values)
        if reduce == "mean":
            counts = xp.full(room.shape, int(include_self), xp.int64)
            combine_at(xp.add, counts, places, 1)
            counts = xp.maximum(counts, 1)
            room = xp.floor_divide(room, counts) if room.dtype.kind in "iu" else room / counts.astype(room.dtype)
        if room is not target:
            store(xp, target, room)
        return out

    # fmt: off
    return {
        "index_put.out":     Row(index_put, program=Move.PUT),
        "scatter.src_out":   Row(scatter_src),
        "scatter.value_out": Row(scatter_value, prepares=prepared_value),
        "scatter_add.out":   Row(scatter_add),
        "scatter_reduce.two_out": Row(scatter_reduce),
        "index_add.out":     Row(index_add),
    }
    # fmt: on
