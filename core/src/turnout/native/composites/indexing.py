"""Selecting by way of index and gather."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import bool_, int64
from turnout.errors import DTypeError, ShapeError
from turnout.generated import operators as aten
from turnout.native.composites.shaping import write_out
from turnout.shapes.extents import broadcast, wrap_dim

if TYPE_CHECKING:
    from turnout.tensors import Tensor


def where(condition: Tensor) -> list[Tensor]:
    """The indices of the true elements, one tensor per dim."""
    found: list[Tensor] = aten.unbind__int(aten.nonzero(condition), 1)
    return found


def masked_select(self: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is true, in row-major order; both are broadcast."""
    if mask.dtype is not bool_:
        raise DTypeError(f"masked_select: 'mask' must be a bool tensor, got {mask.dtype.name}")
    shape = broadcast(self.shape, mask.shape)
    made: Tensor
    if not shape:
        made = aten.index__Tensor(aten.reshape(self, (1,)), [aten.reshape(mask, (1,))])
        return made
    made = aten.index__Tensor(aten.expand(self, shape), [aten.expand(mask, shape)])
    return made


def take_along_dim(self: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """gather with the other dims broadcast; without a dim, from the flattened tensor."""
    made: Tensor
    if dim is None:
        made = aten.gather(aten.reshape(self, (-1,)), 0, aten.reshape(indices, (-1,)))
        return made
    if self.ndim != indices.ndim:
        raise ShapeError(f"take_along_dim: 'indices' must have {self.ndim} dimensions, got shape {list(indices.shape)}")
    d = wrap_dim(dim, self.ndim)
    own, wanted = list(self.shape), list(indices.shape)
    if own:
        own[d] = wanted[d] = 1
    shared = list(broadcast(tuple(own), tuple(wanted)))
    if shared:
        own, wanted = list(shared), list(shared)
        own[d], wanted[d] = self.shape[d], indices.shape[d]
    made = aten.gather(aten.expand(self, own), d, aten.expand(indices, wanted))
    return made


def take_along_dim_out(self: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor) -> Tensor:
    """take_along_dim into `out`."""
    return write_out("aten::take_along_dim.out", out, take_along_dim(self, indices, dim))


def one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    """1 at the class that each element names, in a new last dim; -1 counts the classes by the largest."""
    if self.dtype is not int64:
        raise DTypeError(f"one_hot: class indices must be int64, got {self.dtype.name}")
    if num_classes == -1:
        if not self.numel():
            raise ShapeError("one_hot: num_classes must be given for an empty tensor")
        num_classes = int(aten._local_scalar_dense(aten.max(self))) + 1
    if num_classes < 1 and not self.numel() == 0:
        raise ShapeError(f"one_hot: num_classes must be positive or -1, got {num_classes}")
    zeros = aten.new_zeros(self, (*self.shape, num_classes))
    made: Tensor = aten.scatter__value(zeros, -1, aten.unsqueeze(self, -1), 1)
    return made
