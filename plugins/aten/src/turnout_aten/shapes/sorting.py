"""Shapes of sorting and searching."""

from __future__ import annotations

from turnout.dtypes import COMPLEX, DType, bool_, float32, float64, int32, int64
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.shapes.layouts import as_operands
from turnout_aten.shapes.promotion import result_type, rounded
from turnout_aten.shapes.specs import Out, Result
from turnout_aten.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout_aten.shapes.specs import ShapeTable


def _sortable(name: str, self: Tensor) -> DType:
    dtype = self.dtype
    if dtype.category == COMPLEX:
        raise DTypeError(texts.unordered(name, dtype))
    return dtype


def topk(self: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Out, Out]:
    """(values, indices) of the k largest or smallest along a dim."""
    dtype = _sortable("topk", self)
    if dtype is bool_:
        raise DTypeError(texts.undefined_for("topk", bool_))
    shape = self.array.shape
    dim = wrap_dim(dim, len(shape))
    length = shape[dim] if shape else 1
    if not 0 <= k <= length:
        raise ShapeError(f"topk: k must be 0 to {length}, the length of dim {dim} of shape {list(shape)}, got {k}")
    chosen = (*shape[:dim], k, *shape[dim + 1 :]) if shape else ()
    return Out(chosen, dtype), Out(chosen, int64, exact=True)


def sort_stable(self: Tensor, stable: bool | None, dim: int = -1, descending: bool = False) -> tuple[Out, Out]:
    """(values, indices) in order along a dim."""
    dtype = _sortable("sort", self)
    shape = self.array.shape
    wrap_dim(dim, len(shape))
    strides = as_operands(shape, self)
    return Out(shape, dtype, strides), Out(shape, int64, strides, exact=True)


def searchsorted(
    sorted_sequence: Tensor, self: Any, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Out | Result:  # fmt: skip
    """Where values, or a number, belong in the last dim of sequences; all other dims are equal, or there is one sequence."""
    own = sorted_sequence.array.shape
    if isinstance(self, Tensor):
        shape = self.array.shape
        common = result_type(sorted_sequence, self)
    else:
        shape, common = (), sorted_sequence.dtype
    if not own:
        raise ShapeError("searchsorted: the sequence must have at least one dimension")
    if len(own) > 1 and (not shape or own[:-1] != shape[:-1]):
        raise ShapeError(
            f"searchsorted: the sequences' shape {list(own)} and the values' shape {list(shape)} must be equal apart from "
            "the last dim"
        )
    if common.category == COMPLEX:
        raise DTypeError(texts.unordered("searchsorted", common))
    if side is not None:
        check_side("searchsorted", side)
    if side == "left" and right:
        raise ArgumentError("searchsorted: side='left' contradicts right=True")
    if sorter is not None:
        if sorter.array.shape != own:
            raise ShapeError(f"searchsorted: sorter must have shape {list(own)}, got {list(sorter.array.shape)}")
        if sorter.dtype is not int64:
            raise DTypeError(f"searchsorted: sorter must have dtype int64, got {sorter.dtype.name}")
    if out_int32 and own[-1] >= 1 << 31:
        raise ShapeError(f"searchsorted: positions up to {own[-1]} do not fit in int32")
    out = Out(shape, int32 if out_int32 else int64, exact=True)
    given = {"sorted_sequence": sorted_sequence, "self": self}
    casts = {name: common for name, t in given.items() if isinstance(t, Tensor) and t.dtype is not common}
    held = self if isinstance(self, Tensor) else rounded(self, common)
    return Result(out, casts, {"self": held} if held is not self else None) if casts or held is not self else out


def nonzero_static(self: Tensor, size: int, fill_value: int = -1) -> Out:
    """The requested number of indices, truncated or padded."""
    if size < 0:
        raise ArgumentError(texts.negative("nonzero_static", "size", size))
    return Out((size, len(self.array.shape)), int64, exact=True)


def check_bincount(shape: tuple[int, ...], dtype: str, integers: bool, minlength: Any, weights: tuple[int, ...] | None) -> None:
    """Raise ArgumentError unless it is a list of integers, a length, and as many weights (their shape, or None).

    For kernels, which have arrays: the length of the result depends on their elements.
    """
    if len(shape) != 1 or not integers:
        raise ArgumentError(f"bincount: needs integers in one dimension, got {dtype} of shape {list(shape)}")
    if minlength < 0:
        raise ArgumentError(texts.negative("bincount", "minlength", minlength))
    if weights is not None and weights != shape:
        raise ArgumentError(f"bincount: weights must have shape {list(shape)}, got {list(weights)}")


def bincount_dtype(weights: str | None) -> DType:
    """The dtype of the result, by the name of that of the weights: sums of float32 stay in it, and others are float64."""
    return int64 if weights is None else float32 if weights == float32.name else float64


def check_side(name: str, side: object) -> None:
    """Raise ArgumentError unless the word is "left" or "right"."""
    if side not in ("left", "right"):
        raise ArgumentError(f"{name}: side must be 'left' or 'right', got {side!r}")


# fmt: off
SHAPES: ShapeTable = {
    "topk.values": topk,
    "sort.values_stable": sort_stable,
    "searchsorted.Tensor_out": searchsorted,
    "nonzero_static.out": nonzero_static,
}
# fmt: on
