"""Fake tensors against PyTorch's: the same programs give the same shapes, strides, dtypes and devices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import turnout
from random_programs.fakes import static_program
from random_programs.running import Lines, check, dtype_name, run

torch = pytest.importorskip("torch")
fakes = pytest.importorskip("torch._subclasses.fake_tensor")
symbols = pytest.importorskip("torch.fx.experimental.symbolic_shapes")


def facts(x: Any) -> tuple[Any, ...]:
    strides = tuple(s for n, s in zip(x.shape, x.stride(), strict=True) if n > 1) if all(n > 0 for n in x.shape) else ()
    return tuple(x.shape), dtype_name(x), str(x.device), strides


def judge(lines: Lines) -> str:
    """What differs between Turnout's fake tensors and PyTorch's, where both give one.

    Which calls are refused is compared elsewhere, on real tensors: PyTorch's fake tensors accept some that its real ones refuse.
    """
    ours: dict[str, Any] = {"t": turnout}
    theirs: dict[str, Any] = {"t": torch}
    with turnout.FakeMode(), fakes.FakeTensorMode():
        for line in lines:
            name = line.partition(" ")[0]
            mine, other = run(line, ours), run(line, theirs)
            LINES["both" if mine is other is None else "neither" if mine is not None and other is not None else "one"] += 1
            if mine is not None or other is not None:
                ours.pop(name, None)
                theirs.pop(name, None)
                continue
            found, expected = facts(ours[name]), facts(theirs[name])
            if found != expected:
                if found[:3] == expected[:3]:
                    LINES["strides"] += 1
                    ours.pop(name)
                    theirs.pop(name)
                    continue
                return f"{line}\n  {found}, PyTorch: {expected}"
    return ""


LINES: Counter[str] = Counter()


def test_programs_give_what_torch_s_fake_tensors_give(seeds):
    LINES.clear()
    check({seed: static_program(seed) for seed in seeds(400)}, judge)
    assert LINES["both"] > 10 * LINES["one"]
    # differs from torch: operands that disagree about the order of dims; see `turnout_aten.shapes.extents.layout`.
    assert LINES["strides"] * 200 < LINES["both"]


@pytest.mark.parametrize(
    "line",
    [
        "x.nonzero()", "x[x > 0]", "t.masked_select(x, x > 0)", "t.unique(x)", "x.repeat_interleave(t.tensor([1, 2, 0]), 0)",
        "t.cat([x.nonzero(), x.nonzero()])", "x.nonzero().t()", "x[x > 0].view(-1, 1)", "x[x > 0].unsqueeze(0).expand(3, -1)",
        "x.nonzero().sum(0)", "x.nonzero().float() @ t.ones(2, 5)", "x[x > 0].sort()[0]", "x[x > 0] * 2 + 1", "x.nonzero()[:, 0]",
        "t.zeros(x.nonzero().shape[0], 4)", "x[x > 0].softmax(0)", "t.bincount(t.tensor([1, 2]))",
        "t.arange(x.nonzero().shape[0])",
    ],
)  # fmt: skip
def test_the_same_sizes_depend_on_values(line):
    """A size is a symbol for both or the same int for both."""

    def sizes(made: Any) -> list[int | None]:
        return [n if isinstance(n, int) else None for n in made.shape]

    with turnout.FakeMode():
        mine = eval(line, {"t": turnout, "x": turnout.ones(3, 4)})
    with fakes.FakeTensorMode(shape_env=symbols.ShapeEnv()):
        other = eval(line, {"t": torch, "x": torch.ones(3, 4)})
    assert (sizes(mine), dtype_name(mine), str(mine.device)) == (sizes(other), dtype_name(other), str(other.device))
