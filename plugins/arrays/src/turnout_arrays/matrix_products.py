"""Matrix products. Two-byte floats are multiplied in float32, because array modules have no fast product for them.

Bool and integer matrices are multiplied by the array module's loops.
"""

from __future__ import annotations

from typing import Any

from turnout_arrays.numbers import TWO_BYTES, number_as, store, widen
from turnout_aten.kernels.rows import SAME, Accepts, Row, Steps
from turnout_aten.shapes.extents import expands_to

Table = dict[str, Any]
_SMALL = 2000  # elements of a second matrix for which no product is wide


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""

    def matmul(self: Any, other: Any, out: Any = None) -> Any:
        if out is None and self.dtype.char in "fd" and self.ndim == other.ndim == 2 and self.flags.forc and other.flags.forc:
            return self.dot(other)  # the same product of BLAS, bit by bit, in 300 ns instead of 800
        if self.dtype.char in TWO_BYTES:
            return store(xp, out, xp.matmul(self.astype(xp.float32), other.astype(xp.float32)), self.dtype)
        return xp.matmul(self, other, out)

    def batched(self: Any, other: Any, out: Any = None) -> Any:
        if out is None and len(self) != len(other):
            raise ValueError("both batches must have the same length: a batch of one does not broadcast")
        return matmul(self, other, out)

    def dot(self: Any, tensor: Any, out: Any = None) -> Any:
        if out is None and self.dtype.char in "fd" and self.ndim == tensor.ndim == 1:
            return self.dot(tensor, xp.empty((), self.dtype))  # likewise
        return matmul(self, tensor, out)

    def vdot(self: Any, other: Any, out: Any = None) -> Any:
        return matmul(self.conj() if self.dtype.kind == "c" else self, other, out)

    def wide_by_rows(first: Any, second: Any) -> bool:
        """Whether OpenBLAS computes x W^T, for W with many rows, faster as (W x^T)^T: 0.55 to 0.85 of the time, with bias.

        The result then has the other memory order, so this is for products that are read once more anyway.
        """
        return bool(
            len(first.shape) == 2
            and first.shape[0] * 4 <= second.shape[-1]
            and first.size * second.shape[-1] > 1_000_000
            and first.shape[0] > 1
            and second.flags.f_contiguous
        )

    def added(name: str, *ranks: int) -> Row:
        """A product of matrices of these ranks added to `self`; the kernel is named after its operator."""
        product = batched if ranks == (3, 3) else matmul

        def kernel(self: Any, first: Any, second: Any, beta: Any, alpha: Any, out: Any = None) -> Any:
            if second.size > _SMALL and alpha == beta == 1 and wide_by_rows(first, second):
                value = matmul(second.T, first.T).T
                return xp.add(value, self, xp.empty(value.shape, value.dtype) if out is None else out)
            dtype = self.dtype
            if dtype.char in TWO_BYTES:
                self, first, second = widen(xp, self), widen(xp, first), widen(xp, second)
            value = product(first, second)
            shape = value.shape
            if alpha != 1:
                value = xp.multiply(value, number_as(xp, alpha, value.dtype))
            if beta != 0:  # else `self` is ignored, even NaN
                value = value + (self if beta == 1 else xp.multiply(self, number_as(xp, beta, self.dtype)))
            if value.shape != shape or (beta == 0 and out is None and not expands_to(self.shape, shape)):
                raise ValueError("self does not expand to the product")
            return value if out is None and value.dtype is dtype else store(xp, out, value, dtype)

        factors = {"addmm": ("mat1", "mat2"), "baddbmm": ("batch1", "batch2")}.get(name)
        program = Steps(((xp.matmul, *factors), (xp.add, 0, "self"))) if factors else None
        return Row(kernel, SAME, accepts=Accepts(ranks=(None, *ranks)), program=program)

    def cross(self: Any, other: Any, dim: int, out: Any = None) -> Any:
        x, y = [xp.moveaxis(a, dim, 0) for a in xp.broadcast_arrays(widen(xp, self), widen(xp, other))]
        parts = [x[(i + 1) % 3] * y[(i + 2) % 3] - x[(i + 2) % 3] * y[(i + 1) % 3] for i in range(3)]
        return store(xp, out, xp.stack(parts, dim % x.ndim), self.dtype)

    # fmt: off
    return {
        "mm.out":    Row(matmul, SAME, accepts=Accepts(ranks=(2, 2)), program=Steps(((xp.matmul, "self", "mat2"),))),
        "bmm.out":   Row(batched, SAME, accepts=Accepts(ranks=(3, 3)), program=Steps(((xp.matmul, "self", "mat2"),))),
        "mv.out":    Row(matmul, SAME, accepts=Accepts(ranks=(2, 1))),
        "dot.out":   Row(dot, SAME, accepts=Accepts(ranks=(1, 1))),
        "vdot.out":         Row(vdot, SAME, accepts=Accepts(ranks=(1, 1))),
        "addmm.out":        added("addmm", 2, 2),
        "addmv.out":        added("addmv", 2, 1),
        "baddbmm.out":      added("baddbmm", 3, 3),
        "linalg_cross.out": Row(cross),
    }
    # fmt: on
