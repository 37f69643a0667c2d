"""Arrays as raw kernels take them: contiguous, of a dtype that they are compiled for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout_aten import dtypes
from turnout_cuda.programs import DTYPES, Programs, name_of

_COMPUTED = {dtype.name: wide.name for dtype, wide in dtypes.WIDE.items()}


def kind(*arrays: Any) -> str | None:
    """The name of the dtype of all the arrays, None where they differ or raw kernels do not compute in it."""
    name: str = name_of(arrays[0])
    for array in arrays[1:]:
        if name_of(array) != name:
            return None
    return name if name in DTYPES else None


def computed(name: str) -> str:
    """The dtype that a kind of elements is computed in: `accum` in the texts."""
    return _COMPUTED[name]


# How a kernel gets an array: not at all, in the type that is computed in, in that of the elements, or as bools.
MISSING, WIDE, OWN, BOOLS = range(4)


class Arrays:
    """Conversions by an array module `xp`."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def packed(self, array: Any, dtype: str | None = None) -> Any:
        """The array itself if it is contiguous and of the dtype, else a copy that is."""
        if dtype is not None and name_of(array) != dtype:
            return self.xp.ascontiguousarray(array.astype(dtype))
        return array if array.flags.c_contiguous else self.xp.ascontiguousarray(array)

    def filled(self, out: Any | None, shape: tuple[int, ...], dtype: Any, fill: Callable[[Any], None]) -> Any:
        """The output, or a new array where there is none, with what `fill` writes; it is not called without elements."""
        made = self.xp.empty(shape, dtype) if out is None else self.target(out, dtype)
        if made.size:
            fill(made)
        return made if out is None else self.deliver(made, out)

    def target(self, out: Any, dtype: Any) -> Any:
        """The output itself if a kernel can write it, else a new array for `deliver`."""
        return out if out.flags.c_contiguous and out.dtype == dtype else self.xp.empty(out.shape, dtype)

    def deliver(self, made: Any, out: Any) -> Any:
        """Write what a kernel made into the output, unless it is the output. Returns the output."""
        if made is not out:
            self.xp.copyto(out, made.reshape(out.shape), casting="unsafe")
        return out

    def parameter(self, array: Any, dtype: str, otherwise: Any) -> tuple[Any, int]:
        """A parameter in the dtype that is computed in, or what stands for one that is missing; and whether it is there."""
        return (otherwise, 0) if array is None else (self.packed(array, dtype), 1)


class Kernels:
    """What kernels are started with: an array module and the programs."""

    def __init__(self, xp: Any, programs: Programs) -> None:
        self.xp = xp
        self.programs = programs
        self.arrays = Arrays(xp)
