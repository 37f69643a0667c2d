"""A call's shapes and strides as `templates/types.cl` declares them: struct `Call`, packed.

Dims that all operands walk through without a gap are merged, so that most calls have one. Both halves are cached by shape and
strides: a training step asks for the same ones again and again.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache

from turnout.errors import ShapeError

Ints = tuple[int, ...]

DIMS = 8
OPERANDS = 4
_NUMBERS = 4
_WALK = DIMS + DIMS * OPERANDS  # sizes and steps
_CALL = struct.Struct(f"<{3 + _WALK + OPERANDS + 2 + _WALK + 2 * _NUMBERS}q")
_ZEROS = (0,) * DIMS


@lru_cache(maxsize=4096)
def merged(shape: Ints, strides: tuple[Ints, ...]) -> tuple[int, int, Ints, Ints]:
    """(positions, dims, sizes, steps of all operands), padded. Raises ShapeError if more than DIMS dims do not merge."""
    positions = 1
    sizes: list[int] = []
    steps: list[tuple[int, ...]] = []
    for d, length in enumerate(shape):
        positions *= length
        if length == 1:
            continue
        step = tuple(s[d] for s in strides)
        if sizes and all(a == b * length for a, b in zip(steps[-1], step, strict=True)):
            sizes[-1] *= length
            steps[-1] = step
        else:
            sizes.append(length)
            steps.append(step)
    if len(sizes) > DIMS:
        raise ShapeError(f"opencl: shape {list(shape)} has more than {DIMS} dimensions that cannot be merged; use contiguous()")
    if not sizes:
        sizes, steps = [1], [(0,) * len(strides)]
    pad = (0,) * (DIMS - len(sizes))
    flat: Ints = ()
    for operand in range(OPERANDS):
        flat += tuple(s[operand] for s in steps) + pad if operand < len(strides) else _ZEROS
    return positions, len(sizes), (*sizes, *pad), flat


_NOTHING = ((), ())


def packed(
    op: int,
    shape: Ints,
    strides: tuple[Ints, ...],
    bases: Sequence[int],
    inner: tuple[Ints, tuple[Ints, ...]] = _NOTHING,
    numbers: Sequence[int] = (),
    extra: Sequence[int] = (),
) -> tuple[bytes, int]:
    """The struct, and how many positions its grid has. `numbers` are bits already (see `programs.ElementType.bits`)."""
    positions, dims, sizes, steps = merged(shape, strides)
    if inner is _NOTHING:
        inner_values: Ints = (0, 0, *_ZEROS, *_ZEROS * OPERANDS)
    else:
        inner_positions, inner_dims, inner_sizes, inner_steps = merged(*inner)
        inner_values = (inner_positions, inner_dims, *inner_sizes, *inner_steps)
    return _CALL.pack(
        op, positions, dims, *sizes, *steps,
        *bases, *(0,) * (OPERANDS - len(bases)), *inner_values,
        *numbers, *(0,) * (_NUMBERS - len(numbers)), *extra, *(0,) * (_NUMBERS - len(extra)),
    ), positions  # fmt: skip


def raw(
    op: int, count: int, sizes: Ints, steps: Sequence[Ints], bases: Sequence[int], numbers: Sequence[int] = (),
    extra: Sequence[int] = (), inner_sizes: Ints = (), inner_steps: Sequence[Ints] = (),
) -> bytes:  # fmt: skip
    """The struct for kernels that read sizes and steps in their own way."""
    return _CALL.pack(
        op, count, len(sizes), *sizes, *(0,) * (DIMS - len(sizes)), *_flat(steps),
        *bases, *(0,) * (OPERANDS - len(bases)),
        0, len(inner_sizes), *inner_sizes, *(0,) * (DIMS - len(inner_sizes)), *_flat(inner_steps),
        *numbers, *(0,) * (_NUMBERS - len(numbers)), *extra, *(0,) * (_NUMBERS - len(extra)),
    )  # fmt: skip


def _flat(steps: Sequence[Ints]) -> Ints:
    flat: Ints = ()
    for operand in range(OPERANDS):
        step = steps[operand] if operand < len(steps) else ()
        flat += (*step, *(0,) * (DIMS - len(step)))
    return flat
