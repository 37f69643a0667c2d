"""Random chains of operators and views on `opencl`, against the same on `cpu`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import turnout
from random_programs import chains, indexing, writes
from random_programs.running import Lines, check, difference, run, says
from turnout.errors import AliasError


class OnOpenCL:
    """The library, with new tensors on `opencl`."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(turnout, name)
        return partial(found, device="opencl") if name in ("tensor", "zeros", "ones", "arange") else found


def judge(lines: Lines) -> str:
    """What differs between the two devices; "" if nothing does."""
    ours: dict[str, Any] = {"t": OnOpenCL()}
    plain: dict[str, Any] = {"t": turnout}
    for line in lines:
        found, expected = run(line, ours), run(line, plain)
        if isinstance(expected, NameError):
            return ""
        if found is None and isinstance(expected, AliasError) and "share part of their memory" in str(expected):
            return ""  # what runs on the host runs on copies
        if type(found) is not type(expected):
            return f"{line}\n  {says(found)}, expected {says(expected)}"
        if found is not None and not isinstance(found, turnout.errors.TurnoutError):
            return f"{line}\n  {says(found)} is not an error of Turnout"
        if found is not None and "out=" in line:
            return ""  # outputs may have been resized
        for name, value in plain.items():
            if isinstance(value, turnout.Tensor):
                half = value.dtype in (turnout.float16, turnout.bfloat16)
                wrong = difference(name, ours[name], value, close=4e-3 if half else 2e-5)
                if wrong:
                    return f"after {line}\n  {wrong}"
                if ours[name].device.type != "opencl":
                    return f"after {line}\n  {name} is on {ours[name].device}"
    return ""


@pytest.mark.parametrize("kind", [chains, indexing, writes], ids=["chains", "indexing", "writes"])
def test_opencl_computes_what_cpu_computes(kind: Any, seeds: Callable[[int], range], need_device: Callable[[str], None]) -> None:
    need_device("opencl")
    check({seed: kind.Program(seed).lines for seed in seeds(25)}, judge)
