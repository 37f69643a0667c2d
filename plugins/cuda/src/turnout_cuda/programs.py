"""Raw kernels: CUDA C of `kernels/`, compiled by CuPy for the dtype and the device that first use them.

A file of kernels is a program, compiled once for each kind of elements. CuPy keeps what it compiled on the disk, too. A launch
goes to CuPy's current stream of the device that is current.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

# A kind of elements -> what DTYPE is in the text.
DTYPES = {"float16": 16, "bfloat16": 17, "float32": 32, "float64": 64}
# Where elements are only moved: their size in bytes -> the dtype that their arrays are viewed as. DTYPE is 100 + size.
MOVED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}
PROGRAMS = (
    "activations", "arithmetic", "batch", "functions", "normalise", "picking", "random", "reduce", "resize",
    "scan", "scatter", "softmax", "sort", "steps", "windows",
)  # fmt: skip

PACKED = {"float16": 8, "bfloat16": 8, "float32": 4, "float64": 2}  # elements in 16 bytes
# Texts that come before a program, beside what all have.
HEADERS = dict.fromkeys(("activations", "arithmetic", "functions"), "pointwise.cuh")

_KINDS = DTYPES | {name: 100 + size for size, name in MOVED.items()}
_KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(')
_MOST_BLOCKS = 65_535  # more blocks than any GPU runs at once: loops go over the rest
_WIDE = 8192  # elements from which on a group has as many threads as its kernel takes
_LONG = 1024  # elements of a row up to which a warp has it, as many as its threads keep


# `name` of a dtype of NumPy's takes a microsecond.
_NAMES = {np.dtype(kind): np.dtype(kind).name for kind in "?bhilqBHILQefdFD"} | {np.dtype(bfloat16): "bfloat16"}


def name_of(array: Any) -> str:
    """The name of an array's dtype."""
    return _NAMES.get(array.dtype) or str(array.dtype.name)


def signed(word: int) -> int:
    """64 bits as kernels take them."""
    return word - (1 << 64) if word >> 63 else word


@cache
def source(program: str) -> str:
    """The text of a program, with what all of them share."""
    folder = files("turnout_cuda") / "kernels"
    names = ("types.cuh", *([HEADERS[program]] if program in HEADERS else []), f"{program}.cu")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


def options(dtype: str) -> tuple[str, ...]:
    """The compiler's options for a kind of elements."""
    return ("-std=c++17", f"-DDTYPE={_KINDS[dtype]}")


@cache
def programs_by_kernel() -> dict[str, str]:
    """The name of each kernel, and the program that has it."""
    return {name: program for program in PROGRAMS for name in _KERNEL.findall(source(program))}


class Programs:
    """The compiled kernels of an array module; `cupy` has `RawModule`."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._modules: dict[tuple[str, str], Any] = {}
        self._kernels: dict[tuple[str, str], Any] = {}

    def start(self, name: str, dtype: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any]) -> None:
        """Queue a kernel. Arguments are arrays, ints and floats; arrays are contiguous and on the current device."""
        kernel = self._kernels.get((name, dtype))
        if kernel is None:
            key = programs_by_kernel()[name], dtype
            if key not in self._modules:
                self._modules[key] = self._cupy.RawModule(code=source(key[0]), options=options(dtype))
            kernel = self._kernels[name, dtype] = self._modules[key].get_function(name)
        kernel(tuple(grid), tuple(block), tuple(args))

    # ---- how the work is spread

    def over_rows(self, name: str, dtype: str, rows: int, length: int, args: Sequence[Any]) -> None:
        """A warp for each row, four of them in a block, or a block for each long one."""
        if length <= _LONG:
            self.start(name, dtype, (-(-rows // 4),), (32, 4), args)
        else:
            self.start(name, dtype, (rows,), (256,), args)

    def over_elements(self, name: str, dtype: str, size: int, args: Sequence[Any], *, packed: bool = False) -> None:
        """A thread for each element, or for every so many; `packed` where the kernel computes 16 bytes at once."""
        threads = -(-size // PACKED[dtype]) if packed else size
        self.start(name, dtype, (min(-(-threads // 256), _MOST_BLOCKS),), (256,), args)

    def over_groups(self, name: str, dtype: str, groups: int, length: int, args: Sequence[Any], *, most: int = 256) -> None:
        """A block for each group of elements, of up to so many threads."""
        self.start(name, dtype, (groups,), (32 if length <= 64 else 256 if length < _WIDE else most,), args)
