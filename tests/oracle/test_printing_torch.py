"""The text of a tensor is PyTorch's: dtypes, shapes, extreme numbers and print options are drawn."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402

NUMBERS = (
    [0.0, 1.0, 2.0, 3.0], [1.5, 2.25, -3.125], [1e-5, 1e5, 3.3], [1e-30, 1e30], [math.nan, 1.0, math.inf, -math.inf], [0.0, -0.0],
    [1e8, 1e9], [100000.0, 99999.5], [1e-4, 9.9999e-5], [0.1, 1000.5], [123456789.0, 1.0], [math.nan], [1e-45, 1.0],
    [999.99995, 1.0], [-1.0, 0.0, 1.0], [1e3, 1e-3], [0.99999, 1.00001], [-math.inf, 0.0],
)  # fmt: skip
SHAPES = [(), (0,), (1,), (5,), (2, 3), (0, 3), (2, 0, 3), (3, 1, 2), (2, 2, 2, 2), (1200,), (40, 30), (7, 8, 30), (30,), (1, 50)]
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {}, {"precision": 2}, {"precision": 8}, {"precision": 0}, {"threshold": 5}, {"threshold": 10, "edgeitems": 2},
    {"edgeitems": 1, "threshold": 2}, {"edgeitems": 0, "threshold": 3}, {"edgeitems": 0}, {"linewidth": 40}, {"linewidth": 10},
    {"linewidth": 120}, {"sci_mode": True}, {"sci_mode": False}, {"profile": "full"}, {"profile": "short"},
    {"threshold": math.inf},
)  # fmt: skip
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")
WHOLE = {"bool": 1, "uint8": 255, "int8": 127, "int16": 2**15 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1}


@pytest.fixture(autouse=True)
def _default_options() -> Iterator[None]:
    yield
    for library in (torch, turnout):
        library.set_printoptions(profile="default")


def text(library: Any, seed: int) -> str:
    rng = random.Random(seed)
    library.set_printoptions(profile="default")
    library.set_printoptions(**rng.choice(OPTIONS))
    shape, name = rng.choice(SHAPES), rng.choice([*FLOATS, *FLOATS, *WHOLE])
    count = math.prod(shape)
    if name in WHOLE:
        high = WHOLE[name]
        x = library.tensor([rng.choice([0, 1, high, high // 2, -high // 3 if name[0] == "i" else 1]) for _ in range(count)])
    else:
        pool = rng.choice(NUMBERS)
        x = library.tensor([rng.choice(pool) for _ in range(count)], dtype=library.float64)
        if name[0] == "c":
            x = library.complex(x, library.tensor([rng.choice(pool) for _ in range(count)], dtype=library.float64))
    x = x.reshape(shape).to(getattr(library, name))
    if name in FLOATS and rng.random() < 0.2:
        x = x.requires_grad_()
        x = x.clone() if rng.random() < 0.5 else x
    found = re.sub("torch|turnout", "library", rng.choice([repr(x), str([x, x]), f"{x}"]))
    return re.sub(
        r",\s+(size|dtype|requires_grad|grad_fn)=", r", \1=", found
    )  # the names differ in length, so lines may end elsewhere


@pytest.mark.parametrize("block", range(10))
def test_tensors_are_printed_as_in_torch(block: int) -> None:
    for seed in range(block * 60, block * 60 + 60):
        assert text(turnout, seed) == text(torch, seed), f"seed {seed}"
