"""Random programs that write in place and into `out`, over memory that operands share, in Turnout and in PyTorch."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import turnout
from random_programs.running import Lines, check, difference, run, says
from random_programs.writes import BINARY, LOGIC, UNARY, Program
from turnout.errors import AliasError

torch = pytest.importorskip("torch")


def judge(lines: Lines) -> str:
    ours: dict[str, Any] = {"t": turnout}
    theirs: dict[str, Any] = {"t": torch}
    for line in lines:
        overlaps = overlapping(line, theirs)
        shapes = {name: value.shape for name, value in theirs.items() if isinstance(value, torch.Tensor)}
        found, expected = run(line, ours), run(line, theirs)
        if isinstance(expected, NameError) or free(overlaps, found, expected):
            return ""
        if (found is None) != (expected is None):
            return f"{line}\n  {says(found)}, expected {says(expected)}"
        if found is not None and not isinstance(found, turnout.errors.TurnoutError):
            return f"{line}\n  {says(found)} is not an error of Turnout"
        tensors = {name: value for name, value in theirs.items() if isinstance(value, torch.Tensor)}
        half = any(value.dtype in HALF for value in tensors.values())
        for name, value in tensors.items():
            wrong = difference(name, ours[name], value, close=4e-3 if half else 2e-5)
            if wrong:
                # Nowhere is promised what an operator leaves in `out` when it raises, or when it reads from it too.
                return "" if found is not None or overlaps or resized(shapes, tensors) else f"after {line}\n  {wrong}"
        if resized(shapes, tensors):
            return ""
    return ""


def resized(shapes: dict[str, Any], tensors: dict[str, Any]) -> bool:
    """Whether a tensor that shares memory has another shape than before.

    One that grows leaves the memory of its views, while PyTorch's views follow it. And the result of operands in different
    orders is laid out in row-major order, while PyTorch follows the first of them.
    """
    return any(
        value.shape != shapes.get(name, value.shape)
        and any(v.untyped_storage()._cdata == value.untyped_storage()._cdata for n, v in tensors.items() if n != name)
        for name, value in tensors.items()
    )


HALF = (torch.float16, torch.bfloat16)


# Pointwise operators may write over an operand with the same places.
_POINTWISE = re.compile(r"(^\w+|t)\.(" + "|".join([*BINARY, *LOGIC, *UNARY, "addcmul", "lerp", "clamp", "where"]) + r")_?\(")


def overlapping(line: str, scope: dict[str, Any]) -> bool:
    """Whether what a line writes shares memory with something that it reads, so that PyTorch's result is undefined."""
    names = [name for name in re.findall(r"\b[abcvo]\d?\b", line) if name in scope]
    outs = [name for name in re.findall(r"\b[abcvo]\d?\b", line.partition("out=")[2]) if name in scope] or names[:1]
    pointwise = _POINTWISE.match(line) is not None
    for out in outs:
        if len(set(places(scope[out]))) < scope[out].numel():
            return True
        read = list(names)
        read.remove(out)
        for name in read:
            a, b = scope[out], scope[name]
            if a.untyped_storage()._cdata == b.untyped_storage()._cdata:
                same = a.data_ptr() == b.data_ptr() and a.stride() == b.stride() and a.shape == b.shape
                if not (pointwise and same):
                    return True
    return False


def places(tensor: Any) -> list[int]:
    """Where the elements of a tensor stand in its storage."""
    offsets = torch.arange(tensor.untyped_storage().nbytes() // tensor.element_size())
    return offsets.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).flatten().tolist()


def free(overlaps: bool, found: Exception | None, expected: Exception | None) -> object:
    """Whether a step is one where Turnout may differ from PyTorch; what follows is not compared."""
    if expected is None:
        return isinstance(found, AliasError) or _REFUSED.search(str(found))
    # Turnout computes the result aside where PyTorch refuses or resizes what it still has to read, converts to any dtype of an
    # output that can hold the result, and has products of bools.
    return found is None and (overlaps or isinstance(expected, NotImplementedError) or _OUT_DTYPE.search(str(expected)))


# Where there is nothing to compute, PyTorch takes dtypes and indices that it refuses otherwise. It lets float weights mix with
# integers of no dims, drops the imaginary part of a logsumexp, and has powers of bools.
_REFUSED = re.compile(
    "softmax is not|complex64, which cannot|complex64 tensors, which have no order|out of bounds for a dimension of size 1"
    "|lerp: self and weight|pow is not defined for bool"
)
_OUT_DTYPE = re.compile("(?i)dtype|scalar.?type|out type|only supports bool tensor for result")


def test_writes_are_those_of_pytorch(seeds: Callable[[int], range]) -> None:
    check({seed: Program(seed).lines for seed in seeds(1500)}, judge)
