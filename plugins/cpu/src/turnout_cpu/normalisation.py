"""The gradient of layer normalisation, some rows at a time.

Composed of operators, it goes over memory once for each of a dozen steps. Here the two arrays that are made in between hold
some rows and stay in the cache: 9 ms for 4096 x 1024, not 16 to 25.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from turnout_arrays.numbers import TWO_BYTES, computed_dtype, widen
from turnout_aten.kernels.rows import Row, Sizes
from turnout_cpu.halves import to_float16
from turnout_cpu.pool import LARGE, Pool
from turnout_cpu.rows import BLOCK

# Up to this many elements, the composed gradient takes less time; so it does for rows shorter than these.
FEW, SHORT = 1 << 15, 32
# The most runs of blocks that have sums of their own. How many there are depends on the size alone, and so do the results.
_RUNS = 16
# Rows that are added up one after the other. Sums of more of them are put together in float64, so that they lose no digits.
_TOGETHER = 64


def kernels(pool: Pool) -> dict[str, Any]:
    """Operator -> kernel, over composed ones."""

    def native_layer_norm_backward(
        grad_out: Any, input: Any, normalized_shape: Sequence[int], mean: Any, rstd: Any, weight: Any, bias: Any,
        output_mask: Sequence[bool],
    ) -> Any:  # fmt: skip
        shape, length, count = input.shape, prod(normalized_shape), mean.size
        if not input.size or grad_out.shape != shape or rstd.size != count or count * length != input.size:
            return NotImplemented
        given = [grad_out, input, mean, rstd, *[p for p in (weight, bias) if p is not None]]
        computed = computed_dtype(np, input.dtype)
        if computed.char not in "fd" or any(a.dtype.char not in TWO_BYTES and a.dtype != computed for a in given):
            return NotImplemented
        if length < SHORT or any(p.size != length for p in given[4:]):
            return NotImplemented
        wants = bool(output_mask[0]), bool(output_mask[1]) and weight is not None, bool(output_mask[2]) and bias is not None
        x, grad = input.reshape(count, length), grad_out.reshape(count, length)
        middle, factor = (widen(np, a).reshape(count, 1) for a in (mean, rstd))
        scale = None if weight is None else np.ascontiguousarray(widen(np, weight).reshape(length))
        made = np.empty(x.shape, x.dtype) if wants[0] else None
        step = max(1, BLOCK // length)
        run = max(step * -(-count // (step * _RUNS)), _TOGETHER)
        starts = range(0, count, run)
        sums = np.zeros((2, len(starts), length))

        def work(start: int) -> None:
            stop = min(start + run, count)
            room = np.empty((2, min(step, stop - start), length), computed)
            own = sums[:, start // run]
            for first in range(start, stop, step):
                part = slice(first, min(first + step, stop))
                out = None if made is None else made[part]
                _block(grad[part], x[part], middle[part], factor[part], scale, out, own, wants[1], wants[2], room)

        threads = min(pool.count(), len(starts)) if input.size > LARGE else 1

        def share(number: int) -> None:
            for start in starts[number::threads]:
                work(start)

        if threads < 2 or not pool.run([partial(share, number) for number in range(threads)]):
            sums.fill(0)
            for start in starts:
                work(start)
        found = [None if made is None else made.reshape(shape), None, None]
        for at, parameter in ((1, weight), (2, bias)):
            if wants[at]:
                found[at] = np.add.reduce(sums[at - 1], 0).reshape(parameter.shape).astype(parameter.dtype, copy=False)
        return tuple(found)

    return {"native_layer_norm_backward": Row(native_layer_norm_backward, sizes=Sizes(FEW))}


def _block(
    grad: Any, x: Any, middle: Any, factor: Any, scale: Any, out: Any, sums: Any, scaled: bool, shifted: bool, room: Any
) -> None:
    """The gradient of some rows into `out`, and what they add to the sums of weight and bias."""
    grad, (centred, along) = np.ascontiguousarray(widen(np, grad)), room[:, : x.shape[0]]
    if out is not None and out.dtype == centred.dtype:
        centred = out
    if shifted:
        _add_columns(sums[1], grad, None)
    if out is None and not scaled:
        return
    np.subtract(widen(np, x), middle, centred)
    np.multiply(grad, centred, along)
    if scaled:
        _add_columns(sums[0], along, factor)
    if out is None:
        return
    length = x.shape[1]
    slope, level = (_sums(rows, scale) for rows in (along, grad))
    slope *= factor
    slope *= factor
    slope /= length
    level /= length
    centred *= slope
    centred += level
    np.subtract(grad if scale is None else np.multiply(grad, scale, along), centred, centred)
    if centred is out:
        centred *= factor
    elif out.dtype.char == "e":
        centred *= factor
        to_float16(out.reshape(-1), centred.reshape(-1))
    else:
        np.copyto(out, np.multiply(centred, factor, centred), "unsafe")


def _add_columns(sums: Any, rows: Any, factor: Any) -> None:
    """Add all rows, each times its factor, to `sums`."""
    whole = len(rows) // _TOGETHER * _TOGETHER
    for part, count in ((slice(whole), _TOGETHER), (slice(whole, None), len(rows) - whole)):
        if not count:
            continue
        some = rows[part].reshape(-1, count, rows.shape[1])
        found = np.add.reduce(some, 1) if factor is None else np.einsum("ri,rij->rj", factor[part].reshape(-1, count), some)
        sums += np.add.reduce(found, 0, sums.dtype)


def _sums(rows: Any, scale: Any) -> Any:
    """The sum of each row, times scale, as a column. Dot products of rows use one thread, as products of matrices would not."""
    return (np.add.reduce(rows, 1) if scale is None else np.vecdot(rows, scale))[:, None]
