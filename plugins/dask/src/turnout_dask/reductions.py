"""Reductions: the row reduces each chunk, and again what the chunks gave."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from turnout_arrays.numbers import computed_dtype
from turnout_aten.backend.functional_rows import Wanted
from turnout_aten.shapes.extents import NO_DIMS, degrees_of_freedom, dims_of
from turnout_dask.blocks import rows, task_of

# Row -> where its arguments `dim` and `keepdim` are; None for rows that reduce all dims.
# fmt: off
REDUCTIONS: dict[str, tuple[int, int] | None] = {
    "sum.out":         None,
    "sum.IntList_out": (1, 2),
    "prod.out":        None,
    "prod.int_out":    (1, 2),
    "amax.out":        (1, 2),
    "amin.out":        (1, 2),
    "max.unary_out":   None,
    "min.unary_out":   None,
    "any.all_out":     None,
    "any.out":         (1, 2),
    "any.dims_out":    (1, 2),
    "all.all_out":     None,
    "all.out":         (1, 2),
    "all.dims_out":    (1, 2),
}
# fmt: on

# What reduces a chunk to one of length 1 in each reduced dim, with the row's dtype and accuracy.
_PARTS = {
    "sum": "sum.IntList_out", "prod": "prod.int_out", "amax": "amax.out", "amin": "amin.out", "max": "amax.out",
    "min": "amin.out", "any": "any.dims_out", "all": "all.dims_out",
}  # fmt: skip


def reduced(name: str, args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """The value of a reduction."""
    x, (want,), (kind,) = args[0], wanted, native
    places = REDUCTIONS[name]
    dims = tuple(range(x.ndim)) if places is None else dims_of(x.ndim, args[places[0]])
    if name in ("any.dims_out", "all.dims_out") and args[1] in NO_DIMS:
        dims = ()
    if not x.ndim or not dims:
        return x.map_blocks(_same, name, kind, dtype=kind, meta=np.empty((0,) * x.ndim, kind)).reshape(want.shape)
    return combined(x, dims, name.partition(".")[0], kind, keepdims=len(want.shape) == x.ndim)


def combined(x: Any, dims: tuple[int, ...], kind: str, native: Any, *, keepdims: bool = False) -> Any:
    """A reduction over dims as a tree over the chunks.

    Numbers of two bytes are summed in four, and rounded once at the end.
    """
    wide = computed_dtype(np, native) if kind in ("sum", "prod") else native
    part = partial(_part, _PARTS[kind], wide)
    made: Any = da.reduction(
        x, part, part, axis=dims, keepdims=keepdims, dtype=wide, concatenate=True, name=kind,
        meta=np.empty((0,) * (x.ndim if keepdims else x.ndim - len(dims)), wide),
    )  # fmt: skip
    return made if wide == native else made.map_blocks(cast, native, dtype=native, meta=np.empty((0,) * made.ndim, native))


def mean(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """The mean: the sum over the count."""
    x, (want,), (kind,) = args[0], wanted, native
    dims = dims_of(x.ndim, args[1] if len(args) > 2 else None)
    wide = computed_dtype(np, kind)
    count = int(np.prod([x.shape[d] for d in dims], dtype=object)) if x.ndim else 1
    x = x if x.dtype == wide else x.map_blocks(cast, wide, dtype=wide, meta=np.empty((0,) * x.ndim, wide))
    total = combined(x, dims, "sum", wide, keepdims=len(want.shape) == x.ndim) if x.ndim else x
    return scaled(total, count, kind)


def scaled(x: Any, count: int, native: Any) -> Any:
    """An array divided by a count."""
    return x.map_blocks(_over, count, native, dtype=native, meta=np.empty((0,) * x.ndim, native))


def aminmax(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """The smallest and the largest elements."""
    x = args[0]
    dims = dims_of(x.ndim, args[1])
    if not x.ndim:
        return x, x
    return tuple(
        combined(x, dims, kind, x.dtype, keepdims=len(want.shape) == x.ndim)
        for kind, want in zip(("amin", "amax"), wanted, strict=True)
    )


def vector_norm(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """(sum of |x| ** ord) ** (1 / ord), and its limits: extremes for inf and -inf, the number of nonzero elements for 0."""
    x, ord, dim, _, _ = args
    (want,), (kind,) = wanted, native
    wide = computed_dtype(np, kind)
    sizes: Any = x.map_blocks(_powers, ord, wide, dtype=wide, meta=np.empty((0,) * x.ndim, wide))
    if x.ndim:
        how = "amax" if ord == float("inf") else "amin" if ord == float("-inf") else "sum"
        sizes = combined(sizes, dims_of(x.ndim, dim), how, wide, keepdims=len(want.shape) == x.ndim)
    return sizes.map_blocks(_roots, ord, kind, dtype=kind, meta=np.empty((0,) * sizes.ndim, kind))


def extreme_place(function: Any, args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """The position of the largest or smallest of all elements: that of each chunk, and then the one of these."""
    return function(args[0].reshape(-1), axis=0).astype(native[0]).reshape(wanted[0].shape)


def variance(args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any], *, root: bool) -> Any:
    """The variance, or its root, in one pass over the chunks: each gives its sum, its squared distances and its count.

    Two passes would keep all chunks in memory until the mean is known. How counts and distances of parts are put together: Chan,
    Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979).
    """
    x, dim, correction, _ = args
    (want,), (kind,) = wanted, native
    dims = dims_of(x.ndim, dim)
    wide = np.dtype("complex128" if x.dtype.kind == "c" else "float64")
    pieces = tuple([(1,) * len(lengths) if d in dims else lengths for d, lengths in enumerate(x.chunks)])
    parts = x.map_blocks(
        _moments, dims, wide, dtype=wide, chunks=(*pieces, (3,)), new_axis=x.ndim, meta=np.empty((0,) * (x.ndim + 1), wide)
    ).rechunk(dict.fromkeys(dims, -1))
    single = tuple([(1,) if d in dims else lengths for d, lengths in enumerate(x.chunks)])
    made = parts.map_blocks(
        _spread, dims, correction, root, kind, dtype=kind, chunks=single, drop_axis=x.ndim, meta=np.empty((0,) * x.ndim, kind)
    )
    return made.reshape(want.shape)


def _part(row: str, native: Any, block: Any, axis: Any, keepdims: bool, **options: Any) -> Any:
    dims = [axis] if isinstance(axis, int) else list(axis)
    left = tuple([n for d, n in enumerate(block.shape) if keepdims or d not in dims])
    shape = tuple([1 if d in dims else n for d, n in enumerate(block.shape)])
    with task_of(row, block):
        if row == "prod.int_out":  # of one dim at a time
            for dim in dims:
                shape = tuple([1 if d == dim else n for d, n in enumerate(block.shape)])
                out = np.empty(shape, native)
                rows()[row].fn(block, dim, True, None, out)
                block = out
        else:
            out = np.empty(shape, native)
            given = (block, dims, True, None) if row == "sum.IntList_out" else (block, dims, True)
            rows()[row].fn(*given, out)
    return out if keepdims else out.reshape(left)


def _same(block: Any, name: str, native: Any) -> Any:
    """A reduction over nothing."""
    with np.errstate(all="ignore"):
        return (block != 0) if native.kind == "b" else block.astype(native)


def cast(block: Any, native: Any) -> Any:
    """A block in another dtype."""
    with np.errstate(all="ignore"):
        return block.astype(native)


def _over(block: Any, count: Any, native: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.true_divide(block, count).astype(native)


def _powers(block: Any, ord: float, native: Any) -> Any:
    with np.errstate(all="ignore"):
        if ord == 0:
            return (block != 0).astype(native)
        inner = np.result_type(np.complex64, native) if block.dtype.kind == "c" else native
        size = np.abs(block.astype(inner)).astype(native)
        return size if ord in (1, float("inf"), float("-inf")) else np.power(size, native.type(ord))


def _roots(block: Any, ord: float, native: Any) -> Any:
    with np.errstate(all="ignore"):
        if ord in (0, 1, float("inf"), float("-inf")):
            return block.astype(native)
        return (np.sqrt(block) if ord == 2 else np.power(block, block.dtype.type(1 / ord))).astype(native)


def _moments(block: Any, dims: tuple[int, ...], wide: Any) -> Any:
    """A chunk's sum, squared distances from its mean, and count, in a last dim."""
    with np.errstate(all="ignore"):
        x = block.astype(wide)
        count = int(np.prod([x.shape[d] for d in dims], dtype=object))
        total = x.sum(dims, keepdims=True) if dims else x
        distance = x - total / count
        squares = (distance * np.conj(distance)).real
        squares = squares.sum(dims, keepdims=True) if dims else squares
        return np.stack([total, squares.astype(wide), np.full(total.shape, count, wide)], -1)


def _spread(parts: Any, dims: tuple[int, ...], correction: Any, root: bool, native: Any) -> Any:
    """The variance from what the chunks gave."""
    with np.errstate(all="ignore"):
        totals, squares, counts = parts[..., 0], parts[..., 1].real, parts[..., 2].real
        count = counts.sum(dims, keepdims=True) if dims else counts
        distance = totals / counts - (totals.sum(dims, keepdims=True) if dims else totals) / count
        each = squares + counts * (distance * np.conj(distance)).real
        made = (each.sum(dims, keepdims=True) if dims else each) / np.maximum(degrees_of_freedom(count, correction), 0)
        return (np.sqrt(made) if root else made).astype(native)
