"""Rows about device `opencl`: its kernels against NumPy's and PyTorch's on the same cores, where the driver is one of the CPU.

Both sides have as many threads as `--threads` says, for those of their functions that use threads. `x` and `y` have 10 million
elements, `mat` is the same as 10,000 x 1000. A turn of Turnout's ends when the device has finished.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import numpy as np
from numeric import SEED, Skipped, torch_with_threads
from timing import Pair, Side

import turnout
from turnout.errors import TurnoutError


class OpenCLRow(NamedTuple):
    """One statement. `against` is "numpy", with the statement `plain`, or "torch", with the same one."""

    name: str
    statement: str
    plain: str
    at_most: float

    @property
    def against(self) -> str:
        """The other library."""
        return "numpy" if self.plain else "torch"


ARRAYS = {
    "x": (10_000_000,),
    "y": (10_000_000,),
    "mat": (10_000, 1000),
    "sq": (1024, 1024),
    "img": (16, 64, 56, 56),
    "w33": (64, 64, 3, 3),
    "w11": (64, 64, 1, 1),
    "wdw": (64, 1, 3, 3),
    "wgr": (64, 16, 3, 3),
    "grad": (16, 64, 56, 56),
}

# fmt: off
ROWS = [
    OpenCLRow("opencl add",       "x + y",                 "x + y", 1.2),
    OpenCLRow("opencl mul scalar", "x * 2.5",              "x * np.float32(2.5)", 1.2),
    OpenCLRow("opencl add row",   "mat + mat[0]",          "mat + mat[0]", 1.2),
    OpenCLRow("opencl exp",       "x.exp()",               "np.exp(x)", 1.2),
    OpenCLRow("opencl sin",       "x.sin()",               "np.sin(x)", 1.2),
    OpenCLRow("opencl tanh",      "x.tanh()",              "np.tanh(x)", 1.2),
    OpenCLRow("opencl relu",      "m.relu(x)",             "np.maximum(x, 0)", 1.2),
    OpenCLRow("opencl compare",   "x > y",                 "x > y", 1.2),
    OpenCLRow("opencl where",     "m.where(x > y, x, y)",  "np.where(x > y, x, y)", 1.2),
    OpenCLRow("opencl sum",       "x.sum()",               "x.sum()", 1.2),
    OpenCLRow("opencl amax",      "x.amax()",              "x.max()", 1.2),
    OpenCLRow("opencl argmax",    "x.argmax()",            "x.argmax()", 1.2),
    OpenCLRow("opencl var",       "x.var()",               "x.var()", 1.2),
    OpenCLRow("opencl sum last",  "mat.sum(-1)",           "mat.sum(-1)", 1.2),
    OpenCLRow("opencl sum first", "mat.sum(0)",            "mat.sum(0)", 1.2),
    OpenCLRow("opencl amax first", "mat.amax(0)",          "mat.max(0)", 1.2),
    OpenCLRow("opencl matmul 1024", "sq @ sq",             "sq @ sq", 3.0),
    OpenCLRow("opencl matmul transposed", "sq @ sq.t()",   "sq @ sq.T", 3.0),
    OpenCLRow("opencl conv2d 3x3", "F.conv2d(img, w33, padding=1)", "", 3.0),
    OpenCLRow("opencl conv2d 3x3 s2", "F.conv2d(img, w33, stride=2, padding=1)", "", 3.0),
    OpenCLRow("opencl conv2d 1x1", "F.conv2d(img, w11)", "", 3.0),
    OpenCLRow("opencl conv2d depthwise", "F.conv2d(img, wdw, padding=1, groups=64)", "", 3.0),
    OpenCLRow("opencl conv2d depthwise backward", "backward(grad, img, wdw, 64)", "", 3.0),
    OpenCLRow("opencl conv2d grouped backward", "backward(grad, img, wgr, 4)", "", 3.0),
]
# fmt: on


def backward(library: Any) -> Callable[..., Any]:
    """The gradients of image and weight of a convolution in groups that keeps the size of images."""

    def run(grad: Any, img: Any, weight: Any, groups: int) -> Any:
        mask = [True, True, False]
        return library.ops.aten.convolution_backward(grad, img, weight, None, [1, 1], [1, 1], [1, 1], False, [0, 0], groups, mask)

    return run


def pair(row: OpenCLRow) -> Callable[[], AbstractContextManager[Pair]]:
    """What prepares both sides of a row."""

    @contextmanager
    def prepare() -> Iterator[Pair]:
        other = torch_with_threads(int(os.environ.get("OMP_NUM_THREADS", "1"))) if row.against == "torch" else np
        text = f"{row.statement}; {row.plain}"
        drawn = {n: np.random.default_rng(SEED).standard_normal(s, np.float32) for n, s in ARRAYS.items() if n in text}
        try:
            there: dict[str, Any] = {n: turnout.from_numpy(a).to("opencl") for n, a in drawn.items()}
        except TurnoutError as error:
            raise Skipped(f"there is no device opencl: {error}") from None
        names = {
            "m": turnout, "F": turnout.nn.functional, "wait": turnout.opencl.synchronize, "backward": backward(turnout),
        }  # fmt: skip
        ours = Side(f"{row.statement}; wait()", **names, **there)
        if row.against == "numpy":
            yield Pair(ours, Side(row.plain, np=np, **drawn))
        else:
            given = {n: other.from_numpy(a) for n, a in drawn.items()}
            yield Pair(ours, Side(row.statement, m=other, F=other.nn.functional, backward=backward(other), **given))

    return prepare
