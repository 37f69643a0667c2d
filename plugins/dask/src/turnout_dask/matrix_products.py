"""Matrix products: chunks are multiplied, and the products summed over the chunks of the inner dim."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from turnout_arrays.numbers import computed_dtype
from turnout_aten.backend.functional_rows import Wanted
from turnout_dask.blocks import new_name, task_of
from turnout_dask.reductions import cast, combined

# Row -> the labels of its operands and of the product; the label that is only in the operands is summed over.
# fmt: off
PRODUCTS = {
    "mm.out":  ("ik", "kj", "ij"),
    "bmm.out": ("bik", "bkj", "bij"),
    "mv.out":  ("ik", "k", "i"),
    "dot.out": ("k", "k", ""),
}
ADDED = {"addmm.out": "mm.out", "addmv.out": "mv.out", "baddbmm.out": "bmm.out"}
# fmt: on


def product(name: str, args: Sequence[Any], native: Any) -> Any:
    """The product of two arrays, in the dtype that is given."""
    first, second, out = PRODUCTS[name]
    wide = computed_dtype(np, native)
    inner = args[0].chunks[first.index("k")]
    single = len(inner) == 1 and len(args[1].chunks[second.index("k")]) == 1
    kept = out if single else out + "k"  # a chunk of the inner dim gives a product, and these are added
    made: Any = da.blockwise(
        partial(_multiplied, name, wide, single), kept, args[0], first, args[1], second, name=new_name(name), dtype=wide,
        adjust_chunks=None if single else {"k": 1}, meta=np.empty((0,) * len(kept), wide), concatenate=True,
    )  # fmt: skip
    if not single:
        made = combined(made, (len(out),), "sum", wide)
    return made if wide == native else made.map_blocks(cast, native, dtype=native, meta=np.empty((0,) * len(out), native))


def matrix_product(name: str, args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """`mm` and the like, and those that add to a product."""
    if name not in ADDED:
        return product(name, args, native[0])
    self, first, second, beta, alpha = args
    (kind,) = native
    wide = computed_dtype(np, kind)
    made = product(ADDED[name], (first, second), wide)
    if beta == 0:
        return made.map_blocks(_scaled, alpha, kind, dtype=kind, meta=np.empty((0,) * made.ndim, kind))
    dims = tuple(range(made.ndim))
    return da.blockwise(
        partial(_sum, alpha, beta, kind), dims, made, dims, self, dims[made.ndim - self.ndim :], name=new_name(name), dtype=kind,
        meta=np.empty((0,) * made.ndim, kind),
    )  # fmt: skip


def _multiplied(name: str, native: Any, single: bool, a: Any, b: Any) -> Any:
    """The product of two blocks; with the inner dim as a last dim of length 1, unless they have all of it."""
    with task_of(name, a, b):
        a, b = a.astype(native, copy=False), b.astype(native, copy=False)
        made = np.asarray(np.matmul(a, b), native)
        return made if single else made[..., None]


def _scaled(block: Any, alpha: Any, native: Any) -> Any:
    with np.errstate(all="ignore"):
        return (block * block.dtype.type(alpha)).astype(native)


def _sum(alpha: Any, beta: Any, native: Any, block: Any, added: Any) -> Any:
    with np.errstate(all="ignore"):
        kind = block.dtype.type
        return (block * kind(alpha) + added.astype(block.dtype) * kind(beta)).astype(native)
