"""Large arrays: a function compiled for itself, and for how its operands lie, instead of a case of a switch.

A program for one function takes a tenth of a second to compile, once for a machine, since drivers keep what they compiled. A
switch keeps compilers from using vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from turnout.dtypes import DType
from turnout_opencl.arrays import ClArray
from turnout_opencl.grids import DIMS, merged, packed
from turnout_opencl.programs import loop_program

Ints = tuple[int, ...]

_MANY = 1 << 16  # elements from which a function gets a program of its own
_LONG = 8  # elements of a line from which walking along it pays


def run_loop(
    template: str, name: str, dtype: DType, out: ClArray, buffers: Sequence[Any], strides: Sequence[Ints],
    bases: Sequence[int], numbers: Sequence[int],
) -> bool:  # fmt: skip
    """Queue a function over arrays of one shape; False where they are small or do not lie in lines, and nothing was queued."""
    if out.size < _MANY:
        return False
    lines = _lines(out.shape, (out.strides, *strides))
    if lines is None:
        return False
    outer, outer_strides, length, steps, kinds = lines
    kinds = "".join("n" if buffer is None else kind for buffer, kind in zip(buffers, kinds, strict=True))
    place = out.place
    piece, group, _ = place.plan
    pieces = -(-length // piece)
    inner = ((length,), tuple((step,) for step in steps))
    call, count = packed(0, outer, outer_strides, (out.offset, *bases), inner, numbers, (piece, pieces, length))
    groups = -(-count * pieces // group)
    place.start_grid(
        loop_program(template, name, kinds), dtype, "loop", call, (out.buffer, *buffers), (groups * group,), (group,)
    )  # fmt: skip
    return True


@lru_cache(maxsize=4096)
def _lines(shape: Ints, strides: tuple[Ints, ...]) -> tuple[Ints, tuple[Ints, ...], int, Ints, str] | None:
    """(outer dims, outer strides of all, length and steps of a line, how each operand's lines lie), where the result's are dense.

    Dims are taken in the order in which the result has them in memory.
    """
    order = sorted(range(len(shape)), key=lambda d: -strides[0][d])
    _, dims, sizes, flat = merged(tuple(shape[d] for d in order), tuple(tuple(each[d] for d in order) for each in strides))
    along = [flat[k * DIMS : k * DIMS + dims] for k in range(len(strides))]
    length, steps = sizes[dims - 1], tuple(step[-1] for step in along)
    if length < _LONG or steps[0] != 1:
        return None
    kinds = "".join({0: "s", 1: "e"}.get(step, "g") for step in steps[1:])
    return sizes[: dims - 1], tuple(step[:-1] for step in along), length, steps, kinds
