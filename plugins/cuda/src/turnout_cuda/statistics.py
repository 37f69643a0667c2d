"""Running sums, products, extremes and logarithms of sums. A kernel goes over memory once.

CuPy accumulates sums and products only, and converts floats to double precision in memory of their own; for the others the shared
rows join whole arrays as often as the length has bits.
"""

from __future__ import annotations

from math import prod
from typing import Any

from turnout_cuda.floats import Arrays, kind
from turnout_cuda.programs import Programs, name_of
from turnout_cuda.reductions import FEW_COLUMNS, FEW_ROWS, LONG_COLUMN, LONG_ROW

Table = dict[str, Any]
_EACH = 4  # neighbouring elements of a thread, as in the text


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    arrays = Arrays(xp)

    def sizes(self: Any, dim: int) -> tuple[int, int, int]:
        """(lines, length, distance of neighbours in a line)"""
        dim %= self.ndim
        length = self.shape[dim]
        return self.size // length, length, prod(self.shape[dim + 1 :])

    def serves(self: Any, dim: int) -> bool:
        return bool(kind(self) is not None and self.ndim and self.size and -self.ndim <= dim < self.ndim)

    def extreme(sign: int) -> Any:
        def kernel(self: Any, dim: int, values: Any, indices: Any) -> Any:
            if not serves(self, dim):
                return NotImplemented
            lines, length, inner = sizes(self, dim)
            made, places = arrays.target(values, self.dtype), arrays.target(indices, xp.dtype("int64"))
            args = (arrays.packed(self), made, places, length, inner, sign)
            programs.over_groups("running_extreme", name_of(self), lines, length, args)
            arrays.deliver(made, values)
            arrays.deliver(places, indices)
            return None

        return kernel

    def logcumsumexp(self: Any, dim: int, out: Any) -> Any:
        if not serves(self, dim):
            return NotImplemented
        lines, length, inner = sizes(self, dim)
        made = arrays.target(out, self.dtype)
        programs.over_groups("running_log_of_sum", name_of(self), lines, length, (arrays.packed(self), made, length, inner))
        return arrays.deliver(made, out)

    def total(*, product: bool) -> Any:
        def kernel(self: Any, dim: int, dtype: Any, out: Any) -> Any:
            integers = name_of(self) == "int64"
            if not (integers or kind(self)) or self.dtype != out.dtype or not self.ndim or not self.size:
                return NotImplemented
            lines, length, inner = sizes(self, dim)
            few, long = (FEW_ROWS, LONG_ROW) if inner == 1 else (FEW_COLUMNS, LONG_COLUMN)
            if lines < few and length > long:
                return NotImplemented
            x, made = arrays.packed(self), arrays.target(out, self.dtype)
            # Integers are the same in programs of all dtypes.
            start, of = ("running_whole", "float32") if integers else ("running_total", name_of(self))
            if inner == 1:
                aligned = length % _EACH == 0 and programs.aligned(_EACH * x.dtype.itemsize, x)
                programs.over_rows(f"{start}_rows", of, lines, length, (x, made, lines, length, int(product), int(aligned)))
            else:
                args = (x, made, lines, length, inner, int(product))
                programs.over_elements(f"{start}_columns", of, lines, args)
            return arrays.deliver(made, out)

        return kernel

    return {
        "cummax.out": extreme(1),
        "cummin.out": extreme(-1),
        "cumprod.out": total(product=True),
        "cumsum.out": total(product=False),
        "logcumsumexp.out": logcumsumexp,
    }
