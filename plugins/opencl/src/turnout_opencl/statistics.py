"""Running sums, products, extremes and logarithms, with one work-item per line."""

from __future__ import annotations

from typing import Any

from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray
from turnout_opencl.reductions import lines


def running(op: int) -> Any:
    """Cumulative sums (0) or products (1)."""

    def kernel(self: ClArray, dim: int, dtype: Any, out: ClArray) -> None:
        lines(self.place, "reduce", "scan", op, (out, self), dim)

    return kernel


def running_extremes(op: int) -> Any:
    def kernel(self: ClArray, dim: int, values: ClArray, indices: ClArray) -> None:
        lines(self.place, "reduce", "scan_extremes", op, (values, self, indices), dim)

    return kernel


def logcumsumexp(self: ClArray, dim: int, out: ClArray) -> None:
    """The logarithm of the running sum of exponentials."""
    lines(self.place, "reduce", "scan_logarithms", 0, (out, self), dim)


# fmt: off
KERNELS = {
    "cumsum.out":       Row(running(0)),
    "cumprod.out":      Row(running(1)),
    "cummax.out":       Row(running_extremes(0)),
    "cummin.out":       Row(running_extremes(1)),
    "logcumsumexp.out": Row(logcumsumexp),
}
# fmt: on
