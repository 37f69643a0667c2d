"""Random programs that read and write `x[index]`, in Turnout and in PyTorch.

Compared are errors, values, dtypes, shapes, strides and shared memory, after each step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import turnout
from random_programs.indexing import Program
from random_programs.running import Lines, check, difference, run, says
from turnout.errors import AliasError

torch = pytest.importorskip("torch")


def judge(lines: Lines) -> str:
    ours: dict[str, Any] = {"t": turnout}
    theirs: dict[str, Any] = {"t": torch}
    for line in lines:
        found, expected = run(line, ours), run(line, theirs)
        if isinstance(expected, NameError):
            return ""
        if free(line, found, expected):
            return ""
        if (found is None) != (expected is None):
            return f"{line}\n  {says(found)}, expected {says(expected)}"
        if found is not None and not isinstance(found, turnout.errors.TurnoutError):
            return f"{line}\n  {says(found)} is not an error of Turnout"
        tensors = [name for name, value in theirs.items() if isinstance(value, torch.Tensor)]
        for name in tensors:
            wrong = difference(name, ours[name], theirs[name])
            wrong = wrong or other_strides(name, ours[name], theirs[name])
            if wrong:
                return f"after {line}\n  {wrong}"
        for one in tensors:
            for other in tensors:
                shared = theirs[one].untyped_storage().data_ptr() == theirs[other].untyped_storage().data_ptr()
                if theirs[one].numel() and shared != ours[one].shares_memory_with(ours[other]):
                    return f"after {line}\n  {one} and {other} share memory: {not shared}, expected {shared}"
    return ""


def free(line: str, found: Exception | None, expected: Exception | None) -> bool:
    """Whether a step is one where Turnout does better than PyTorch; what follows is not compared."""
    if expected is None:
        # Several values into one element: PyTorch warns that it will refuse this. A complex number into real tensors: it
        # refuses this where an element is selected.
        return ("expanded tensor" in str(found) and isinstance(found, AliasError)) or "got complex64" in str(found)
    if found is None and "step must be greater than zero" in str(expected):  # backwards
        return True
    if found is None:  # a mask of uint8 reads, and writes a tensor, but does not write a number
        return "only supports boolean masks" in str(expected)
    # An index out of range: PyTorch has written what came before it.
    return re.match(r"r\d = ", line) is None


def other_strides(name: str, ours: Any, theirs: Any) -> str:
    """The strides of dims that have any, where they differ."""
    if theirs.numel() == 0:
        return ""
    pairs = zip(ours.shape, ours.stride(), theirs.stride(), strict=True)
    if all(n == 1 or a == b for n, a, b in pairs):
        return ""
    return f"{name}: strides {list(ours.stride())}, expected {list(theirs.stride())}"


def test_indexing_is_that_of_pytorch(seeds: Callable[[int], range]) -> None:
    check({seed: Program(seed).lines for seed in seeds(1500)}, judge)
