"""Kernels of operators whose results depend on values: the sizes of what they return are symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import INT, int64
from turnout.errors import ShapeError
from turnout_aten.composites.arrangements import check_repeats
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import contiguous_strides, numel, wrap_dim
from turnout_aten.shapes.sorting import bincount_dtype, check_bincount
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_meta.symbols.sizes import SymInt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.dtypes import DType


def _empty(like: Tensor, shape: Sequence[Any], dtype: DType, strides: tuple[Any, ...] | None = None) -> Tensor:
    sizes = tuple(shape)
    return wrap(like.device.backend.empty(sizes, dtype, like.device, strides), like.device)


def _size(like: Tensor, operator: str, low: int, high: Any) -> Any:
    """The size of a result, the same as for the last call if nothing was written since; `high` may be a symbol itself."""
    version, known = like.array.sizes.get(operator, (None, None))
    if version == like.version() and not like.is_inference():  # writes into inference tensors are not counted
        return known
    at_most = int(high) if not isinstance(high, SymInt) else None if high.bounds[1] == float("inf") else int(high.bounds[1])
    if at_most is not None and low >= at_most:
        return at_most
    made = like.fake_mode.sizes.unbacked(f"a result of {operator}", low, at_most)
    like.array.sizes[operator] = (like.version(), made)
    return made


def nonzero(ks: int, self: Tensor) -> Tensor:
    """One row for each nonzero element. The rows lie in memory one element after the other, dim by dim."""
    shape = self.shape
    found = _size(self, "aten::nonzero", 0, numel(shape))
    return _empty(self, (found, len(shape)), int64, (1, found))


def _shortest(self: Tensor, count: Any) -> int:
    """How many distinct elements there are at least: none only if there are no elements."""
    return 1 if not isinstance(count, SymInt) and count else int(isinstance(count, SymInt) and count.bounds[0] > 0)


def _distinct(self: Tensor, operator: str, want_inverse: Any, want_counts: Any) -> tuple[Tensor, Tensor, Tensor]:
    count = numel(self.shape)
    found = _size(self, operator, _shortest(self, count), count)
    inverse = self.shape if want_inverse else (0,)
    counts = (found,) if want_counts else (0,)
    return _empty(self, (found,), self.dtype), _empty(self, inverse, int64), _empty(self, counts, int64)


def unique(ks: int, self: Tensor, sorted: bool, return_inverse: bool, return_counts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct elements; inverse and counts are empty unless they are wanted."""
    return _distinct(self, "aten::_unique2", return_inverse, return_counts)


def _distinct_rows(self: Tensor, operator: str, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    d = wrap_dim(dim, len(self.shape))
    length = self.shape[d]
    if any(not isinstance(n, SymInt) and not n for i, n in enumerate(self.shape) if i != d):
        raise ShapeError(texts.empty_slices("unique"))
    found = _size(self, f"{operator} of dim {d}", _shortest(self, length), length)
    others = (*self.shape[:d], *self.shape[d + 1 :])
    steps = contiguous_strides(others)
    # The slices lie one after the other.
    made = _empty(self, (*others[:d], found, *others[d:]), self.dtype, (*steps[:d], numel(others), *steps[d:]))
    return made, _empty(self, (length,), int64), _empty(self, (found,), int64)


def unique_dim(
    ks: int, self: Tensor, dim: int, sorted: bool, return_inverse: bool, return_counts: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct slices along a dim, always with inverse and counts."""
    return _distinct_rows(self, "aten::unique_dim", dim)


def unique_consecutive(
    ks: int, self: Tensor, return_inverse: bool, return_counts: bool, dim: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The elements, or slices along a dim, that differ from the one before."""
    if dim is None:
        return _distinct(self, "aten::unique_consecutive", return_inverse, return_counts)
    return _distinct_rows(self, "aten::unique_consecutive", dim)


def bincount(ks: int, self: Tensor, weights: Tensor | None, minlength: Any) -> Tensor:
    """The count of each value, as many as the largest value asks for."""
    shape = None if weights is None else weights.shape
    check_bincount(self.shape, self.dtype.name, self.dtype.category == INT, minlength, shape)
    dtype = bincount_dtype(None if weights is None else weights.dtype.name)
    low = int(minlength.bounds[0]) if isinstance(minlength, SymInt) else minlength
    return _empty(self, (self.fake_mode.sizes.unbacked("a result of aten::bincount", low),), dtype)


def repeat_interleave(ks: int, repeats: Tensor, output_size: Any) -> Tensor:
    """An index for each repetition."""
    check_repeats(repeats)
    found = output_size if repeats.shape[0] else 0
    if found is None:
        found = repeats.fake_mode.sizes.unbacked("a result of aten::repeat_interleave.Tensor")
    return _empty(repeats, (found,), repeats.dtype)


def kernels() -> dict[str, Any]:
    """Operator -> kernel of the internal convention."""
    return {
        "aten::nonzero": nonzero,
        "aten::_unique2": unique,
        "aten::unique_dim": unique_dim,
        "aten::unique_consecutive": unique_consecutive,
        "aten::bincount": bincount,
        "aten::repeat_interleave.Tensor": repeat_interleave,
    }
