"""Shape functions of operators that write by index."""

from __future__ import annotations

from turnout.dtypes import BOOL, COMPLEX
from turnout.errors import ArgumentError, DimError, DTypeError, ShapeError
from turnout_aten.dtypes import check_held
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import expands_to, wrap_dim
from turnout_aten.shapes.indexing import check_along, check_index, plain_indices, selected, with_positions
from turnout_aten.shapes.layouts import as_operands
from turnout_aten.shapes.pointwise import check_alpha, refuse_complex
from turnout_aten.shapes.specs import Out, Result, prepared_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor


def check_put(
    self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool
) -> tuple[list[Tensor | None], bool]:
    """The integer indices, and whether there were masks. Raises unless `values` can be written there."""
    plain, masks = plain_indices(self, indices)
    # One number written by one mask is converted, like that of masked_fill.
    one = masks and values.numel() == 1 and not accumulate and sum([i is not None for i in indices]) == 1
    if values.dtype is not self.dtype and not (
        one and (values.dtype.category != COMPLEX or self.dtype.category in (BOOL, COMPLEX))
    ):
        raise DTypeError(texts.wrong_dtype("index_put", "values", self.dtype, values.dtype))
    wanted, _, _ = selected(self, plain)
    if not expands_to(values.array.shape, wanted):
        raise ShapeError(f"index_put: 'values' of shape {list(values.array.shape)} do not expand to {list(wanted)}")
    return plain, masks


@prepared_by(with_positions)
def index_put(self: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Result:
    """self with `values` written at the indices, expanded to the shape of self[indices]. The kernel gets integer indices only."""
    plain, masks = check_put(self, indices, values, accumulate)
    casts = {"values": self.dtype} if values.dtype is not self.dtype else None
    return Result(
        Out(self.array.shape, self.dtype, as_operands(self.array.shape, self)), casts, {"indices": plain} if masks else None
    )


# ---- along one dim


def scatter(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Out:
    """self with the elements of `src` written at `index` along `dim`."""
    check_along("scatter", self, dim, index, src)
    return Out(self.array.shape, self.dtype, exact=True)


def scatter_value(self: Tensor, dim: int, index: Tensor, value: Any) -> Out:
    """The shape function of scatter with a number."""
    check_along("scatter", self, dim, index)
    refuse_complex(self.dtype, "scatter", value)
    check_held(self.dtype, value, "scatter", "value")
    return Out(self.array.shape, self.dtype, exact=True)


def scatter_add(self: Tensor, dim: int, index: Tensor, src: Tensor) -> Out:
    """The shape function of scatter_add."""
    check_along("scatter_add", self, dim, index, src)
    return Out(self.array.shape, self.dtype, exact=True)


def index_add(self: Tensor, dim: int, index: Tensor, source: Tensor, alpha: Any = 1) -> Result:
    """self with alpha * source added to the slices at `index` along `dim`. The kernel's dim counts from 0."""
    shape, added, picked = self.array.shape, source.array.shape, index.array.shape
    dim = wrap_dim(dim, len(shape))
    check_index("index_add", index)
    if source.dtype is not self.dtype:
        raise DTypeError(texts.wrong_dtype("index_add", "source", self.dtype, source.dtype))
    check_alpha("index_add", alpha, self.dtype)
    if len(picked) > 1:
        raise DimError(texts.not_one_dim("index_add", "index", picked))
    count = picked[0] if picked else 1
    fits = (*shape[:dim], count, *shape[dim + 1 :]) if shape else ()
    if added != fits and (shape or added != picked or count != 1):
        raise ShapeError(texts.wrong_shape("index_add", "source", fits, added))
    return Result(Out(shape, self.dtype), None, {"dim": dim})


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def scatter_reduce(self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool = True) -> Out:
    """self with the elements of `src` reduced in where `index` says along `dim`."""
    if reduce not in REDUCTIONS:
        raise ArgumentError(texts.not_one_of("scatter_reduce", "reduce", REDUCTIONS, reduce))
    check_along("scatter_reduce", self, dim, index, src)
    if self.dtype.category == COMPLEX and reduce in ("amax", "amin"):
        raise DTypeError(f"scatter_reduce: {self.dtype.name} numbers have no order, which {reduce} needs")
    return Out(self.array.shape, self.dtype)


# fmt: off
SHAPES: ShapeTable = {
    "index_put.out": index_put,
    "scatter.src_out": scatter,
    "scatter.value_out": scatter_value,
    "scatter_add.out": scatter_add,
    "scatter_reduce.two_out": scatter_reduce,
    "index_add.out": index_add,
}
# fmt: on
