"""The row of the largest or smallest elements: contiguous float32 and float64. Two-byte floats come as copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Row, Sizes
from turnout_kernels.few import compiled
from turnout_kernels.layouts import any_floats
from turnout_kernels.native import FEW, code, has_many, plain, run, whole

# As in native/sorting.h.
_MOST_OF_TOPK = 64


def topk(self: Any, k: int, dim: int, largest: bool, sorted: bool, values: Any, indices: Any) -> Any:
    if not has_many(self, dim) or dim % self.ndim != self.ndim - 1 or not 0 < k <= min(_MOST_OF_TOPK, self.shape[-1]):
        return NotImplemented
    if not plain(self, values) or indices.dtype != np.int64 or not whole(indices):
        return NotImplemented
    run("topk", (values, indices), (self,), (code(self), self.shape[-1], k, int(bool(largest))))
    return None


KERNELS: dict[str, Any] = {
    "topk.values": Row(any_floats(topk, outputs=2), sizes=Sizes(FEW), quiet=True, program=compiled("order first"))
}
