"""Sums of rows by index, on large arrays: the product of a sparse matrix and the rows.

Row `i` of the matrix has a 1 for each row of the source that is added to row `i` of the target. SciPy's product reads each row
once (4096 rows of 1024: 3 ms), where `add.at` takes 37 ms. The sum of a row's additions is added to it last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from turnout_arrays.indexing import in_range
from turnout_arrays.numbers import number_as, store
from turnout_aten.kernels.rows import Move, Row

# Elements from which the product pays: making the matrix takes 0.1 ms.
LARGE = 1 << 16
# Elements of a row from which it pays: the matrix has an index and a 1 for each row.
WIDE = 8


def pays(target: Any, source: Any) -> bool:
    """Whether `add_rows` is the faster way."""
    if target.dtype.char not in "fd" or target.dtype != source.dtype or not target.flags.c_contiguous:
        return False
    return bool(source.size >= LARGE and target.size >= WIDE * target.shape[0])


def add_rows(target: Any, index: Any, source: Any) -> None:
    """Add `source[i]` to `target[index[i]]` for all i. Raises nothing; indices are in range."""
    from scipy.sparse import csr_array

    rows = target.reshape(target.shape[0], -1)
    order = np.argsort(index, kind="stable")
    named = np.bincount(index, minlength=rows.shape[0])
    places: Any = slice(None)
    if 2 * index.size < rows.shape[0]:  # most rows get nothing
        places = np.flatnonzero(named)
        named = named[places]
    ends = np.concatenate([[0], np.cumsum(named)])
    matrix = csr_array((np.ones(index.size, target.dtype), order, ends), shape=(named.size, index.size))
    rows[places] += matrix @ source.reshape(index.size, -1)


def kernels(shared: dict[str, Any]) -> dict[str, Any]:
    """The rows of the shared library that add rows, by operator."""
    add_at, put = shared["index_add.out"].fn, shared["index_put.out"].fn

    def index_add(self: Any, dim: int, index: Any, source: Any, alpha: Any, out: Any) -> Any:
        if not self.shape or dim % self.ndim or not pays(out, source):
            return add_at(self, dim, index, source, alpha, out)
        in_range(np, "index_add", index, out.shape[0])
        if out is not self:
            store(np, out, self)
        add_rows(out, index.reshape(-1), source if alpha == 1 else source * number_as(np, alpha, source.dtype))
        return out

    def index_put(self: Any, indices: Any, values: Any, accumulate: bool, out: Any) -> Any:
        index: Any = indices[0] if indices else None
        rows = accumulate and index is not None and index.dtype.kind == "i" and all(i is None for i in indices[1:])
        if not rows or values.shape != index.shape + out.shape[1:] or not pays(out, values):
            return put(self, indices, values, accumulate, out)
        length = out.shape[0]
        if int(index.min()) < -length or int(index.max()) >= length:
            return put(self, indices, values, accumulate, out)  # raises
        if out is not self:
            store(np, out, self)
        add_rows(out, (index + length * (index < 0)).reshape(-1), values)
        return out

    return {"index_add.out": Row(index_add), "index_put.out": Row(index_put, program=Move.PUT)}
