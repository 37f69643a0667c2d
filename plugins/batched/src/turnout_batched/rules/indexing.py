"""Rules for operators that take indices in tensors.

Where every example has indices of its own, the batch dim gets an index too: 0, 1, 2, ... beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout.dtypes import bool_, int32, int64
from turnout_aten import operators as aten
from turnout_aten.shapes.extents import numel
from turnout_aten.shapes.indexing import MASK_DTYPES, check_mask
from turnout_aten.shapes.scattering import check_put
from turnout_aten.tensor.tensor import Tensor
from turnout_batched import errors
from turnout_batched.levels import moved
from turnout_batched.rules.alignment import (
    Dims,
    at_least_1d,
    examples,
    family,
    fits,
    front,
    logical_ndim,
    logical_shape,
    padded,
    places,
    wrapped_dim,
)


@family
def beside(call: Any, size: int, dims: Dims, self: Tensor, dim: int, index: Tensor, *rest: Any) -> tuple[Tensor, int]:
    """Scattering: one index for each element. All tensors have the same number of dims; without dims there is one element."""
    x, added = at_least_1d(front(self, dims[0], size))
    i = at_least_1d(front(index, dims[2], size))[0]
    others = [at_least_1d(front(v, d, size))[0] if isinstance(v, Tensor) else v for v, d in zip(rest, dims[3:], strict=True)]
    made = call(x, wrapped_dim(dim, len(x.array.shape) - 1) + 1, i, *others)
    return (aten.squeeze__dim(made, 1) if added else made), 0


def gather(size: int, dims: Dims, self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> tuple[Tensor, int]:
    x, _ = at_least_1d(front(self, dims[0], size))
    i, added = at_least_1d(front(index, dims[2], size))
    made = aten.gather(x, wrapped_dim(dim, len(x.array.shape) - 1) + 1, i, sparse_grad=sparse_grad)
    return (aten.squeeze__dim(made, 1) if added else made), 0


def index_select(size: int, dims: Dims, self: Tensor, dim: int, index: Tensor) -> tuple[Tensor, int]:
    ndim = logical_ndim(self, dims[0])
    d = wrapped_dim(dim, ndim)
    if dims[2] is not None or not ndim:
        fits("index_select.out", dims, (self, dim, index))
    if dims[2] is None:
        x, added = at_least_1d(front(self, dims[0], size))
        made = aten.index_select(x, d + 1, index)
        return (aten.squeeze__dim(made, 1) if added else made), 0
    i = at_least_1d(front(index, dims[2], size))[0]
    x, added = at_least_1d(front(self, dims[0], size))
    made = aten.index__Tensor(moved(x, d + 1, 1), [places(size, x, 2), i])
    return (aten.squeeze__dim(made, 1) if added else moved(made, 1, d + 1)), 0


def index_add(size: int, dims: Dims, self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any) -> tuple[Tensor, int]:
    fits("index_add.out", dims, (self, dim, index, source, alpha))
    x, added = at_least_1d(front(self, dims[0], size))
    s = at_least_1d(front(source, dims[3], size))[0]
    d = wrapped_dim(dim, len(x.array.shape) - 1) + 1
    if dims[2] is None:
        made = aten.index_add(x, d, index, s, alpha=alpha)
    else:
        i = at_least_1d(front(index, dims[2], size))[0]
        s = s if alpha == 1 else aten.mul__Scalar(s, alpha)
        made = aten.index_put(moved(x, d, 1), [places(size, x, 2), i], moved(s, d, 1), True)
        made = moved(made, 1, d)
    return (aten.squeeze__dim(made, 1) if added else made), 0


def searchsorted(
    size: int, dims: Dims, sequence: Tensor, self: Any, out_int32: bool, right: bool, side: Any, sorter: Any
) -> tuple[Tensor, int]:
    """One sequence serves all values of an example, or each row of values has its own sequence."""
    fits("searchsorted.Tensor_out", dims, (sequence, self, out_int32, right, side, sorter))
    options = {"out_int32": out_int32, "right": right, "side": side}
    if dims[0] is None and dims[5] is None and logical_ndim(sequence, None) == 1:
        return aten.searchsorted__Tensor(sequence, self, sorter=sorter, **options), dims[1]
    rows = front(sequence, dims[0], size)
    order = None if sorter is None else front(sorter, dims[5], size)
    if not isinstance(self, Tensor):
        found = [
            aten.searchsorted__Scalar(_of(rows, i), self, sorter=None if order is None else _of(order, i), **options)
            for i in range(size)
        ]
        return aten.stack(found, 0) if found else aten.new_empty(rows, (0,), dtype=int32 if out_int32 else int64), 0
    values = front(self, dims[1], size)
    shape = values.array.shape
    if len(rows.array.shape) == 2:
        values = aten.reshape(values, (size, numel(shape[1:])))
    return aten.view(aten.searchsorted__Tensor(rows, values, sorter=order, **options), shape), 0


def _of(batch: Tensor, i: int) -> Tensor:
    return aten.select__int(batch, 0, i)


# ---- x[i, j]


class Indices:
    """The index tensors of one call: one per indexed dim of the example, None for dims that are not indexed.

    shape     of an example of the tensor that is indexed
    tensors   (position among the example's dims, tensor, its batch dim), masks turned into positions
    ndim      of the examples of the indices, broadcast
    adjacent  whether they stand side by side: then the indexed dims take their place, else they go to the front
    """

    def __init__(self, name: str, shape: tuple[int, ...], indices: Sequence[Tensor | None], bdims: Sequence[int | None]) -> None:
        self.tensors: list[tuple[int, Tensor, int | None]] = []
        at = 0
        for tensor, bdim in zip(indices, bdims, strict=True):
            if tensor is None:
                at += 1
            elif tensor.dtype in MASK_DTYPES:
                if bdim is not None:
                    raise errors.VmapError(errors.data_dependent(name))
                check_mask(shape, at, tensor.array.shape)
                for each in aten.unbind__int(aten.nonzero(tensor), 1):
                    self.tensors.append((at, each, None))
                    at += 1
            else:
                self.tensors.append((at, tensor, bdim))
                at += 1
        self.ndim = max(logical_ndim(t, d) for _, t, d in self.tensors)
        self.at = [p for p, _, _ in self.tensors]
        self.adjacent = self.at[-1] - self.at[0] + 1 == len(self.at)
        self.batched = any(d is not None for _, _, d in self.tensors)

    def listed(self) -> tuple[list[Tensor | None], list[int | None]]:
        """The index list of one example, and the batch dims of its tensors."""
        made: list[Tensor | None] = [None] * (self.at[-1] + 1)
        bdims: list[int | None] = [None] * (self.at[-1] + 1)
        for p, tensor, bdim in self.tensors:
            made[p], bdims[p] = tensor, bdim
        return made, bdims

    def plain(self, lead: int) -> list[Tensor | None]:
        """The index list for the operator, with `lead` dims in front that are not indexed."""
        made: list[Tensor | None] = [None] * (lead + self.at[-1] + 1)
        for p, tensor, bdim in self.tensors:
            made[lead + p] = padded(tensor, bdim, self.ndim)
        return made

    def with_batch(self, size: int, like: Tensor) -> list[Tensor | None]:
        """The index list for a value whose batch dim is in front and is indexed by the number of the example."""
        made = self.plain(1)
        made[0] = places(size, like, self.ndim + 1)
        return made


def index(size: int, dims: Dims, self: Tensor, indices: Sequence[Tensor | None]) -> tuple[Tensor, int]:
    if all(i is None for i in indices):
        return aten.alias(self), dims[0]
    given = Indices("index", logical_shape(self, dims[0]), indices, dims[1])
    first = given.at[0] if given.adjacent else 0
    if dims[0] is None:
        return aten.index__Tensor(self, given.plain(0)), first
    x = front(self, dims[0], size)
    if not given.batched:
        return aten.index__Tensor(x, given.plain(1)), 0 if given.adjacent else given.ndim
    made = aten.index__Tensor(x, given.with_batch(size, x))
    return _put_back(made, given.ndim, first), 0


def _put_back(made: Tensor, ndim: int, first: int) -> Tensor:
    """Move the indexed dims of (batch, indexed dims, others) behind the first of the others."""
    if not first:
        return made
    order = [0, *range(1 + ndim, 1 + ndim + first), *range(1, 1 + ndim), *range(1 + ndim + first, made.ndim)]
    return aten.permute(made, order)


def index_put(
    size: int, dims: Dims, self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool
) -> tuple[Tensor, int]:
    masked = _where(size, dims, self, indices, values, accumulate)
    if masked is not None:
        return masked, 0
    given = Indices("index_put", logical_shape(self, dims[0]), indices, dims[1])
    plain, bdims = given.listed()
    one, places_of_one, values_of_one = examples((dims[0], bdims, dims[2]), (self, plain, values))
    check_put(one, places_of_one, values_of_one, accumulate)
    x = front(self, dims[0], size)
    first = given.at[0] if given.adjacent else 0
    # What is written has the shape (indexed dims, others), the others before `first` standing in front of the indexed ones.
    ndim = len(x.array.shape) - 1 - len(given.at) + given.ndim
    v = values
    if dims[2] is not None:
        v = padded(v, dims[2], ndim)
    elif first:
        v = padded(aten.unsqueeze(v, 0), 0, ndim)
    if first:
        order = [0, *range(1 + first, 1 + first + given.ndim), *range(1, 1 + first), *range(1 + first + given.ndim, v.ndim)]
        v = aten.permute(v, order)
    return aten.index_put(x, given.with_batch(size, x), v, accumulate), 0


def _where(
    size: int, dims: Dims, self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool
) -> Tensor | None:
    """Write one value where each example's mask is true. It is a `where`, so no size depends on values."""
    mask = indices[0]
    if len(indices) != 1 or mask is None or mask.dtype not in MASK_DTYPES or dims[1][0] is None:
        return None
    if logical_ndim(values, dims[2]) or accumulate:
        return None
    check_mask(logical_shape(self, dims[0]), 0, logical_shape(mask, dims[1][0]))
    x = front(self, dims[0], size)
    m = aten.to__dtype(front(mask, dims[1][0], size), bool_)
    ndim = len(x.array.shape)
    m = aten.view(m, (*m.array.shape, *(1,) * (ndim - len(m.array.shape))))
    chosen = aten.where__self(m, padded(values, dims[2], ndim - 1), x)
    return aten.to__dtype(chosen, self.dtype)
