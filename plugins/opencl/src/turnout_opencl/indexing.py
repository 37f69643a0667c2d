"""Kernels that move elements by index. An index becomes positions in memory first (`places`), which is where it is checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout.dtypes import BOOL, FLOAT, DType, float32, int64
from turnout.errors import DimError
from turnout_aten.errors import arguments as texts
from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray, broadcast_strides, memory_of, new_array
from turnout_opencl.backend import contiguous, copy, fill
from turnout_opencl.grids import packed
from turnout_opencl.pointwise import dense, run_map, with_flag
from turnout_opencl.programs import TYPES

Ints = tuple[int, ...]
WRITE, ADD, MULTIPLY, LARGER, SMALLER = range(5)


def places(
    name: str, shape: Ints, parts: Sequence[tuple[ClArray, int, int]], *, from_end: bool = False, later: bool = False
) -> ClArray:
    """Positions for index arrays that broadcast to `shape`: the sum of index * step over (index, length, step).

    Raises DimError for an index outside of its length; `later` lets the next read raise it, and `put` leaves the index out.
    `from_end` lets negative ones count from the end.
    """
    made = new_array(parts[0][0].place, shape, int64)
    for number, (given, length, step) in enumerate(parts):
        index = dense(given, int64)
        call, count = packed(
            0, shape, (made.strides, broadcast_strides(index, shape)), (0, index.offset),
            extra=(length, step, int(from_end), int(number > 0)),
        )  # fmt: skip

        def start(flag: Any, call: bytes = call, count: int = count, index: ClArray = index) -> None:
            made.place.start("move", int64, "places", call, (made.buffer, index.buffer, flag), count)

        def error(wrong: int, length: int = length) -> Exception:
            return DimError(texts.out_of_bounds(name, wrong, length))

        if later:
            with made.place.reported(error) as flag:
                start(flag)
        else:
            with_flag(made, start, error)
    return made


def take(source: ClArray, source_strides: Ints, found: ClArray, found_strides: Ints, out: ClArray, *, step: int = 1) -> None:
    """out[i] = source at its own position plus found[i] * step."""
    call, count = packed(
        0, out.shape, (out.strides, source_strides, found_strides), (out.offset, source.offset, found.offset),
        extra=(step,),
    )  # fmt: skip
    out.place.start("move", out.dtype, "take", call, (out.buffer, source.buffer, found.buffer), count)


def put(
    out: ClArray, kept: Ints, strides: tuple[Ints, Ints, Ints], inner: Ints, inner_strides: tuple[Ints, Ints, Ints],
    values: Any, found: ClArray, *, op: int = WRITE, alpha: Any = 1,
) -> None:  # fmt: skip
    """Write values at positions, or combine them with what is there.

    Work-items over `kept` walk through `inner` in order. Both have strides for (out, values, found).
    """
    kind, double = TYPES[out.dtype], out.place.double
    array = values if isinstance(values, ClArray) else None
    numbers = (0 if array is not None else kind.bits(values, double), kind.bits(alpha, double))
    bases, buffers = memory_of(out, array, found)
    call, count = packed(op, kept, strides, bases, (inner, inner_strides), numbers, (int(alpha != 1),))
    out.place.start("move", out.dtype, "put", call, buffers, count)


# ---- index and index_put: several index arrays that are broadcast together


class Indexed:
    """What `indices` (None is a whole dim) picks from an array: where its dims stand in the result."""

    def __init__(self, array: ClArray, indices: Sequence[ClArray | None]) -> None:
        given = [*indices, *[None] * (len(array.shape) - len(indices))]
        parts = [(i, array.shape[d], array.strides[d]) for d, i in enumerate(given) if i is not None]
        at = [d for d, i in enumerate(given) if i is not None]
        self.picked = tuple(int(n) for n in np.broadcast_shapes(*[index.shape for index, _, _ in parts]))
        self.found = places("index", self.picked, parts, from_end=True)
        together = at == list(range(at[0], at[-1] + 1))
        first = at[0] if together else 0  # index arrays that do not stand together go first
        whole = [d for d in range(len(array.shape)) if d not in at]
        before, after = (whole[:first], whole[first:])
        self.whole = tuple(array.shape[d] for d in (*before, *after))
        self.before = len(before)
        self.shape = (*[array.shape[d] for d in before], *self.picked, *[array.shape[d] for d in after])
        self.array_strides = tuple(array.strides[d] for d in (*before, *after))

    def spread(self, strides: Ints) -> Ints:
        """Strides over the whole dims, as strides over the result: 0 for the picked ones."""
        return (*strides[: self.before], *(0,) * len(self.picked), *strides[self.before :])

    def parts(self, strides: Ints) -> tuple[Ints, Ints]:
        """Strides over the result as those over whole dims and over picked ones."""
        end = self.before + len(self.picked)
        return (*strides[: self.before], *strides[end:]), strides[self.before : end]


def index(self: ClArray, indices: Sequence[ClArray | None], out: ClArray) -> None:
    """self[indices]."""
    if not out.size:
        return  # nothing is read, so no index is wrong
    picks = Indexed(self, indices)
    found = (*(0,) * picks.before, *picks.found.strides, *(0,) * (len(picks.whole) - picks.before))
    take(self, picks.spread(picks.array_strides), picks.found, found, out)


def index_put(self: ClArray, indices: Sequence[ClArray | None], values: ClArray, accumulate: bool, out: ClArray) -> None:
    """self with values at self[indices]."""
    copy(out, self)
    if not out.size or any(index is not None and not index.size for index in indices):
        return  # nothing is written, so no index is wrong
    picks = Indexed(out, indices)
    whole, picked = picks.parts(broadcast_strides(values, picks.shape))
    nowhere, still = (0,) * len(picks.whole), (0,) * len(picks.picked)
    put(
        out, picks.whole, (picks.array_strides, whole, nowhere), picks.picked, (still, picked, picks.found.strides),
        values, picks.found, op=ADD if accumulate else WRITE,
    )  # fmt: skip


# ---- one index array along a dim


def _at_least_one(array: ClArray) -> ClArray:
    return array if array.shape else array.view((1,), (1,), 0)


def index_select(self: ClArray, dim: int, index: ClArray, out: ClArray) -> None:
    """Select whole slices."""
    if not self.shape:
        places("index_select", (index.size,), [(_at_least_one(index), 1, 0)])
        copy(out, self.broadcast(out.shape))
        return
    d = dim % len(self.shape)
    flat = _at_least_one(index)
    found = places("index_select", flat.shape, [(flat, self.shape[d], self.strides[d])])
    steps = (*self.strides[:d], 0, *self.strides[d + 1 :])
    take(self, steps, found, (*(0,) * d, 1, *(0,) * (len(self.shape) - d - 1)), out)


def gather(self: ClArray, dim: int, index: ClArray, sparse_grad: bool, out: ClArray) -> None:
    """Read one element for each index."""
    if not out.size:
        return  # an index without elements may have any dims
    source, target, at = _at_least_one(self), _at_least_one(out), _at_least_one(index)
    d = dim % len(source.shape)
    found = places("gather", at.shape, [(at, source.shape[d], source.strides[d])])
    take(source, (*source.strides[:d], 0, *source.strides[d + 1 :]), found, found.strides, target)


def _scatter(name: str, self: ClArray, dim: int, index: ClArray, values: Any, out: ClArray, *, op: int = WRITE) -> None:
    copy(out, self)
    if not index.size:
        return  # an index without elements may have any dims
    target, at = _at_least_one(out), _at_least_one(index)
    d = dim % len(target.shape)
    # Gradients are full of sums, and a training must not wait for each of them.
    found = places(name, at.shape, [(at, target.shape[d], target.strides[d])], later=op == ADD)
    steps = _at_least_one(values).strides if isinstance(values, ClArray) else (0,) * len(at.shape)

    def without(strides: Ints) -> Ints:
        return (*strides[:d], *strides[d + 1 :])

    put(
        target, without(at.shape), (without(target.strides), without(steps), without(found.strides)),
        (at.shape[d],), ((0,), (steps[d],), (found.strides[d],)), values, found, op=op,
    )  # fmt: skip


def scatter_src(self: ClArray, dim: int, index: ClArray, src: ClArray, out: ClArray) -> None:
    """Write one element for each index."""
    _scatter("scatter", self, dim, index, src, out)


def scatter_value(self: ClArray, dim: int, index: ClArray, value: Any, out: ClArray) -> None:
    """Write a number for each index."""
    _scatter("scatter", self, dim, index, value, out)


def scatter_add(self: ClArray, dim: int, index: ClArray, src: ClArray, out: ClArray) -> None:
    """Add one element for each index."""
    _scatter("scatter_add", self, dim, index, src, out, op=ADD)


def index_add(self: ClArray, dim: int, index: ClArray, source: ClArray, alpha: Any, out: ClArray) -> None:
    """Add whole slices."""
    copy(out, self)
    if not index.size:
        return
    target, values, flat = _at_least_one(out), _at_least_one(source), _at_least_one(index)
    d = dim % len(target.shape)
    found = places("index_add", flat.shape, [(flat, target.shape[d], target.strides[d])])
    kept = (*target.shape[:d], *target.shape[d + 1 :])
    steps = (*target.strides[:d], *target.strides[d + 1 :])
    given = (*values.strides[:d], *values.strides[d + 1 :])
    put(
        target, kept, (steps, given, (0,) * len(kept)), flat.shape, ((0,), (values.strides[d],), (1,)), values, found,
        op=ADD, alpha=alpha,
    )  # fmt: skip


def scatter_reduce(self: ClArray, dim: int, index: ClArray, src: ClArray, reduce: str, include_self: bool, out: ClArray) -> None:
    """Combine one element for each index with what is there, or with each other alone."""
    op, identity = {
        "sum": (ADD, 0), "mean": (ADD, 0), "prod": (MULTIPLY, 1),
        "amax": (LARGER, _least(out.dtype)), "amin": (SMALLER, _largest(out.dtype)),
    }[reduce]  # fmt: skip
    half = TYPES[out.dtype].half
    wide = contiguous(self, float32) if half else self  # rounded once
    made = wide if half else out
    if not index.size:
        copy(out, self)
        return
    if not include_self:
        _scatter("scatter_reduce", wide, dim, index, identity, made)
        wide = made
    _scatter("scatter_reduce", wide, dim, index, dense(src, made.dtype), made, op=op)
    if reduce == "mean":
        counts = new_array(out.place, out.shape, made.dtype if made.dtype.category == FLOAT else int64)
        fill(counts, int(include_self))
        _scatter("scatter_reduce", counts, dim, index, 1, counts, op=ADD)
        run_map("maximum", counts, counts, 1)
        run_map("div" if made.dtype.category == FLOAT else "floor_divide", made, made, dense(counts, made.dtype))
    copy(out, made)


def _least(dtype: DType) -> Any:
    return -math.inf if dtype.category == FLOAT else 0 if dtype.category == BOOL else int(np.iinfo(dtype.name).min)


def _largest(dtype: DType) -> Any:
    return math.inf if dtype.category == FLOAT else 1 if dtype.category == BOOL else int(np.iinfo(dtype.name).max)


# ---- triangles and ranges


def triangle(op: int) -> Any:
    def kernel(self: ClArray, diagonal: int, out: ClArray) -> None:
        rows, columns = out.shape[-2:]
        call, count = packed(
            op, out.shape, (out.strides, self.strides), (out.offset, self.offset), extra=(diagonal, rows, columns)
        )
        out.place.start("move", out.dtype, "triangle", call, (out.buffer, self.buffer), count)

    return kernel


# fmt: off
KERNELS = {
    "index.Tensor_out":  Row(index),
    "index_put.out":     Row(index_put),
    "index_select.out":  Row(index_select),
    "gather.out":        Row(gather),
    "scatter.src_out":   Row(scatter_src),
    "scatter.value_out": Row(scatter_value),
    "scatter_add.out":   Row(scatter_add),
    "index_add.out":     Row(index_add),
    "scatter_reduce.two_out": Row(scatter_reduce),
    "tril.out":          Row(triangle(0)),
    "triu.out":          Row(triangle(1)),
}
# fmt: on
