"""Rows of cumulative sums, products and extremes: contiguous float32 and float64. Two-byte floats come as copies."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Compiled, Row, Sizes
from turnout_kernels.few import compiled
from turnout_kernels.layouts import any_floats
from turnout_kernels.native import FEW, code, has_many, plain, run, whole


def cumulative(*, product: bool, of_few: Compiled | None = None) -> Row:
    """cumsum or cumprod."""

    def accumulated(self: Any, dim: int, out: Any = None) -> Any:
        if not has_many(self, dim):
            return NotImplemented
        made = np.empty(self.shape, self.dtype) if out is None else out
        if not plain(self, made):
            return NotImplemented
        ints = (code(self), self.shape[dim], prod(self.shape[dim % self.ndim + 1 :]), int(product))
        run("cumulate", (made,), (self,), ints)
        return made

    of_any_floats = any_floats(accumulated)

    def kernel(self: Any, dim: int, dtype: Any = None, out: Any = None) -> Any:
        if dtype is not None and dtype.name != self.dtype.name:
            return NotImplemented
        return of_any_floats(self, dim) if out is None else of_any_floats(self, dim, out)

    return Row(kernel, sizes=Sizes(FEW), program=of_few)


def cumulative_extreme(sign: int) -> Row:
    """cummax or cummin."""

    def kernel(self: Any, dim: int, values: Any, indices: Any) -> Any:
        if not has_many(self, dim) or not plain(self, values) or indices.dtype != np.int64 or not whole(indices):
            return NotImplemented
        ints = (code(self), self.shape[dim], prod(self.shape[dim % self.ndim + 1 :]), sign)
        run("cumulative_extreme", (values, indices), (self,), ints)
        return None

    return Row(any_floats(kernel, outputs=2), sizes=Sizes(FEW))


# fmt: off
KERNELS: dict[str, Any] = {
    "cumsum.out":  cumulative(product=False, of_few=compiled("add up")),
    "cumprod.out": cumulative(product=True),
    "cummax.out":  cumulative_extreme(1),
    "cummin.out":  cumulative_extreme(-1),
}
# fmt: on
