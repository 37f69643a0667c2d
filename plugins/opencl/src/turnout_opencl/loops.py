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
_LONG = 32  # elements of a line from which walking along it pays


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
    outer, outer_strides, length, kinds = lines
    kinds = "".join("n" if buffer is None else kind for buffer, kind in zip(buffers, kinds, strict=True))
    place = out.place
    piece, group, _ = place.plan
    pieces = -(-length // piece)
    call, count = packed(0, outer, outer_strides, (out.offset, *bases), numbers=numbers, extra=(piece, pieces, length))
    groups = -(-count * pieces // group)
    place.start_grid(
        loop_program(template, name, kinds), dtype, "loop", call, (out.buffer, *buffers), (groups * group,), (group,)
    )  # fmt: skip
    return True


@lru_cache(maxsize=4096)
def _lines(shape: Ints, strides: tuple[Ints, ...]) -> tuple[Ints, tuple[Ints, ...], int, str] | None:
    """(outer dims, outer strides of all, length of a line, how each operand's lines lie), where the result's are dense."""
    _, dims, sizes, steps = merged(shape, strides)
    along = [steps[k * DIMS : k * DIMS + dims] for k in range(len(strides))]
    length = sizes[dims - 1]
    if length < _LONG or along[0][-1] != 1 or any(step[-1] not in (0, 1) for step in along):
        return None
    kinds = "".join("e" if step[-1] else "s" for step in along[1:])
    return sizes[: dims - 1], tuple(step[:-1] for step in along), length, kinds
