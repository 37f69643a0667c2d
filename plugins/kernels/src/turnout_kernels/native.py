"""Calls of the extension module: dtypes by number, how work is cut into parts, and how many threads do them.

The C code trusts its caller: whoever calls `run` has checked shapes, dtypes and layouts. How work is cut depends on its size
only, so that results are the same for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout import config
from turnout_aten.counts import thread_count
from turnout_kernels import _native

NUMBER_OF = {name: number for number, name in enumerate(_native.KERNELS)}
POINTWISE = {name: number for number, name in enumerate(_native.POINTWISE)}

# Dtypes by NumPy's character; E is ml_dtypes' bfloat16.
F32, F64 = 0, 1
CODES = {"f": F32, "d": F64, "e": 2, "E": 3, "?": 4}
FLOATS = frozenset("fdeE")

# Elements of a part. Below two parts a second thread would cost more than it saves.
GRAIN = 1 << 16
MOST_PARTS = 256
MAX_ARRAYS = 10
_CHOSEN = [_native.instructions("")]
# One NumPy function is as fast up to this many elements.
FEW = 1 << 12


def choose_instructions(name: str) -> str:
    """Use an instruction set, "" for the best. Raises ValueError where the processor does not have it."""
    _CHOSEN[0] = _native.instructions(name)
    return _CHOSEN[0]


def instructions() -> str:
    """The instruction set that is used."""
    return _CHOSEN[0]


def parts_of(size: int) -> int:
    """How many parts work on that many elements has."""
    return 1 if size <= GRAIN else min(-(-size // GRAIN), MOST_PARTS)


def threads() -> int:
    """How many threads work may have: the setting of the device cpu."""
    return thread_count(int(config.get("plugin.cpu.threads")))


def run(
    name: str, outputs: tuple[Any, ...], inputs: tuple[Any, ...], ints: tuple[int, ...] = (), floats: tuple[float, ...] = (),
    *, parts: int | None = None, size: int | None = None,
) -> None:  # fmt: skip
    """Call a kernel. `size` is how many elements it goes over, by default those of the first input."""
    if parts is None:
        parts = parts_of((inputs or outputs)[0].size if size is None else size)
    _native.run(NUMBER_OF[name], outputs, inputs, ints, floats, parts, threads() if parts > 1 else 1)


def buffer(array: Any) -> Any:
    """The array as the C code reads it: bfloat16 has no buffer of its own."""
    return array.view(np.uint16) if array.dtype.kind == "V" else array


def whole(array: Any) -> bool:
    """Whether an array is contiguous, and begins at a multiple of its elements' size."""
    flags = array.flags
    return bool(flags.c_contiguous and flags.aligned)


def plain(*arrays: Any) -> bool:
    """Whether all are whole arrays of one dtype, float32 or float64."""
    dtype = arrays[0].dtype
    if dtype.char not in "fd":
        return False
    for array in arrays:  # no generator: small calls would spend half of their time in its frames
        if array.dtype is not dtype and array.dtype != dtype:
            return False
        if not whole(array):
            return False
    return True


def code(array: Any) -> int:
    """The number of float32 or float64."""
    return F64 if array.dtype.char == "d" else F32


def has_many(self: Any, dim: int) -> bool:
    """Whether an array has that dim, and more than a few elements."""
    return bool(self.size > FEW and self.ndim and -self.ndim <= dim < self.ndim)
