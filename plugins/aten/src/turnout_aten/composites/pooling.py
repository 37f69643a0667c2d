"""Pooling in terms of the operators of two and three dims, and unpooling."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from turnout.dtypes import int64
from turnout.errors import DimError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.layouts import lying
from turnout_aten.composites.reshaping import write_out
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.images import check_images
from turnout_aten.shapes.layouts import as_images

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor

Ints = tuple[int, ...]


def _line(name: str, self: Tensor) -> Tensor:
    """[N, C, L] or [C, L] with a dim of length 1 before the last."""
    check_images(name, 1, self.shape)
    return aten.unsqueeze(self, -2)


def _one(name: str, argument: str, value: Any) -> int:
    if len(value) != 1:
        raise ShapeError(f"{name}: '{argument}' must be one number, got {list(value)}")
    return int(value[0])


def max_pool1d_with_indices(
    self: Tensor, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] | int = 0,
    dilation: Sequence[int] | int = 1, ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(largest elements, their indices) of windows along one dim."""
    kernel, pad, gap = (
        _one("max_pool1d", name, value)
        for name, value in (("kernel_size", kernel_size), ("padding", padding), ("dilation", dilation))
    )
    step = _one("max_pool1d", "stride", stride) if len(stride) else kernel
    values, indices = aten.max_pool2d_with_indices(
        _line("max_pool1d", self), (1, kernel), (1, step), (0, pad), (1, gap), ceil_mode
    )
    return aten.squeeze__dim(values, -2), aten.squeeze__dim(indices, -2)


def max_pool1d(
    self: Tensor, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] | int = 0,
    dilation: Sequence[int] | int = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """max_pool1d_with_indices without the indices."""
    return max_pool1d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def max_pool2d(
    self: Tensor, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] | int = 0,
    dilation: Sequence[int] | int = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """The largest elements of windows of two dims."""
    return aten.max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def max_pool3d(
    self: Tensor, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] | int = 0,
    dilation: Sequence[int] | int = 1, ceil_mode: bool = False,
) -> Tensor:  # fmt: skip
    """Three."""
    return aten.max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


def max_pool_with_indices_backward(
    grad_output: Tensor, self: Tensor, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], ceil_mode: bool, indices: Tensor,
) -> Tensor:  # fmt: skip
    """Add each gradient at the index of its window's largest element."""
    name = f"max_pool{len(kernel_size)}d_with_indices_backward"
    lead = self.ndim - len(kernel_size)
    if grad_output.shape != indices.shape or grad_output.shape[:lead] != self.shape[:lead]:
        raise ShapeError(
            f"{name}: 'grad_output' of shape {list(grad_output.shape)} and 'indices' of shape "
            f"{list(indices.shape)} must be one shape and fit 'self' of shape {list(self.shape)}"
        )
    if grad_output.dtype is not self.dtype:
        raise DTypeError(texts.wrong_dtype(name, "grad_output", self.dtype, grad_output.dtype))
    made = _placed(grad_output, indices, self.shape, lead, add=True)
    return lying(made, as_images(made.shape, self) if len(kernel_size) == 2 else None)


def max_pool2d_with_indices_backward_out(
    grad_output: Tensor, self: Tensor, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], ceil_mode: bool, indices: Tensor, *, grad_input: Tensor,
) -> Tensor:  # fmt: skip
    """The backward of max_pool2d_with_indices, into `grad_input`."""
    made = max_pool_with_indices_backward(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices)
    return write_out("aten::max_pool2d_with_indices_backward.grad_input", grad_input, made)


def _placed(values: Tensor, indices: Tensor, shape: Sequence[int], lead: int, *, add: bool) -> Tensor:
    """Zeros of a shape, with the values at the indices. The indices count in the flattened dims from `lead` on."""
    flat = (*shape[:lead], prod(shape[lead:]))
    zeros = aten.expand(aten.new_zeros(values, ()), flat)
    places = aten.reshape(indices, (*indices.shape[:lead], -1) if indices.numel() else (*indices.shape[:lead], 0))
    source = aten.reshape(values, places.shape)
    put = aten.scatter_add if add else aten.scatter__src
    return aten.reshape(put(zeros, -1, places, source), tuple(shape))


