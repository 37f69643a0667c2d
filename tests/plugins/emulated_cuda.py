"""Kernels in CUDA C on the CPU: the same text, compiled as C++ with the headers of `cuda_headers`, launched block by block.

What CuPy does not check about a launch is checked here: the number of arguments, the dtype behind each pointer, and that numbers
are what CuPy makes of a Python int (`long long`) and of a Python float (`double`).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HEADERS = Path(__file__).with_name("cuda_headers")
COMPILER = shutil.which("g++")
# Compiled programs are kept under this folder by what they are made of.
FOLDER = Path(tempfile.gettempdir()) / f"turnout-emulated-cuda-{os.getuid() if hasattr(os, 'getuid') else 0}"

_ONE_LAUNCH = threading.Lock()  # what a thread of a block is, is global
_KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(\s*(.*?)\s*\)\s*\{', re.DOTALL)
_ARGUMENTS = re.compile(r"#define (\w+_ARGUMENTS) (.*)")
_NAMES = {
    "float": "float32", "double": "float64", "whole": "int64", "int": "int32", "bool": "bool", "word64": "uint64",
    "__half": "float16", "__nv_bfloat16": "bfloat16",
}  # fmt: skip


class Parameter(NamedTuple):
    """What a kernel takes: its type as C++ has it, and what an array must have if it is a pointer."""

    text: str
    dtype: str
    is_pointer: bool


def kernels_in(code: str) -> Iterator[tuple[str, list[str]]]:
    """The kernels of a text, with the types of what they take."""
    for macro, text in _ARGUMENTS.findall(code.replace("\\\n", "")):
        code = code.replace(macro, text)
    for name, parameters in _KERNEL.findall(code):
        yield name, [" ".join(each.split()).rpartition(" ")[0] for each in parameters.split(",")]


class LaunchError(RuntimeError):
    """A launch that would be wrong on a GPU."""


class Kernel:
    """One kernel of a program; called as CuPy's `RawKernel` is."""

    def __init__(self, name: str, function: Any, parameters: list[Parameter]) -> None:
        self.name = name
        self.function = function
        self.parameters = parameters

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
        if len(args) != len(self.parameters):
            raise LaunchError(f"{self.name} takes {len(self.parameters)} arguments, got {len(args)}")
        if min(grid) < 1 or (grid[1:] and max(grid[1:]) > 65535):
            raise LaunchError(f"{self.name}: a grid of {grid} blocks")
        given: list[Any] = []
        for i, (parameter, value) in enumerate(zip(self.parameters, args, strict=True)):
            given.append(self.converted(i, parameter, value))
        addresses = (ctypes.c_void_p * len(given))(*[ctypes.addressof(each) for each in given])
        sizes = [(ctypes.c_uint * 3)(*each, *(1,) * (3 - len(each))) for each in (grid, block)]
        with _ONE_LAUNCH:
            problem = self.function(addresses, *sizes)
        if problem:
            texts = {1: "threads wait for others that do not come", 2: f"a block of {block} threads is not whole warps"}
            raise LaunchError(f"{self.name}: {texts[problem]}")

    def converted(self, i: int, parameter: Parameter, value: Any) -> Any:
        """The argument as the kernel reads it."""
        if parameter.is_pointer:
            if not hasattr(value, "dtype") or not _is_read_as(value, parameter.dtype) or not value.flags.c_contiguous:
                raise LaunchError(f"{self.name}: argument {i} is {parameter.text}, got {_said(value)}")
            return ctypes.c_void_p(value.data.ptr)
        wanted = {"int64": (int, ctypes.c_longlong), "float64": (float, ctypes.c_double)}.get(parameter.dtype)
        if wanted is None or type(value) is not wanted[0]:
            raise LaunchError(f"{self.name}: argument {i} is {parameter.text}, got {_said(value)}")
        return wanted[1](value)


def _is_read_as(array: Any, kind: str) -> bool:
    """Whether a kernel may read the elements of an array: those of the dtype, or any that are whole units of so many bytes."""
    size, _, moved = kind.partition(" ")
    return array.data.ptr % int(size) == array.nbytes % int(size) == 0 if moved else bool(array.dtype.name == kind)


def _said(value: Any) -> str:
    if not hasattr(value, "dtype"):
        return repr(value)
    return f"an array of {value.dtype}{'' if value.flags.c_contiguous else ' that is not contiguous'}"


@functools.cache
def program(code: str, options: tuple[str, ...]) -> dict[str, Kernel]:
    """The kernels of a text, compiled. Raises LaunchError with what the compiler said."""
    found = list(kernels_in(code))
    launchers = "\n".join(
        f"static void run_{name}(void** a) {{ {name}({', '.join(f'*({t}*)a[{i}]' for i, t in enumerate(types))}); }}\n"
        f'extern "C" int launch_{name}(void** a, const unsigned* grid, const unsigned* block) '
        f"{{ return emulation::launch(run_{name}, a, grid, block); }}"
        for name, types in found
    )
    text = f'#include "emulation.h"\n{code}\n{launchers}\n'
    library = ctypes.CDLL(str(_compiled(text, options)))
    types = _types(options)
    return {
        name: Kernel(name, getattr(library, f"launch_{name}"), [_parameter(each, types) for each in parameters])
        for name, parameters in found
    }


def _types(options: tuple[str, ...]) -> dict[str, str]:
    kind = next(option.partition("=")[2] for option in options if option.startswith("-DDTYPE="))
    floats = {"16": "float16", "17": "bfloat16", "32": "float32", "64": "float64"}
    scalar = floats.get(kind) or f"{int(kind) - 100} bytes"
    return {**_NAMES, "scalar": scalar, "accum": "float64" if kind == "64" else "float32"}


def _parameter(text: str, types: dict[str, str]) -> Parameter:
    text = text.replace(" __restrict__", "")
    return Parameter(text, types[text.replace("const ", "").rstrip("*")], text.endswith("*"))


def _compiled(text: str, options: tuple[str, ...]) -> Path:
    assert COMPILER is not None, "no g++"
    # Without -fno-gnu-unique, shared arrays of a function are those of the first program that was loaded, of other elements.
    flags = ["-O1", "-g0", "-shared", "-fPIC", "-w", "-fno-gnu-unique", f"-I{HEADERS}"]
    flags += [option for option in options if option.startswith(("-D", "-std"))]
    headers = "".join(path.read_text(encoding="utf-8") for path in sorted(HEADERS.iterdir()))
    key = hashlib.sha256("\0".join([COMPILER, *flags, headers, text]).encode()).hexdigest()[:24]
    made = FOLDER / f"{key}.so"
    if not made.exists():
        FOLDER.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            source, built = Path(folder, "kernels.cc"), Path(folder, "kernels.so")
            source.write_text(text, encoding="utf-8")
            done = subprocess.run([COMPILER, *flags, "-o", str(built), str(source)], capture_output=True, text=True, check=False)
            if done.returncode:
                raise LaunchError(done.stderr)
            os.replace(built, made)
    return made
