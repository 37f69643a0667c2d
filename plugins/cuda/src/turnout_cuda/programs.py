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

from turnout import dtypes
from turnout_arrays.expressions import Expression, Language, library, table
from turnout_arrays.random import words_source
from turnout_aten.dtypes import PRECISION

# A kind of elements -> what DTYPE is in the text.
DTYPES = {"float16": 16, "bfloat16": 17, "float32": 32, "float64": 64}
# Where elements are only moved: their size in bytes -> the dtype that their arrays are viewed as. DTYPE is 100 + size.
MOVED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}
PROGRAMS = (
    "activations", "arithmetic", "batch", "convolutions", "functions", "images", "indexing", "losses", "normalisation",
    "optimisers", "pooling", "random", "reductions", "scattering", "selection", "softmax", "sorting", "statistics",
)  # fmt: skip
MOVING = "indexing", "selection"  # those whose elements are only moved
# What some of them share.
SHARED = {
    "faults.cuh": ("indexing", "losses", "scattering"), "lines.cuh": ("normalisation", "reductions", "softmax"),
    "windows.cuh": ("convolutions", "pooling"),
}  # fmt: skip

_PACK = 16  # bytes that a kernel reads at once
PACKED = {name: _PACK // dtypes.DTYPES[name].itemsize for name in DTYPES}  # elements in them
# Kernels that are rows of `turnout_arrays.expressions`, by program: NumPy's name of the function -> the row. A program has a text
# of its own, too, where it has other kernels.
ELEMENTWISE = {
    "activations": {name: name for name in (
        "sigmoid", "silu", "gelu", "gelu_tanh", "hardswish", "mish", "leaky_relu", "softplus", "elu", "sigmoid_backward",
        "tanh_backward", "silu_backward", "gelu_backward", "gelu_tanh_backward", "threshold_backward",
    )},
    "arithmetic": {name: name for name in (
        "square", "floor", "ceil", "trunc", "sqrt", "rsqrt", "reciprocal", "relu", "clamp", "maximum", "minimum",
    )} | {
        "absolute": "abs", "negative": "neg", "rint": "round", "add": "plus", "subtract": "minus", "multiply": "mul",
        "true_divide": "div", "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "equal": "eq",
        "not_equal": "ne",
    },
    "functions": {name: name for name in (
        "exp", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf",
    )} | {"arctan": "atan"},
}  # fmt: skip
_CUDA = Language("(accum){}", library(), "{}")
_NUMBERS = ("p", "q", "r")

_KINDS = DTYPES | {name: 100 + size for size, name in MOVED.items()}
_KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(')
NARROW = 1 << 31  # elements from which on 32 bits do not number them
MOST_BLOCKS = 65_535  # along the second dim of a grid; along the first, more than any GPU runs at once: loops go over the rest
_WIDE = 8192  # elements from which on a group has as many threads as its kernel takes
_WARP, _HELD = 32, 32  # threads of a warp, and elements of a row that each of them keeps
_BLOCK = 256  # threads of a block that is given no other number, as in kernels/statistics.cu


# `name` of a dtype of NumPy's takes a microsecond.
_NAMES = {np.dtype(kind): np.dtype(kind).name for kind in "?bhilqBHILQefdFD"} | {np.dtype(bfloat16): "bfloat16"}


def name_of(array: Any) -> str:
    """The name of an array's dtype."""
    return _NAMES.get(array.dtype) or str(array.dtype.name)


@cache
def source(program: str) -> str:
    """The text of a program, with what all of them share."""
    return "\n".join(parts(program))


def parts(program: str) -> tuple[str, ...]:
    """The texts of which a program is made, those that it shares with others first."""
    folder = files("turnout_cuda") / "kernels"
    shared = [folder / name for name, programs in SHARED.items() if program in programs]
    found = [folder / "types.cuh", *shared, folder / f"{program}.cu"]
    texts = [text.read_text(encoding="utf-8") for text in found if text.is_file()]
    if program == "random":
        bits = "".join(f"DTYPE == {DTYPES[dtype.name]} ? {bits} : " for dtype, bits in PRECISION.items())
        defined = ("WORDS __device__ inline", f"PRECISION ({bits}0)", f"OF_FLOAT32 {PRECISION[dtypes.float32]}")
        texts[1:1] = [*(f"#define {each}" for each in defined), words_source()]
    if program not in ELEMENTWISE:
        return tuple(texts)

    def head(name: str, parameters: tuple[str, ...]) -> str:
        return f"__device__ inline accum {name}({', '.join(f'accum {each}' for each in parameters)})"

    helpers = [_CUDA.define(row, head, "accum") for row in _CUDA.helpers()]
    common = (folder / "pointwise.cuh").read_text(encoding="utf-8")
    rows = [_kernel(name, table().functions[row], program == "arithmetic") for name, row in ELEMENTWISE[program].items()]
    return (texts[0], "\n".join((common, *helpers)), *texts[1:], "\n".join(rows))


def _kernel(name: str, row: Expression, repeats: bool) -> str:
    """The kernel of a row. Where the second of two inputs `repeats`, it may be a number, or be repeated along dims."""
    numbers = [each for each in _NUMBERS if each in row.words()]
    text = _CUDA.written(row, {each: f"(accum){each}" for each in numbers})
    inputs, result, more = ["x", "other"][: row.inputs], "bool" if row.is_question else "scalar", []
    loop, form = ("each", "OF") if row.inputs == 1 else ("each_two", "OF_TWO")
    if row.inputs == 2 and repeats:
        loop, more = "between", ["inner", "count", "number"]
    if row.is_question:
        form = "WHETHER"
    takes = [*(f"const scalar* {each}" for each in inputs), f"{result}* y", "whole size"]
    takes += [f"{'double' if each == 'number' else 'whole'} {each}" for each in more] + [f"double {each}" for each in numbers]
    given = ", ".join((*inputs, "y", "size", *more))
    return f'extern "C" __global__ void of_{name}({", ".join(takes)}) {{ {loop}({given}, {form}({text})); }}'


def options(dtype: str) -> tuple[str, ...]:
    """The compiler's options for a kind of elements."""
    return ("-std=c++17", f"-DDTYPE={_KINDS[dtype]}")


@cache
def programs_by_kernel() -> dict[str, str]:
    """The name of each kernel, and the program that has it."""
    return {name: program for program in PROGRAMS for name in _KERNEL.findall(source(program))}


class Kernels(dict[tuple[str, str], Any]):
    """(kernel, kind of elements) -> what launches it, compiled when it is first looked up; `cupy` has `RawModule`."""

    def __init__(self, cupy: Any) -> None:
        super().__init__()
        self._cupy = cupy
        self._modules: dict[tuple[str, str], Any] = {}

    def __missing__(self, key: tuple[str, str]) -> Any:
        name, dtype = key
        program = programs_by_kernel()[name], dtype
        if program not in self._modules:
            self._modules[program] = self._cupy.RawModule(code=source(program[0]), options=options(dtype))
        found = self[key] = self._modules[program].get_function(name)
        return found


class Programs:
    """The compiled kernels of an array module, and how their work is spread."""

    def __init__(self, cupy: Any) -> None:
        self.kernels = Kernels(cupy)

    def start(self, name: str, dtype: str, grid: Sequence[int], block: Sequence[int], args: Sequence[Any]) -> None:
        """Queue a kernel. Arguments are arrays, ints and floats; arrays are contiguous and on the current device."""
        self.kernels[name, dtype](tuple(grid), tuple(block), tuple(args))

    def aligned(self, size: int, *arrays: Any) -> bool:
        """Whether all the arrays begin at a multiple of so many bytes."""
        return all([array.data.ptr % size == 0 for array in arrays])  # noqa: C419 - no generator's frames

    def apart(self, made: Any, *arrays: Any) -> bool:
        """Whether a contiguous array shares no memory with others."""
        first = made.data.ptr
        return all([array.data.ptr >= first + made.nbytes or array.data.ptr + array.nbytes <= first for array in arrays])  # noqa: C419

    # ---- how the work is spread

    def over_rows(self, name: str, dtype: str, rows: int, length: int, args: Sequence[Any]) -> None:
        """A warp for each row, four of them in a block, or a block for each long one."""
        if length <= _WARP * _HELD:
            self.start(name, dtype, (-(-rows // 4),), (_WARP, 4), args)
        else:
            self.start(name, dtype, (rows,), (_BLOCK,), args)

    def held(self, length: int) -> tuple[int, int, int]:
        """(parts of a line whose blocks keep all of their elements, elements of each but the last one, threads of each)"""
        threads = _WARP if length <= _WARP * _HELD else _BLOCK
        return -(-length // (threads * _HELD)), threads * _HELD, threads

    def over_elements(self, name: str, dtype: str, size: int, args: Sequence[Any], *, packed: bool = False) -> None:
        """A thread for each element, or for every so many; `packed` where the kernel computes 16 bytes at once."""
        threads = -(-size // PACKED[dtype]) if packed else size
        self.start(name, dtype, (min(-(-threads // _BLOCK), MOST_BLOCKS),), (_BLOCK,), args)

    def over_groups(self, name: str, dtype: str, groups: int, length: int, args: Sequence[Any], *, most: int = _BLOCK) -> None:
        """A block for each group of elements, of up to so many threads."""
        self.start(name, dtype, (groups,), (_WARP if length <= 2 * _WARP else _BLOCK if length < _WIDE else most,), args)
