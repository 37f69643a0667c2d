"""Tangents of views that depend on how a tensor lies in memory: a tangent may lie there in another way than its tensor."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from turnout_aten import operators as aten
from turnout_aten.shapes.extents import reach_of
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.views import laid_out

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints


def viewed_as_complex(self_t: Tensor) -> Tensor:
    """`view_as_complex`, of a copy where pairs do not lie together."""
    *strides, last = self_t.stride()
    fits = last == 1 and not self_t.storage_offset() % 2 and not any(s % 2 for s in strides)
    return aten.view_as_complex(self_t if fits else self_t.contiguous())


def strided(self_t: Tensor, self: Tensor, size: Ints, stride: Ints, offset: int | None) -> Tensor:
    """`as_strided`: a view where the tangent lies in memory as self does, else a copy, with zeros between self's elements."""
    if self_t.stride() == self.stride() and self_t.storage_offset() == self.storage_offset():
        return self_t.as_strided(size, stride, offset)
    start = self.storage_offset() if offset is None else offset
    if not prod(size) or not prod(self.shape):
        return self_t.new_zeros(size)
    own = _places(self, self.shape, self.stride(), self.storage_offset())
    wanted = _places(self, size, stride, start)
    reach = max(self.storage_offset() + reach_of(self.shape, self.stride()), start + reach_of(size, stride))
    memory = self_t.new_zeros((reach,)).index_put((own,), self_t.reshape((-1,)))
    return memory.index_select(0, wanted).reshape(size)


def _places(like: Tensor, shape: Ints, strides: Ints, offset: int) -> Tensor:
    """The place of each element, in the order of a contiguous tensor."""
    places = aten.arange(offset + reach_of(shape, strides), device=like.device)
    return places.as_strided(shape, strides, offset).reshape((-1,))


def strided_scatter(
    self_t: Tensor | None, src_t: Tensor | None, self: Tensor, src: Tensor, size: Ints, stride: Ints, offset: int | None
) -> Tensor:
    """`as_strided_scatter` of the tangents, self's in the layout of self."""
    self_t = aten.zeros_like(self) if self_t is None else self_t
    src_t = aten.zeros_like(src) if src_t is None else src_t
    base = laid_out(self_t, (self.shape, self.stride(), self.storage_offset()))
    return aten.as_strided_scatter(base, src_t, size, stride, offset)
