"""Floats of any dtype and layout, for kernels that read contiguous float32 or float64: they are copied first, and results last.

A copy converts two-byte floats on the way. It goes over memory once, in tiles where the layouts lie across each other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from turnout_aten.shapes.extents import iterated_strides
from turnout_kernels.native import FLOATS, parts_of, run, whole
from turnout_kernels.pointwise import apply

Call = Callable[..., Any]

# Bytes of an element that C moves.
MOVED_SIZES = (1, 2, 4, 8)
# Bytes of a part of a copy: the C library writes pieces of that size past the cache.
_PIECE = 1 << 21


def row_major(array: Any) -> Any:
    """A row-major copy of an array, which has elements of such a size."""
    if not array.size:
        return array.copy("C")
    made = np.empty(array.shape, array.dtype)
    word = f"u{array.itemsize}"
    parts = min(parts_of(array.size), -(-array.nbytes // _PIECE))
    run("copy", (made.view(word),), (array.view(word),), (array.itemsize,), parts=parts)
    return made


def packed(array: Any, char: str) -> Any:
    """The floats of an array as a contiguous array of float32 ("f") or float64 ("d"): the array itself where it is one."""
    if array.dtype.char == char and whole(array):
        return array
    if array.dtype.char == char:
        return row_major(array)
    made = np.empty(array.shape, char)
    return apply("copy", (array,), made) if made.size else made


def deliver(values: Any, out: Any) -> Any:
    """Write contiguous values into an output of any layout, with any conversion between floats."""
    if values is not out and out.size:
        if out.dtype.char in FLOATS:
            apply("copy", (values,), out)
        else:
            np.copyto(out, values)
    return out


def laid_out_as(values: Any, like: Any) -> Any:
    """Contiguous values in the dtype and the layout of an element-wise result of `like`."""
    shape = like.shape
    own = tuple([0 if n == 1 else s for n, s in zip(shape, like.strides, strict=True)])
    strides = None if like.flags.c_contiguous or not values.size else iterated_strides(shape, [own])
    if strides is None:
        return values if values.dtype is like.dtype else deliver(values, np.empty(shape, like.dtype))
    steps = tuple([s * like.itemsize for s in strides])
    return deliver(values, np.ndarray(shape, like.dtype, np.empty(values.size, like.dtype), 0, steps))


def width_of(*arrays: Any) -> str:
    """The dtype that floats are computed in: float64 if one of them is, else float32."""
    return "d" if any(a.dtype.char == "d" for a in arrays) else "f"


def any_floats(fn: Call, outputs: int = 1) -> Call:
    """A kernel of contiguous float32 or float64, for floats of any dtype and layout.

    `outputs` is how many arrays it writes into, its last arguments; a single one may be missing. A kernel without outputs returns
    new arrays, of the dtype of its floats; it serves contiguous floats only, because others may have to come back as they lay.
    """
    every = fn.__code__.co_argcount

    @wraps(fn)
    def kernel(*args: Any) -> Any:
        made = fn(*args)
        if made is not NotImplemented:
            return made
        floats = [a for a in args if a.__class__ is np.ndarray and a.dtype.char in FLOATS]
        for a in floats:  # no generator: what few elements take is counted
            if a.dtype.itemsize == 2 or not (a.flags.c_contiguous and a.flags.aligned):
                break
        else:
            return NotImplemented
        if not outputs and not all(a.flags.c_contiguous for a in floats):
            return NotImplemented
        writes = bool(outputs) and len(args) == every and args[-1] is not None
        first = every - outputs if writes else every
        if not writes and any(a.dtype is not floats[0].dtype for a in floats):
            return NotImplemented
        char, given = width_of(*floats), list(args)
        targets = []
        for at, value in enumerate(args):
            if value.__class__ is not np.ndarray:
                continue
            if at < first:
                given[at] = packed(value, char) if value.dtype.char in FLOATS else np.require(value, None, ("C", "A"))
            elif value.dtype.char in FLOATS and (value.dtype.char != char or not whole(value)):
                given[at] = np.empty(value.shape, char)
                targets.append((given[at], value))
            elif not whole(value):
                given[at] = np.empty(value.shape, value.dtype)
                targets.append((given[at], value))
        made = fn(*given)
        if made is NotImplemented:
            return NotImplemented
        if writes:
            for values, out in targets:
                deliver(values, out)
            return args[-1] if outputs == 1 else None
        return _rounded(made, floats[0].dtype)

    return kernel


def _rounded(made: Any, dtype: Any) -> Any:
    """New arrays, also in a tuple, in the dtype of the arguments."""
    if made.__class__ is tuple:
        return tuple([_rounded(m, dtype) for m in made])
    if made is None or made.dtype is dtype or made.dtype.char not in FLOATS:
        return made
    return deliver(made, np.empty(made.shape, dtype))
