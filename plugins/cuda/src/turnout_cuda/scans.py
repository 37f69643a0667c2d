"""Running extremes and running logarithms of sums. CuPy accumulates sums and products only; the shared rows join whole arrays as
often as the length has bits, where a kernel goes over memory once."""

from __future__ import annotations

from math import prod
from typing import Any

from turnout_cuda.floats import Arrays, kind
from turnout_cuda.programs import Programs

Table = dict[str, Any]


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

    def extreme(name: str, sign: int) -> Any:
        def kernel(self: Any, dim: int, values: Any, indices: Any) -> Any:
            if not serves(self, dim):
                return NotImplemented
            lines, length, inner = sizes(self, dim)
            made, places = arrays.target(values, self.dtype), arrays.target(indices, xp.dtype("int64"))
            args = (arrays.packed(self), made, places, length, inner, sign)
            programs.over_groups("running_extreme", self.dtype.name, lines, length, args)
            arrays.deliver(made, values)
            arrays.deliver(places, indices)
            return None

        kernel.__name__ = kernel.__qualname__ = name
        return kernel

    def logcumsumexp(self: Any, dim: int, out: Any) -> Any:
        if not serves(self, dim):
            return NotImplemented
        lines, length, inner = sizes(self, dim)
        made = arrays.target(out, self.dtype)
        programs.over_groups("running_log_of_sum", self.dtype.name, lines, length, (arrays.packed(self), made, length, inner))
        arrays.deliver(made, out)
        return out

    return {"cummax.out": extreme("cummax", 1), "cummin.out": extreme("cummin", -1), "logcumsumexp.out": logcumsumexp}
