"""Runs a program, which is a list of Python lines, in two libraries, and finds the first line after which they differ.

The lines call the library `t`. A line may raise: then both must raise, and the program goes on.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Part = TypeVar("Part")
Lines = Sequence[str]
Judge = Callable[[Lines], str]


def run(line: str, scope: dict[str, Any]) -> Exception | None:
    """Run a line; the exception it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(line, scope)
    except Exception as error:  # noqa: BLE001 - whether it raises is what is compared
        return error.with_traceback(None)
    return None


def shrunk(parts: Sequence[Part], judge: Callable[[list[Part]], object]) -> list[Part]:
    """A program, a sequence of lines or of other parts, without those that it does not need for the judge to find fault."""
    parts, again = list(parts), True
    while again:
        again = False
        for i in reversed(range(len(parts))):
            fewer = parts[:i] + parts[i + 1 :]
            if judge(fewer):
                parts, again = fewer, True
    return parts


def check(programs: dict[int, Lines], judge: Judge) -> None:
    """Fail with the shortest form of the first program that the judge finds fault with, and its seed."""
    for seed, lines in programs.items():
        if judge(lines):
            short = shrunk(lines, judge)
            text = "\n".join(short)
            raise AssertionError(f"seed {seed}: {judge(short)}\n\n{text}\n\n--seed {seed} --programs 1 runs it again")


def same(a: Any, b: Any, close: float = 0.0) -> bool:
    """Whether two results of `tolist` are equal, a nan to a nan; numbers up to a relative difference of `close`."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y, close) for x, y in zip(a, b, strict=True))
    if type(a) is not type(b):
        return False
    if isinstance(a, complex):
        return same(a.real, b.real, close) and same(a.imag, b.imag, close)
    if isinstance(a, float) and (math.isnan(a) or math.isnan(b)):
        return math.isnan(a) and math.isnan(b)
    return a == b or (isinstance(a, float) and math.isclose(a, b, rel_tol=close, abs_tol=close))


def dtype_name(value: Any) -> str:
    """`float32` for the dtype of any library."""
    return str(value.dtype).rpartition(".")[2]


def difference(name: str, ours: Any, theirs: Any, close: float = 0.0) -> str:
    """What differs between the tensor `name` in Turnout and in PyTorch: dtype, shape or values; "" if nothing does."""
    if dtype_name(ours) != dtype_name(theirs):
        return f"{name}: dtype {dtype_name(ours)}, expected {dtype_name(theirs)}"
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"{name}: shape {list(ours.shape)}, expected {list(theirs.shape)}"
    found, expected = ours.tolist(), theirs.tolist()
    return "" if same(found, expected, close) else f"{name}: {found}, expected {expected}"


def says(error: Exception | None) -> str:
    """An outcome in a few words."""
    return "no error" if error is None else f"{type(error).__name__}: {error}".partition("\n")[0]
