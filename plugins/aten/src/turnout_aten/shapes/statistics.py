"""Shapes of cumulative operators, and of those that pick one element along a dim: medians, modes, k-th values."""

from __future__ import annotations

from turnout.dtypes import FLOAT, DType, bool_, int64
from turnout.errors import ArgumentError, DimError, DTypeError
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import reduced, wrap_dim
from turnout_aten.shapes.reductions import ordered, sum_dtype
from turnout_aten.shapes.specs import Out, Result, in_dtype_of_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor


@in_dtype_of_out
def cumsum(self: Tensor, dim: int, dtype: DType | None = None) -> Out | Result:
    """cumsum and cumprod along one dim, in the dtype of `sum`."""
    shape = self.array.shape
    wrap_dim(dim, len(shape))
    given = self.dtype
    computed = sum_dtype(given, dtype)
    out = Out(shape, computed)
    return out if computed is given else Result(out, {"self": computed})


def logcumsumexp(self: Tensor, dim: int) -> Out:
    """Float and complex tensors."""
    dtype = self.dtype
    if dtype.category < FLOAT:
        raise DTypeError(texts.not_inexact("logcumsumexp", dtype))
    shape = self.array.shape
    wrap_dim(dim, len(shape))
    return Out(shape, dtype)


def cumulative_extreme(self: Tensor, dim: int) -> tuple[Out, Out]:
    """(values, indices) of cummax and cummin."""
    dtype = ordered(self, empty=True)
    shape = self.array.shape
    wrap_dim(dim, len(shape))
    return Out(shape, dtype), Out(shape, int64, exact=True)


def _picked(self: Tensor, name: str, dim: int, keepdim: bool) -> Result:
    dtype = ordered(self, empty=True)
    shape = self.array.shape
    dim = wrap_dim(dim, len(shape))
    if shape and not shape[dim]:
        raise DimError(texts.no_element(name, shape, dim))
    left = reduced(shape, (dim,), keepdim)
    return Result((Out(left, dtype, exact=True), Out(left, int64, exact=True)), None, {"dim": dim})


def median(self: Tensor, dim: int, keepdim: bool = False) -> Result:
    """(values, indices) of median and nanmedian along a dim, which the kernel gets counted from 0."""
    if self.dtype is bool_:
        raise DTypeError(texts.undefined_for("median", bool_))
    return _picked(self, "median", dim, keepdim)


def mode(self: Tensor, dim: int = -1, keepdim: bool = False) -> Result:
    """The shape function of mode."""
    return _picked(self, "mode", dim, keepdim)


def kthvalue(self: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Result:
    """The shape function of kthvalue; k counts from 1."""
    if self.dtype is bool_:
        raise DTypeError(texts.undefined_for("kthvalue", bool_))
    result = _picked(self, "kthvalue", dim, keepdim)
    shape = self.array.shape
    length = shape[result.precomputed["dim"]] if shape else 1
    if not 1 <= k <= length:
        raise ArgumentError(f"kthvalue: k must be 1 to {length}, the length of the dim, got {k}")
    return result


# fmt: off
SHAPES: ShapeTable = {
    "cumsum.out": cumsum,
    "cumprod.out": cumsum,
    "logcumsumexp.out": logcumsumexp,
    "cummax.out": cumulative_extreme,
    "cummin.out": cumulative_extreme,
    "median.dim_values": median,
    "nanmedian.dim_values": median,
    "mode.values": mode,
    "kthvalue.values": kthvalue,
}
# fmt: on
