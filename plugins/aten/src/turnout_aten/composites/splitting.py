"""Splits into parts of nearly equal length or at indices, and splits whose parts are not views for autograd."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from turnout.dtypes import int64
from turnout.errors import DTypeError, ShapeError
from turnout.state import below_adinplaceorview
from turnout_aten import operators as aten
from turnout_aten.composites.reshaping import chunk_sizes
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.storage import Storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor


def tensor_split_sections(self: Tensor, sections: int, dim: int = 0) -> list[Tensor]:
    """`sections` parts. If the length is not a multiple, the first parts are longer by one."""
    if not self.shape:
        raise ShapeError(texts.needs_a_dim("tensor_split"))
    d = wrap_dim(dim, self.ndim)
    if sections <= 0:
        raise ShapeError(f"tensor_split: the number of sections must be positive, got {sections}")
    short, longer = divmod(self.shape[d], sections)
    parts: list[Tensor] = []
    start = 0
    for i in range(sections):
        end = start + short + (i < longer)
        parts.append(aten.slice__Tensor(self, d, start, end, 1))
        start = end
    return parts


def tensor_split_indices(self: Tensor, indices: Sequence[int], dim: int = 0) -> list[Tensor]:
    """The parts between the given indices, which follow Python's slicing rules."""
    if not self.shape:
        raise ShapeError(texts.needs_a_dim("tensor_split"))
    d = wrap_dim(dim, self.ndim)
    bounds = [0, *indices, self.shape[d]]
    return [aten.slice__Tensor(self, d, a, b, 1) for a, b in itertools.pairwise(bounds)]


def tensor_split_tensor(self: Tensor, tensor_indices_or_sections: Tensor, dim: int = 0) -> list[Tensor]:
    """tensor_split with the number of sections in a 0-dim tensor, or the indices in a vector.

    # differs from torch: the tensor that tells `tensor_split` where to split may be on any device, not only on the CPU.
    """
    given = tensor_indices_or_sections
    if given.dtype is not int64:
        raise DTypeError(f"tensor_split: 'tensor_indices_or_sections' must be int64, got {given.dtype.name}")
    if given.ndim > 1:
        raise ShapeError(
            f"tensor_split: 'tensor_indices_or_sections' must have at most 1 dimension, got shape {list(given.shape)}"
        )
    found = given.tolist()
    return tensor_split_indices(self, found, dim) if given.ndim else tensor_split_sections(self, found, dim)


# ---- hsplit, vsplit, dsplit


def _dim_of(name: str, self: Tensor) -> int:
    """The dim that these functions split. Raises ShapeError for too few dims."""
    needed = {"hsplit": 1, "vsplit": 2, "dsplit": 3}[name]
    if self.ndim < needed:
        dimensions = "1 dimension" if needed == 1 else f"{needed} dimensions"
        raise ShapeError(f"{name}: needs at least {dimensions}, got shape {list(self.shape)}")
    return {"hsplit": min(1, self.ndim - 1), "vsplit": 0, "dsplit": 2}[name]


def _equal_parts(name: str, self: Tensor, sections: int) -> list[Tensor]:
    d = _dim_of(name, self)
    n = self.shape[d]
    if sections <= 0:
        raise ShapeError(f"{name}: the number of sections must be positive, got {sections}")
    if n % sections:
        raise ShapeError(f"{name}: the length {n} of dim {d} must be a multiple of the number of sections, {sections}")
    return tensor_split_sections(self, sections, d)


def hsplit_int(self: Tensor, sections: int) -> list[Tensor]:
    """Equal parts along dim 1, or dim 0 of a vector."""
    return _equal_parts("hsplit", self, sections)


def vsplit_int(self: Tensor, sections: int) -> list[Tensor]:
    """Equal parts along dim 0."""
    return _equal_parts("vsplit", self, sections)


def dsplit_int(self: Tensor, sections: int) -> list[Tensor]:
    """Equal parts along dim 2."""
    return _equal_parts("dsplit", self, sections)


def hsplit_array(self: Tensor, indices: Sequence[int]) -> list[Tensor]:
    """The parts between indices along dim 1, or dim 0 of a vector."""
    return tensor_split_indices(self, indices, _dim_of("hsplit", self))


def vsplit_array(self: Tensor, indices: Sequence[int]) -> list[Tensor]:
    """The parts between indices along dim 0."""
    return tensor_split_indices(self, indices, _dim_of("vsplit", self))


def dsplit_array(self: Tensor, indices: Sequence[int]) -> list[Tensor]:
    """The parts between indices along dim 2."""
    return tensor_split_indices(self, indices, _dim_of("dsplit", self))


# ---- parts that can be written separately: they are not views of the whole, and each has its own version


def unsafe_split(self: Tensor, split_size: int, dim: int = 0) -> list[Tensor]:
    """split."""
    with below_adinplaceorview():
        return _apart(aten.split__Tensor(self, split_size, dim))


def unsafe_split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    """split_with_sizes."""
    with below_adinplaceorview():
        return _apart(aten.split_with_sizes(self, split_sizes, dim))


def _apart(parts: list[Tensor]) -> list[Tensor]:
    for part in parts:
        part.storage = Storage(part.shared_storage().array, CLOCK.epoch)
    return parts


def unsafe_chunk(self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    """chunk."""
    return aten.unsafe_split_with_sizes(self, chunk_sizes("unsafe_chunk", self.array.shape, chunks, dim), dim)
