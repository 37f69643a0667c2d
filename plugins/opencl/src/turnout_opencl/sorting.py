"""Sorting, top-k and nonzero. The order is computed first, as indices; the values are then read in that order."""

from __future__ import annotations

from typing import Any

from turnout.dtypes import bool_, int64
from turnout_aten.dtypes import promote_types
from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray, memory_of, new_array
from turnout_opencl.backend import contiguous, copy, fill
from turnout_opencl.grids import packed
from turnout_opencl.indexing import places, take
from turnout_opencl.pointwise import as_bool, dense, run_map
from turnout_opencl.programs import TYPES
from turnout_opencl.reductions import lines

Ints = tuple[int, ...]

_CHUNK = 512  # elements that a work-item counts


def order(self: ClArray, dim: int, descending: bool) -> ClArray:
    """The indices that sort along the dim, which is last in the result; equal elements keep their order."""
    place, length = self.place, self.shape[dim]
    shape = (*self.shape[:dim], *self.shape[dim + 1 :], length)
    kept = (*self.strides[:dim], *self.strides[dim + 1 :])
    first = new_array(place, shape, int64)
    if length < 2:
        fill(first, 0)
        return first
    second = new_array(place, shape, int64) if length > 2 else first
    per_line = (*first.strides[:-1], 0)
    given, made, width = None, first, 1
    while width < length:
        call, count = packed(
            int(descending), shape, (per_line, per_line, (*kept, 0)), (0, 0, self.offset),
            extra=(length, width, self.strides[dim]),
        )  # fmt: skip
        buffers = (made.buffer, None if given is None else given.buffer, self.buffer)
        place.start("sort", self.dtype, "merge", call, buffers, count)
        given, made = made, second if made is first else first
        width *= 2
    assert given is not None
    return given


def _ordered(self: ClArray, dim: int, descending: bool, values: ClArray, indices: ClArray) -> None:
    self, values, indices = self.at_least_1d(), values.at_least_1d(), indices.at_least_1d()
    if not indices.size:
        return
    d = dim % len(self.shape)
    if values.buffer is self.buffer:
        self = contiguous(self)  # values are written while others are read
    found = order(self, d, descending)
    strides = (*found.strides[:d], 1, *found.strides[d:-1])
    copy(indices, found.view(indices.shape, strides, 0))
    take(self, (*self.strides[:d], 0, *self.strides[d + 1 :]), found, strides, values, step=self.strides[d])


def sort(self: ClArray, stable: Any, dim: int, descending: bool, values: ClArray, indices: ClArray) -> None:
    """Sort along a dim. NaN is greater than any number."""
    _ordered(self, dim, descending, values, indices)


def topk(self: ClArray, k: int, dim: int, largest: bool, sorted: bool, values: ClArray, indices: ClArray) -> None:
    """The first k elements of the sorted order."""
    _ordered(self, dim, largest, values, indices)


def nonzero(self: ClArray) -> ClArray:
    """The positions of the elements that are not 0, in row-major order, one row each; waits for their count."""
    place, dims = self.place, len(self.shape)
    truths = as_bool(self)
    truths = truths if truths.is_contiguous else contiguous(truths)
    chunks = -(-self.size // _CHUNK)
    sums = new_array(place, (chunks,), int64)
    total = 0
    if chunks:
        call, count = packed(0, (chunks,), ((1,), (1,)), (0, truths.offset), extra=(_CHUNK, self.size))
        counts = new_array(place, (chunks,), int64)
        place.start("sort", bool_, "count", call, (counts.buffer, truths.buffer), count)
        lines(place, "reduce", "scan", 0, (sums, counts), 0)
        total = int.from_bytes(place.read(sums.view((1,), (1,), chunks - 1)), "little")
    made = new_array(place, (total, dims), int64, (1, total))
    if not made.size:
        return made
    found = new_array(place, (total,), int64)
    place.start("sort", bool_, "found", call, (found.buffer, truths.buffer, sums.buffer), count)
    inner = self.size
    for d, length in enumerate(self.shape):
        inner //= length
        column = made.view((total,), (1,), d * total)
        run_map("floor_divide", column, found, inner)
        run_map("remainder", column, column, length)
    return made


def searchsorted(
    sorted_sequence: ClArray, self: Any, out_int32: bool, right: bool, side: Any, sorter: ClArray | None, out: ClArray
) -> None:
    """Where values would stand in sorted lines; a sorter names the order of each line."""
    sequence, place = sorted_sequence, out.place
    if sorter is not None:
        bounds = sequence.shape[-1]
        places("searchsorted: sorter", sorter.shape, [(sorter, bounds, 1)])
    values = self
    if isinstance(self, ClArray):
        dtype = promote_types(sequence.dtype, self.dtype)
        sequence, values = dense(sequence, dtype), dense(self, dtype)
    shape = out.shape
    made = out if out.dtype is int64 else new_array(place, shape, int64)
    step = sequence.strides[-1]

    def lines_of(array: ClArray) -> Ints:
        """The strides of whole lines over the values."""
        return (0,) * len(shape) if len(array.shape) == 1 else (*array.strides[:-1], 0)

    strides = (
        made.strides, lines_of(sequence), values.strides if isinstance(values, ClArray) else (0,) * len(shape),
        (0,) * len(shape) if sorter is None else lines_of(sorter),
    )  # fmt: skip
    bases, buffers = memory_of(made, sequence, values if isinstance(values, ClArray) else None, sorter)
    numbers = () if isinstance(values, ClArray) else (TYPES[sequence.dtype].bits(values, place.double),)
    after = right or side == "right"
    extra = (sequence.shape[-1], step, 0 if sorter is None else sorter.strides[-1])
    call, count = packed(int(after), shape, strides, bases, numbers=numbers, extra=extra)
    place.start("sort", sequence.dtype, "search", call, buffers, count)
    copy(out, made)


# fmt: off
KERNELS = {
    "sort.values_stable": Row(sort),
    "topk.values":        Row(topk),
    "searchsorted.Tensor_out": Row(searchsorted),
}
PLAIN = {"nonzero": nonzero}
# fmt: on
