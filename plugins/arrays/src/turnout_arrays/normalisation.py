"""Normalisation of rows in blocks that are small enough to stay in the cache for all passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout_arrays.numbers import store, widen
from turnout_aten.kernels.rows import Row

Table = dict[str, Any]

# Elements of a block: 1 MB of float32. A quarter of that needs more calls and is slower: 5.6 ms, not 5.0, for 4096 x 1024.
BLOCK = 1 << 18
# Up to this many elements, what counts is the number of calls: 9 us, not 14, for 4 x 4.
_FEW = 1 << 12
# Up to this length, a loop over the elements of a channel costs more than an array of its factor.
_SHORT = 32

# Applies scale and shift to a block of centred rows [rows, length]: (block, factors [rows, 1], number of the first row).
Finish = Callable[[Any, Any, int], None]


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""

    def normalised(rows: Any, eps: float, finish: Finish, made: Any, mean: Any, rstd: Any) -> None:
        """Normalise rows to mean 0 and variance 1, with scale and shift, and write the result into `made`."""
        length = rows.shape[1]
        if rows.size <= _FEW:
            middle = xp.add.reduce(rows, 1, keepdims=True)
            middle /= length
            xp.subtract(rows, middle, made)
            factor = xp.add.reduce(made * made, 1, keepdims=True)
            factor /= length
            factor += eps
            xp.true_divide(1, xp.sqrt(factor, factor), factor)
            finish(made, factor, 0)
            mean[...], rstd[...] = middle[:, 0], factor[:, 0]
            return
        step = max(1, BLOCK // length)
        ones = xp.full((length, 1), 1 / length, rows.dtype)
        for first in range(0, rows.shape[0], step):
            part = slice(first, first + step)
            x, y = rows[part], made[part]
            # Sums as products: a third of the time of add.reduce, and no array of squares.
            middle = xp.matmul(x, ones)
            xp.subtract(x, middle, y)
            factor = 1 / xp.sqrt(xp.matmul(y[:, None, :], y[:, :, None])[:, 0] / length + eps)
            finish(y, factor, first)
            mean[part], rstd[part] = middle[:, 0], factor[:, 0]

    def run(rows: Any, eps: float, finish: Finish, out: Any, mean: Any, rstd: Any) -> None:
        direct = out.dtype == rows.dtype and out.flags.c_contiguous
        made = out.reshape(rows.shape) if direct else xp.empty(rows.shape, rows.dtype)
        middle, factor = (xp.empty(rows.shape[0], rows.dtype) for _ in range(2))
        if rows.size:
            normalised(rows, rows.dtype.type(eps), finish, made, middle, factor)
        elif rows.shape[0]:
            middle.fill(0 if rows.shape[1] else xp.nan)
            factor.fill(xp.nan)
        if not direct:
            store(xp, out, made.reshape(out.shape))
        store(xp, mean, middle.reshape(mean.shape))
        store(xp, rstd, factor.reshape(rstd.shape))

    def layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float, out: Any, mean: Any, rstd: Any) -> None:
        length = 1
        for n in normalized_shape:
            length *= n
        rows = widen(xp, input).reshape(mean.size, length)
        scale, shift = (None if p is None else widen(xp, p).reshape(1, -1) for p in (weight, bias))

        def finish(y: Any, factor: Any, first: int) -> None:
            y *= factor
            if scale is not None:
                y *= scale
            if shift is not None:
                y += shift

        run(rows, eps, finish, out, mean, rstd)

    def group_norm(
        input: Any, weight: Any, bias: Any, n: int, c: int, area: int, group: int, eps: float, out: Any, mean: Any,
        rstd: Any,
    ) -> None:  # fmt: skip
        rows = widen(xp, input).reshape(n * group, c // group * area)

        # One row per group.
        scale, shift = (None if p is None else widen(xp, p).reshape(group, -1) for p in (weight, bias))

        def finish(y: Any, factor: Any, first: int) -> None:
            which = xp.arange(first, first + y.shape[0]) % group
            each = y.reshape(*y.shape[:1], c // group, area)
            each *= per_channel(factor if scale is None else factor * scale[which])
            if shift is not None:
                each += per_channel(shift[which])

        def per_channel(values: Any) -> Any:
            """[rows, channels, 1], or repeated where array modules would handle a few elements at a time."""
            values = values[:, :, None]
            return values if area > _SHORT or values.shape[1] == 1 else xp.repeat(values, area, 2)

        run(rows, eps, finish, out, mean, rstd)

    return {"native_layer_norm.out": Row(layer_norm, quiet=True), "native_group_norm.out": Row(group_norm, quiet=True)}
