"""The table of kernels: operator -> function on arrays.

A kernel takes the operator's arguments by position and writes the result into the last one, `out`, which has the right shape and
dtype. It returns nothing. The row `mul.out` serves `x * y`, `x * 2`, `x.mul_(y)` and `turnout.mul(x, y, out=z)`.
"""

from __future__ import annotations

import numpy as np
from turnout_aten.plugin_api import Row

from turnout_loopback.backend import Array


def neg(self: Array, out: Array) -> None:
    """-self"""
    np.negative(self.handle, out=out.handle)


def mul(self: Array, other: Array | float, out: Array) -> None:
    """self * other, broadcast; `other` is a number in `x * 2`."""
    factor = other.handle if isinstance(other, Array) else np.array(other).astype(out.handle.dtype)
    with np.errstate(all="ignore"):
        np.multiply(self.handle, factor, out=out.handle)


# pointwise: `out` may be one of the operands, so in-place calls need no other memory.
KERNELS = {
    "mul.out": Row(mul, pointwise=True),
    "neg.out": Row(neg, pointwise=True),
}
