"""Fake tensors against PyTorch's: the same programs give the same shapes, strides, dtypes and devices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import turnout
from random_programs.fakes import static_program
from random_programs.running import Lines, check, dtype_name, run, says
from turnout.errors import NoDataError

torch = pytest.importorskip("torch")
fakes = pytest.importorskip("torch._subclasses.fake_tensor")
symbols = pytest.importorskip("torch.fx.experimental.symbolic_shapes")

# What PyTorch's fake tensors answer otherwise. Each is a difference of the operators on real tensors, too, or of values.
FREE = (
    "unfold", "expand",  # the strides of results of operands whose elements share memory
)  # fmt: skip


def facts(x: Any) -> tuple[Any, ...]:
    strides = tuple(s for n, s in zip(x.shape, x.stride(), strict=True) if n > 1) if all(n > 0 for n in x.shape) else ()
    return tuple(x.shape), dtype_name(x), str(x.device), strides


def judge(lines: Lines) -> str:
    """What differs between Turnout's fake tensors and PyTorch's."""
    ours: dict[str, Any] = {"t": turnout}
    theirs: dict[str, Any] = {"t": torch}
    with turnout.FakeMode(), fakes.FakeTensorMode():
        for line in lines:
            name = line.partition(" ")[0]
            mine, other = run(line, ours), run(line, theirs)
            if mine is not None or other is not None:
                if (mine is None) != (other is None) and not accepted(line, mine, other):
                    return f"{line}\n  {says(mine)}, PyTorch: {says(other)}"
                ours.pop(name, None)
                theirs.pop(name, None)
                continue
            found, expected = facts(ours[name]), facts(theirs[name])
            if found[:3] != expected[:3]:
                return f"{line}\n  {found}, PyTorch: {expected}"
            if found[3] != expected[3]:
                STRIDES[line.partition(" = ")[2][:12]] += 1
                ours.pop(name)
                theirs.pop(name)
            COMPARED[found[2]] += 1
    return ""


def accepted(line: str, mine: Exception | None, other: Exception | None) -> bool:
    return isinstance(mine, NoDataError)


COMPARED: Counter[str] = Counter()
STRIDES: Counter[str] = Counter()


def test_programs_give_what_torch_s_fake_tensors_give(seeds):
    COMPARED.clear()
    STRIDES.clear()
    check({seed: static_program(seed) for seed in seeds(400)}, judge)
    print(COMPARED, STRIDES)
