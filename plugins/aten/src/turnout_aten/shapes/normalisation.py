"""Shape functions of normalisations: the result, and the mean and reciprocal deviation of each row or group."""

from __future__ import annotations

from turnout.dtypes import FLOAT, float32
from turnout.errors import DTypeError, ShapeError
from turnout_aten.dtypes import EPSILON, WIDE
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import numel
from turnout_aten.shapes.layouts import as_images
from turnout_aten.shapes.specs import Out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout.dtypes import DType
    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor


# What `rms_norm` adds by default to the mean square of an input of a dtype: the eps of the dtype that it computes in.
RMS_EPS = {dtype: EPSILON[wide] for dtype, wide in WIDE.items()}


def fits_groups(input: Any, grad: Any, mean: Any, rstd: Any, N: int, C: int, HxW: int, group: int) -> bool:
    """Whether arrays that nobody has checked are those of a gradient of `native_group_norm`, and have elements."""
    return bool(input.size) and input.size == N * C * HxW and grad.shape == input.shape and mean.size == rstd.size == N * group


def check_rows(name: str, input: Any, normalized_shape: Sequence[int], *parameters: Any) -> None:
    """Raise unless the last dims of an array, and each parameter that is there, have `normalized_shape`."""
    shape = tuple(normalized_shape)
    if not shape or input.shape[-len(shape) :] != shape:
        raise ShapeError(f"{name}: normalized_shape {list(shape)} must be the last dims of shape {list(input.shape)}")
    for which, parameter in zip(("weight", "bias"), parameters, strict=False):
        if parameter is not None and parameter.shape != shape:
            raise ShapeError(texts.wrong_shape(name, which, shape, parameter.shape))


def statistics_dtype(name: str, input: Tensor, *parameters: Tensor | None) -> DType:
    """The dtype of means and deviations: that of the input, or float32 for a two-byte input with float32 parameters."""
    dtype = input.dtype
    if dtype.category != FLOAT:
        raise DTypeError(texts.undefined_for(name, dtype))
    for parameter in parameters:
        if parameter is not None and parameter.dtype is not dtype:
            if parameter.dtype is float32 and dtype.itemsize == 2:
                return float32
            raise DTypeError(f"{name}: parameters must have the dtype of the input, {dtype.name}, got {parameter.dtype.name}")
    return dtype


def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Out, Out, Out]:
    """(result, mean, reciprocal deviation)."""
    parameters = [None if each is None else each.array for each in (weight, bias)]
    check_rows("native_layer_norm", input.array, normalized_shape, *parameters)
    dtype = statistics_dtype("native_layer_norm", input, weight, bias)
    shape, inner = input.array.shape, len(normalized_shape)
    rows = (*shape[: len(shape) - inner], *(1,) * inner)
    return Out(shape, input.dtype), Out(rows, dtype), Out(rows, dtype)


def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Out, Out, Out]:
    """(result, mean, reciprocal deviation) of groups of channels."""
    check_groups("native_group_norm", C, group, weight, bias)
    if numel(input.array.shape) != N * C * HxW:
        raise ShapeError(f"native_group_norm: 'input' of shape {list(input.array.shape)} must have {N} x {C} x {HxW} elements")
    dtype = statistics_dtype("native_group_norm", input, weight, bias)
    shape = input.array.shape
    return Out(shape, input.dtype, as_images(shape, input)), Out((N, group), dtype), Out((N, group), dtype)


def check_groups(name: str, channels: int, groups: int, *parameters: Tensor | None) -> None:
    """Raise unless groups divide the channels and each parameter has one number per channel."""
    if groups < 1 or channels % groups:
        raise ShapeError(texts.ungrouped(name, channels, groups))
    for which, parameter in zip(("weight", "bias"), parameters, strict=False):
        if parameter is not None and parameter.array.shape != (channels,):
            raise ShapeError(texts.wrong_shape(name, which, (channels,), parameter.array.shape))


# fmt: off
SHAPES: ShapeTable = {
    "native_layer_norm.out": native_layer_norm,
    "native_group_norm.out": native_group_norm,
}
# fmt: on
