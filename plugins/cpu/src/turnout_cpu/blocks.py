"""Element-wise kernels that take several steps, on large arrays: shared among threads, and cut into blocks that fit a cache.

A kernel of ten steps goes over memory ten times, which is where its time goes. On a block, the arrays that it makes in between
stay in the cache of one core, and only its arguments and its result pass through memory (silu of 4 million floats: 5 ms of 21).
The kernel itself does not change: it is called once for each block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Row, Sizes
from turnout_cpu.pool import LARGE, Pool

# Elements of a block: 128 KB of float32, so that five such arrays fit in the second-level cache.
BLOCK = 1 << 15
# Up to this many elements, the calls would cost more than the cache saves.
SMALL = 4 * BLOCK


def several_steps(row: Any) -> bool:
    """Whether a row is an element-wise kernel of more than one ufunc."""
    return isinstance(row, Row) and row.pointwise and row.sizes.simple is None and hasattr(row.fn, "__code__")


def blocked(pool: Pool, row: Row) -> Row:
    """The row, called block by block where its arrays are large, of one shape, and contiguous."""
    whole = row.fn
    count = whole.__code__.co_argcount

    def kernel(*args: Any) -> Any:
        # The output is the last argument and has the most elements. Without one, look for an array with dims.
        last = args[-1]
        if last.__class__ is np.ndarray and last.size <= SMALL and len(args) == count:
            return whole(*args)
        for first in args:  # no generator: its frames would take 300 ns
            if getattr(first, "shape", ()):
                break
        else:
            return whole(*args)
        if first.size <= SMALL:
            return whole(*args)
        shape, arrays = first.shape, []
        for at, value in enumerate(args):
            if getattr(value, "shape", ()):
                if value.shape != shape or not value.flags.c_contiguous:
                    return whole(*args)
                arrays.append(at)
        out = None
        if len(args) < count or args[-1] is None:
            given = args[: count - 1]
            if not row.allocates or len(given) < count - 1:
                return whole(*args)
            probe = whole(*[a.reshape(-1)[:1] if at in arrays else a for at, a in enumerate(given)])
            out = np.empty(shape, probe.dtype)
            args = (*given, out)
            arrays.append(count - 1)
        flat = [a.reshape(-1) if at in arrays else a for at, a in enumerate(args)]
        size = first.size
        threads = pool.count() if size > LARGE else 1
        share = -(-size // threads)

        def work(start: int) -> None:
            stop = min(start + share, size)
            for at in range(start, stop, BLOCK):
                part = slice(at, min(at + BLOCK, stop))
                whole(*[a[part] if i in arrays else a for i, a in enumerate(flat)])

        pool.share(work, range(0, size, share))
        return out if out is not None else args[-1]

    return row.but(fn=kernel, sizes=Sizes(SMALL, fn=whole, simple=whole if row.allocates else None))


def kernels(pool: Pool, shared: dict[str, Any]) -> dict[str, Any]:
    """The rows of the shared library that take several steps, by operator."""
    return {name: blocked(pool, row) for name, row in shared.items() if several_steps(row)}
