"""Kernels that read elements by index, join or turn tensors, and triangles.

An index becomes positions in memory first (`places`), which is where it is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout.dtypes import int64
from turnout.errors import DimError
from turnout_aten.errors import arguments as texts
from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray, broadcast_strides, new_array
from turnout_opencl.backend import copy
from turnout_opencl.grids import packed
from turnout_opencl.pointwise import dense, with_flag

Ints = tuple[int, ...]


def places(
    name: str, shape: Ints, parts: Sequence[tuple[ClArray, int, int]], *, from_end: bool = False, later: bool = False
) -> ClArray:
    """Positions for index arrays that broadcast to `shape`: the sum of index * step over (index, length, step).

    Raises DimError for an index outside of its length; `later` lets the next read raise it, and `scattering.put` leaves the index
    out. `from_end` lets negative ones count from the end.
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


# ---- several index arrays that are broadcast together


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


# ---- one index array along a dim


def index_select(self: ClArray, dim: int, index: ClArray, out: ClArray) -> None:
    """Select whole slices."""
    if not self.shape:
        places("index_select", (index.size,), [(index.at_least_1d(), 1, 0)])
        copy(out, self.broadcast(out.shape))
        return
    d = dim % len(self.shape)
    flat = index.at_least_1d()
    found = places("index_select", flat.shape, [(flat, self.shape[d], self.strides[d])])
    steps = (*self.strides[:d], 0, *self.strides[d + 1 :])
    take(self, steps, found, (*(0,) * d, 1, *(0,) * (len(self.shape) - d - 1)), out)


def gather(self: ClArray, dim: int, index: ClArray, sparse_grad: bool, out: ClArray) -> None:
    """Read one element for each index."""
    if not out.size:
        return  # an index without elements may have any dims
    source, target, at = self.at_least_1d(), out.at_least_1d(), index.at_least_1d()
    d = dim % len(source.shape)
    found = places("gather", at.shape, [(at, source.shape[d], source.strides[d])])
    take(source, (*source.strides[:d], 0, *source.strides[d + 1 :]), found, found.strides, target)


# ---- joining and turning


def cat(tensors: list[ClArray], dim: int, out: ClArray) -> None:
    """Copy each tensor into its part of the output."""
    d = dim % len(out.shape)
    at = 0
    for array in tensors:
        part = out.view((*out.shape[:d], array.shape[d], *out.shape[d + 1 :]), out.strides, at * out.strides[d])
        copy(part, array)
        at += array.shape[d]


def flip(self: ClArray, dims: Any, out: ClArray) -> None:
    """Copy through negative strides."""
    turned = {d % len(self.shape) for d in dims} if self.shape else set()
    steps = tuple(-s if d in turned else s for d, s in enumerate(self.strides))
    first = sum((self.shape[d] - 1) * self.strides[d] for d in turned) if self.size else 0
    copy(out, self.view(self.shape, steps, first))


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
    "index_select.out":  Row(index_select),
    "gather.out":        Row(gather),
    "cat.out":           Row(cat),
    "flip.out":          Row(flip),
    "tril.out":          Row(triangle(0)),
    "triu.out":          Row(triangle(1)),
}
# fmt: on