def avg_pool1d(
    self: Tensor, kernel_size: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] | int = 0,
    ceil_mode: bool = False, count_include_pad: bool = True,
) -> Tensor:  # fmt: skip
    """The means of windows along one dim."""
    kernel, pad = _one("avg_pool1d", "kernel_size", kernel_size), _one("avg_pool1d", "padding", padding)
    step = _one("avg_pool1d", "stride", stride) if len(stride) else kernel
    line = _line("avg_pool1d", self)
    made: Tensor = aten.avg_pool2d(line, (1, kernel), (1, step), (0, pad), ceil_mode, count_include_pad)
    return aten.squeeze__dim(made, -2)


def adaptive_avg_pool1d(self: Tensor, output_size: Sequence[int]) -> Tensor:
    """The means of windows that cover the last dim evenly."""
    size = _one("adaptive_avg_pool1d", "output_size", output_size)
    made: Tensor = aten.adaptive_avg_pool2d(_line("adaptive_avg_pool1d", self), (1, size))
    return aten.squeeze__dim(made, -2)


def adaptive_avg_pool2d(self: Tensor, output_size: Sequence[int]) -> Tensor:
    """The means of windows that cover the image evenly; one window gives the mean of the image."""
    return _adaptive_avg("adaptive_avg_pool2d", 2, self, output_size, aten._adaptive_avg_pool2d)


def adaptive_avg_pool3d(self: Tensor, output_size: Sequence[int]) -> Tensor:
    """adaptive_avg_pool2d with three dims."""
    return _adaptive_avg("adaptive_avg_pool3d", 3, self, output_size, aten._adaptive_avg_pool3d)


def _adaptive_avg(name: str, ndim: int, self: Tensor, output_size: Sequence[int], pool: Any) -> Tensor:
    if len(output_size) != ndim:
        raise ShapeError(texts.wrong_output_size(name, ndim, output_size))
    if all(n == 1 for n in output_size):
        check_images(name, ndim, self.shape)
        return aten.mean__dim(self, tuple(range(-ndim, 0)), True)
    return pool(self, output_size)


def adaptive_max_pool1d(self: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """(largest elements, their indices) of windows that cover the last dim evenly."""
    size = _one("adaptive_max_pool1d", "output_size", output_size)
    values, indices = aten.adaptive_max_pool2d(_line("adaptive_max_pool1d", self), (1, size))
    return aten.squeeze__dim(values, -2), aten.squeeze__dim(indices, -2)


def max_unpool2d(self: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    """Zeros, with the elements at the indices from which max_pool2d took them."""
    return _unpooled("max_unpool2d", 2, self, indices, output_size)


def max_unpool3d(
    self: Tensor, indices: Tensor, output_size: Sequence[int], stride: Sequence[int], padding: Sequence[int]
) -> Tensor:
    """max_unpool2d with three dims."""
    for argument, value in (("stride", stride), ("padding", padding)):
        if len(value) != 3:
            raise ShapeError(f"max_unpool3d: '{argument}' must be 3 numbers, got {list(value)}")
    if any(s <= 0 for s in stride):
        raise ShapeError(f"max_unpool3d: 'stride' must be positive, got {list(stride)}")
    return _unpooled("max_unpool3d", 3, self, indices, output_size)


def _unpooled(name: str, ndim: int, self: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    if indices.dtype is not int64:
        raise DTypeError(f"{name}: 'indices' must be int64, got {indices.dtype.name}")
    if len(output_size) != ndim:
        raise ShapeError(texts.wrong_output_size(name, ndim, output_size))
    check_images(name, ndim, self.shape)
    if self.shape != indices.shape:
        raise ShapeError(f"{name}: 'indices' must have the shape of 'self', {list(self.shape)}, got {list(indices.shape)}")
    try:
        made = _placed(self, indices, (*self.shape[:-ndim], *output_size), self.ndim - ndim, add=False)
        return lying(made, as_images(made.shape, self) if ndim == 2 else None)
    except IndexError:
        places = f"output_size {list(output_size)} has {prod(output_size)} places"
        raise DimError(f"{name}: 'indices' holds a number that is out of range; {places}") from None
