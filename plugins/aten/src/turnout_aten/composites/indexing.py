"""Selections in terms of index and gather."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import bool_, int64
from turnout.errors import DimError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.endings import shortcut
from turnout_aten.composites.layouts import lying
from turnout_aten.composites.reshaping import write_out
from turnout_aten.errors import arguments as texts
from turnout_aten.kernels.standing import Standing
from turnout_aten.shapes.extents import broadcast, wrap_dim
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable


def where(condition: Tensor) -> list[Tensor]:
    """The indices of the true elements, one tensor per dim."""
    return aten.unbind__int(aten.nonzero(condition), 1)


def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is true, in row-major order. self and the mask broadcast."""
    if mask.dtype is not bool_:
        raise DTypeError(texts.not_bool("masked_select", "mask", mask.dtype))
    shape = broadcast(self.shape, mask.shape)
    if not shape:
        return aten.index__Tensor(aten.reshape(self, (1,)), [aten.reshape(mask, (1,))])
    return aten.index__Tensor(aten.expand(self, shape), [aten.expand(mask, shape)])


def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather that broadcasts the other dims. Without a dim, gathers from the flattened tensor."""
    if dim is None:
        return take_along_dim(aten.reshape(self, (-1,)), aten.reshape(indices, (-1,)), 0)
    if self.ndim != indices.ndim:
        raise ShapeError(f"take_along_dim: 'indices' must have {self.ndim} dimensions, got shape {list(indices.shape)}")
    if indices.dtype is not int64:
        raise DTypeError(texts.not_int64("take_along_dim", "indices", indices.dtype))
    d = wrap_dim(dim, self.ndim)
    if self.shape:
        # Negative indices count from the end.
        n = self.shape[d]
        indices = aten.where__self(aten.lt__Scalar(indices, 0), aten.add__Scalar(indices, n), indices)
    own, wanted = list(self.shape), list(indices.shape)
    if own:
        own[d] = wanted[d] = 1
    shared = list(broadcast(tuple(own), tuple(wanted)))
    if shared:
        own, wanted = list(shared), list(shared)
        own[d], wanted[d] = self.shape[d], indices.shape[d]
    return aten.gather(aten.expand(self, own), d, aten.expand(indices, wanted))


def take_along_dim_out(self: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor) -> Tensor:
    """take_along_dim into `out`."""
    return write_out("aten::take_along_dim.out", out, take_along_dim(self, indices, dim))


def one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    """A new last dim with 1 at the class of each element, else 0. num_classes=-1 uses the largest class."""
    if self.dtype is not int64:
        raise DTypeError(f"one_hot: class indices must be int64, got {self.dtype.name}")
    if num_classes == -1:
        if not self.numel():
            raise ShapeError("one_hot: num_classes must be given for an empty tensor")
        if aten._local_scalar_dense(aten.min(self)) < 0:
            raise ShapeError("one_hot: a class index is negative")
        num_classes = int(aten._local_scalar_dense(aten.max(self))) + 1
    if num_classes < 1:
        raise ShapeError(f"one_hot: num_classes must be positive or -1, got {num_classes}")
    zeros = aten.new_zeros(self, (*self.shape, num_classes))
    return aten.scatter__value(zeros, -1, aten.unsqueeze(self, -1), 1)


# ---- take by flat index


_TAKES = Standing(reshape="aten::reshape", view="view", index__Tensor="pick")


def _take_at_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """The elements by one call of the array module, where `reshape` would make a view and `index` read from it."""

    def take(ks: int, self: Tensor, index: Tensor) -> Any:
        if self.__class__ is Tensor and ks is self.keys:
            array, places, device = self.array, index.array, self.device
            backend = device.backend
            row_major, ours = backend.row_major, array.__class__ is backend.array_type is places.__class__
            plain = ks is backend.keys and backend.view_array is not None and ours and row_major is not None and row_major(array)
            if plain and places.dtype.char == "l" and places.shape and places.size <= _FEW and _TAKES(ks):
                try:
                    return wrap(array.take(places), device)
                except IndexError:  # the kernel says which
                    pass
        return call(ks, self, index)

    return take


# Up to this many indices, reading is no work for several threads.
_FEW = 1 << 10


@shortcut(_take_at_once)
def take(self: Tensor, index: Tensor) -> Tensor:
    """The elements at indices into the flattened tensor; negative indices count from the end."""
    if index.dtype is not int64:
        raise DTypeError(texts.not_int64("take", "index", index.dtype))
    if 0 in self.array.shape and 0 not in index.array.shape:
        raise DimError("take: cannot take elements from an empty tensor")
    made: Tensor = aten.index__Tensor(aten.reshape(self, (-1,)), [index])
    return made if index.is_contiguous() else lying(made)


def unsafe_index(self: Tensor, indices: list[Tensor | None]) -> Tensor:
    """index. The indices are checked despite the name."""
    return aten.index__Tensor(self, indices)


def unsafe_index_put(self: Tensor, indices: list[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """index_put. The indices are checked despite the name."""
    return aten.index_put(self, indices, values, accumulate)


def _kept_places(self: Tensor, mask: Tensor, indices: list[Tensor | None]) -> list[Tensor | None]:
    """The indices, with those where the mask is false replaced by valid ones."""
    if len(indices) > self.ndim:
        raise DimError(texts.too_many_indices("", len(indices), self.ndim))
    return [None if index is None else aten.clamp(index, -self.shape[d], self.shape[d] - 1) for d, index in enumerate(indices)]


def unsafe_masked_index(self: Tensor, mask: Tensor, indices: list[Tensor | None], fill: Any) -> Tensor:
    """self[indices] where the mask is true, else `fill`; indices may be out of range where it is false."""
    if not self.numel():
        return aten.new_full(aten.index__Tensor(aten.new_zeros(self, (1,) * self.ndim), _zeros(indices)), mask.shape, fill)
    found = aten.index__Tensor(self, _kept_places(self, mask, indices))
    return aten.masked_fill__Scalar(found, aten.logical_not(mask), fill)


def _zeros(indices: list[Tensor | None]) -> list[Tensor | None]:
    return [None if index is None else aten.zeros_like(index) for index in indices]


def unsafe_masked_index_put_accumulate(self: Tensor, mask: Tensor, indices: list[Tensor | None], values: Tensor) -> Tensor:
    """self with `values` added at indices where the mask is true."""
    if not self.numel():
        return aten.clone(self)
    added = aten.masked_fill__Scalar(values, aten.logical_not(mask), 0)
    return aten.index_put(self, _kept_places(self, mask, indices), added, True)
