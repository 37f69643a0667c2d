"""The benchmarks of device `cuda` over the stand-in for CuPy, on small arrays, with Turnout on both sides: every row can run."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pretended_cuda import pretended
from test_cuda_runtime import HAS_CUDA, cuda

import turnout
from turnout_cuda.backend import CUDABackend

pytestmark = pytest.mark.skipif(HAS_CUDA, reason="there is a device of type cuda, on which the benchmark itself runs")
SHAPES: dict[str, Any] = {
    "x": (600,), "y": (600,), "mat": (32, 16), "row": (16,), "picks": ((32,), 32),
    "img": (2, 4, 17, 18), "w33": (4, 4, 3, 3), "wdw": (4, 1, 3, 3), "seq": (8, 4, 40), "w5": (4, 4, 5), "q": (1, 2, 8, 4),
    "sq": (16, 16), "wl": (16, 16), "ba": (2, 4, 8), "bb": (2, 8, 4), "big": (16, 16),
}  # fmt: skip


@pytest.fixture(scope="module")
def cards() -> Iterator[Any]:
    """The module, with a pretended card, small arrays, and Turnout in the place of PyTorch."""
    folder = str(Path(__file__).parents[2] / "benchmarks")
    before = set(sys.modules)
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.syspath_prepend(folder)
        import cards

        stack.enter_context(pretended(CUDABackend))
        patch.setattr(turnout, "cuda", cuda)
        patch.setattr(cuda, "is_available", lambda: True)
        switch = types.SimpleNamespace(allow_tf32=True)
        torch = types.ModuleType("torch")
        switch.version = lambda: 91400
        torch.__dict__.update(backends=types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=switch), cudnn=switch))
        torch.__dict__.update(version=types.SimpleNamespace(cuda="12.9"))
        torch.__getattr__ = lambda name: getattr(turnout, name)  # type: ignore[method-assign]
        patch.setattr(cards, "torch_with_threads", lambda threads: torch)
        patch.setattr(cards.kernels, "ARRAYS", SHAPES)
        patch.setattr(cards, "_TIMES", 1)
        yield cards
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


def test_every_row_can_run(cards: Any) -> None:
    failed = {}
    for row in cards.ROWS:
        try:
            with cards.pair(row._replace(calls=1))() as pair:
                assert pair.turnout.seconds(1) > 0
        except cards.Skipped as reason:
            failed[row.name] = str(reason)
    assert failed == {}


def test_a_row_that_fails_is_skipped_with_its_error(cards: Any) -> None:
    for row in (cards.CardRow("", "m.nothing()"), cards.CardRow("", "0", "m.nothing()")):
        with pytest.raises(cards.Skipped, match="has no attribute 'nothing'"), cards.pair(row)() as pair:
            pair.turnout.seconds(1)


def test_the_card_is_described_and_measured(cards: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_COPIED", 1 << 16), ("_SIDE", 256), ("_BATCH", 0.001), ("driver", lambda: "570.1")):
        monkeypatch.setattr(cards, name, value)
    found = cards.facts(quick=True)
    assert found["card"] == "Pretended GPU, 40 processors, 1 GiB"
    assert [found[name] for name in ("driver", "cupy", "CUDA of cupy")] == ["570.1", "14.2.0", "12.9"]
    assert list(found)[-4:] == ["copy", "product float32", "product TF32", "product bfloat16"]
    assert all(float(found[name].split()[0]) >= 0 for name in list(found)[-4:])
