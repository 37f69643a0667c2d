"""Kernels that write elements by index, or combine them with what is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout.dtypes import FLOAT, float32, int64
from turnout_aten.dtypes import value_range
from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray, broadcast_strides, memory_of, new_array
from turnout_opencl.backend import contiguous, copy, fill
from turnout_opencl.grids import packed
from turnout_opencl.indexing import Indexed, places
from turnout_opencl.pointwise import dense, run_map
from turnout_opencl.programs import TYPES

Ints = tuple[int, ...]
WRITE, ADD, MULTIPLY, LARGER, SMALLER = range(5)


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


def _scatter(name: str, self: ClArray, dim: int, index: ClArray, values: Any, out: ClArray, *, op: int = WRITE) -> None:
    copy(out, self)
    if not index.size:
        return  # an index without elements may have any dims
    target, at = out.at_least_1d(), index.at_least_1d()
    d = dim % len(target.shape)
    # Gradients are full of sums, and a training must not wait for each of them.
    found = places(name, at.shape, [(at, target.shape[d], target.strides[d])], later=op == ADD)
    steps = values.at_least_1d().strides if isinstance(values, ClArray) else (0,) * len(at.shape)

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
    target, values, flat = out.at_least_1d(), source.at_least_1d(), index.at_least_1d()
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
    lowest, highest = value_range(out.dtype)
    op, identity = {
        "sum": (ADD, 0), "mean": (ADD, 0), "prod": (MULTIPLY, 1),
        "amax": (LARGER, lowest), "amin": (SMALLER, highest),
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


# fmt: off
KERNELS = {
    "index_put.out":          Row(index_put),
    "scatter.src_out":        Row(scatter_src),
    "scatter.value_out":      Row(scatter_value),
    "scatter_add.out":        Row(scatter_add),
    "index_add.out":          Row(index_add),
    "scatter_reduce.two_out": Row(scatter_reduce),
}
# fmt: on
