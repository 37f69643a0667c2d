"""Kernels that work along dims, on large arrays: cut across the other dims, among threads and into blocks that fit a cache.

A kernel is cut along the outermost dim that it leaves apart, and its outputs with it. Where that is dim 0, each thread goes
through its share block by block: what the kernel makes in between stays in the cache (softmax: 3.1 ms of 9 for 4 million floats
on one thread). Reductions of everything are cut into runs of memory, whose results are reduced again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from turnout.dtypes import DType
from turnout_arrays.numbers import NO_OUTPUT
from turnout_arrays.reductions import axes
from turnout_arrays.sorting import prepared_sort
from turnout_aten.kernels.rows import Row, Sizes
from turnout_cpu.pool import LARGE, Pool
from turnout_cpu.sorting import sort, unique

# Elements of a block: half a megabyte of float32, so that what a kernel makes of it stays in the cache of one core. A quarter
# takes normalisation a sixth longer, because of the calls.
BLOCK = 1 << 17
# Elements of one dot product.
RUN = 1 << 15


def cut(pool: Pool, row: Row, *, dim: int = 0, keepdim: int | None = 1, outputs: int = 1) -> Row:
    """A row `kernel(self, ..., outputs)` that is cut along dims which it does not reduce.

    Other arguments of the shape of `self` are cut with it.
    `dim` and `keepdim` are the places of those arguments after `self`; a dim is an int, several, or None or none for all.
    keepdim=None: the outputs have all dims anyway. A single output is made here where it has the dtype of `self`.
    """
    whole = row.fn
    makes = bool(row.allocates) and outputs == 1
    required = whole.__code__.co_argcount - 2

    def kernel(self: Any, *args: Any) -> Any:
        if self.size <= LARGE:
            return whole(self, *args)
        count = required if makes else len(args) - outputs
        given, outs = args[:count], args[count:]
        axis = axes(self, given[dim])
        reduced = range(self.ndim) if axis is None else {a % self.ndim for a in np.atleast_1d(axis).tolist()}
        kept = True if keepdim is None else bool(given[keepdim])
        at = next((i for i in range(self.ndim) if i not in reduced and self.shape[i] > 1), None)
        # Kernels that keep all dims go over the elements several times: columns would be read from memory each time.
        if at is None or (at and keepdim is None):
            return whole(self, *args)
        if not outs or outs[0] is None:
            if any(isinstance(a, DType) for a in given):
                raise NotImplementedError(NO_OUTPUT)
            if self.dtype.kind not in "fc":
                return whole(self, *given)
            shape = [
                1 if i in reduced and keepdim is not None else n for i, n in enumerate(self.shape) if kept or i not in reduced
            ]
            outs = (np.empty(shape, self.dtype),)
        place = at if kept else at - sum(d < at for d in reduced)

        def piece(start: int, stop: int) -> None:
            left = (slice(None),) * at + (slice(start, stop),)
            right = (slice(None),) * place + (slice(start, stop),)
            parts = [a[left] if getattr(a, "shape", ()) == self.shape else a for a in given]
            whole(self[left], *parts, *[out[right] for out in outs])

        spread(pool, self, at, piece)
        return outs[0] if outputs == 1 else None

    return row.but(fn=kernel, sizes=Sizes(LARGE, fn=whole, simple=whole if makes else None))


def spread(pool: Pool, array: Any, at: int, piece: Callable[[int, int], None]) -> None:
    """Call `piece(start, stop)` for all of dim `at`, on the pool's threads."""
    length = array.shape[at]
    threads = min(pool.count(), length)
    share = -(-length // threads)
    block = share if at else max(1, BLOCK * length // array.size)

    def work(first: int) -> None:
        last = min(first + share, length)
        for start in range(first, last, block):
            piece(start, min(start + block, last))

    pool.share(work, range(0, length, share))


def sum_rows(row: Row) -> Row:
    """The sum over the last dim of contiguous floats by einsum, which adds in vectors (1.9 ms of 3.6 for 65536 rows of 256).

    It does not add pairwise, so rows are short enough for that not to matter.
    """
    whole = row.fn

    def sum_dims(self: Any, dim: Any, keepdim: bool = False, dtype: Any = None, out: Any = None) -> Any:
        if out is not None and self.size > BLOCK // 4 and self.dtype == out.dtype and self.dtype.char in "fd":
            axis = axes(self, dim)
            last = axis is not None and np.atleast_1d(axis).tolist() in ([-1], [self.ndim - 1])
            if last and 8 <= self.shape[-1] <= 4096 and self.flags.c_contiguous and out.flags.c_contiguous:
                np.einsum("ij->i", self.reshape(-1, self.shape[-1]), out=out.reshape(-1))
                return out
        return whole(self, dim, keepdim, dtype, out)

    return row.but(fn=sum_dims)


def two_norm(row: Row) -> Row:
    """The root of the sum of all squares by dot products of runs of memory, which are added up in float64.

    A dot product adds in 32 or more separate sums, so that a run is short enough not to lose digits.
    """
    whole = row.fn

    def vector_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
        if ord == 2 and out.size == 1 and self.size > BLOCK and self.dtype.char in "fd" and self.flags.c_contiguous:
            flat = self.reshape(-1)
            runs = (flat[start : start + RUN] for start in range(0, flat.size, RUN))
            out.fill(np.sqrt(np.add.reduce([float(np.dot(run, run)) for run in runs])))
            return out
        return whole(self, ord, dim, keepdim, dtype, out)

    return row.but(fn=vector_norm)


def everything(pool: Pool, row: Row, ufunc: Any) -> Row:
    """A row `kernel(self, ..., out)` that reduces all elements by a ufunc."""
    whole = row.fn

    def kernel(self: Any, *args: Any) -> Any:
        threads = pool.count() if self.size > LARGE and self.flags.c_contiguous and self.dtype.kind in "fc" else 1
        converts = any(isinstance(a, DType) or getattr(a, "dtype", self.dtype) != self.dtype for a in args)
        if threads < 2 or self.dtype.itemsize < 4 or converts:
            return whole(self, *args)
        flat = self.reshape(-1)
        parts = np.empty(threads, self.dtype)
        share = -(-flat.size // threads)
        tasks = [partial(_reduce, ufunc, flat[i * share : (i + 1) * share], parts[i : i + 1]) for i in range(threads)]
        return whole(parts, *args) if pool.run(tasks) else whole(self, *args)

    return row.but(fn=kernel, sizes=Sizes(LARGE, simple=whole))


def _reduce(ufunc: Any, part: Any, out: Any) -> None:
    ufunc.reduce(part, 0, None, out, True)


def kernels(pool: Pool, shared: dict[str, Any]) -> dict[str, Any]:
    """The rows of the shared library that are cut, by operator."""
    sorted_row = Row(sort, quiet=True, prepares=prepared_sort(np))
    # fmt: off
    ufuncs = {"sum.out": np.add, "prod.out": np.multiply, "max.unary_out": np.maximum, "min.unary_out": np.minimum}
    over_dims = (
        "mean.out", "prod.int_out", "amax.out", "amin.out", "argmax.out", "argmin.out", "any.out", "all.out",
    )
    keeping = (
        "_softmax.out", "_log_softmax.out", "cumsum.out", "cumprod.out", "logcumsumexp.out",
    )
    return {
        **{name: everything(pool, shared[name], ufunc) for name, ufunc in ufuncs.items()},
        **{name: cut(pool, shared[name]) for name in over_dims},
        "sum.IntList_out": cut(pool, sum_rows(shared["sum.IntList_out"])),
        **{name: cut(pool, shared[name], keepdim=None) for name in keeping},
        "var.correction_out":    cut(pool, shared["var.correction_out"], keepdim=2),
        "std.correction_out":    cut(pool, shared["std.correction_out"], keepdim=2),
        "linalg_vector_norm.out": cut(pool, two_norm(shared["linalg_vector_norm.out"]), dim=1, keepdim=2),
        "max.dim_max":           cut(pool, shared["max.dim_max"], outputs=2),
        "min.dim_min":           cut(pool, shared["min.dim_min"], outputs=2),
        "_softmax_backward_data.out":     cut(pool, shared["_softmax_backward_data.out"], dim=1, keepdim=None),
        "_log_softmax_backward_data.out": cut(pool, shared["_log_softmax_backward_data.out"], dim=1, keepdim=None),
        "cummax.out":            cut(pool, shared["cummax.out"], keepdim=None, outputs=2),
        "cummin.out":            cut(pool, shared["cummin.out"], keepdim=None, outputs=2),
        "median.dim_values":     cut(pool, shared["median.dim_values"], outputs=2),
        "nanmedian.dim_values":  cut(pool, shared["nanmedian.dim_values"], outputs=2),
        "mode.values":           cut(pool, shared["mode.values"], outputs=2),
        "kthvalue.values":       cut(pool, shared["kthvalue.values"], dim=1, keepdim=2, outputs=2),
        "topk.values":           cut(pool, shared["topk.values"], dim=1, keepdim=None, outputs=2),
        "_unique2":              unique(shared["_unique2"]),
        "sort.values_stable":    cut(pool, sorted_row, dim=1, keepdim=None, outputs=2),
    }
    # fmt: on
