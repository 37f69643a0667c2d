"""Shapes of pooling: windows over the last two or three dims of [N, C, ...] or [C, ...], each taken to one number."""

from __future__ import annotations

from functools import partial

from turnout.dtypes import COMPLEX, FLOAT, bool_, int64
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.convolutions import at_least, positions, spread
from turnout_aten.shapes.images import check_images
from turnout_aten.shapes.layouts import as_images
from turnout_aten.shapes.specs import Out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor

    Ints = tuple[int, ...]

    from turnout_aten.shapes.specs import ShapeTable


def pooled_length(length: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """The windows along one dim. With ceil_mode the last one may reach over the end, but it starts before it."""
    count = positions(length + (stride - 1 if ceil_mode else 0), kernel, stride, padding, dilation)
    return count - 1 if ceil_mode and (count - 1) * stride >= length + padding else count


def geometry(
    name: str, ndim: int, kernel_size: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> tuple[Ints, Ints, Ints, Ints]:
    """(kernel, stride, padding, dilation), each with one number per dim. The stride defaults to the kernel."""
    kernel = spread(name, "kernel_size", kernel_size, ndim)
    steps = spread(name, "stride", stride, ndim) if len(stride) else kernel
    pads, gaps = spread(name, "padding", padding, ndim), spread(name, "dilation", dilation, ndim)
    at_least(name, "kernel_size", kernel, 1)
    at_least(name, "stride", steps, 1)
    at_least(name, "dilation", gaps, 1)
    at_least(name, "padding", pads, 0)
    for k, p, d in zip(kernel, pads, gaps, strict=True):
        if p > ((k - 1) * d + 1) // 2:
            reach = [(n - 1) * gap + 1 for n, gap in zip(kernel, gaps, strict=True)]
            raise ShapeError(f"{name}: padding {list(pads)} must be at most half of what the kernel covers, {reach}")
    return kernel, steps, pads, gaps


def _pooled(
    name: str,
    shape: Ints,
    ndim: int,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Ints:
    kernel, steps, pads, gaps = geometry(name, ndim, kernel_size, stride, padding, dilation)
    check_images(name, ndim, shape)
    found = tuple([pooled_length(*each, ceil_mode) for each in zip(shape[-ndim:], kernel, steps, pads, gaps, strict=True)])
    if any(n < 1 for n in found):
        raise ShapeError(
            f"{name}: a kernel of {list(kernel)} does not fit 'self' of shape {list(shape)} with padding {list(pads)}"
        )
    return (*shape[:-ndim], *found)


def _ordered(name: str, dtype: DType) -> None:
    if dtype.category == COMPLEX or dtype is bool_:
        raise DTypeError(texts.undefined_for(name, dtype))


def _max_pool(name: str, ndim: int, self: Tensor, *rest: object) -> tuple[Out, Out]:
    """(largest elements, their places in the flattened image) of windows."""
    _ordered(name, self.dtype)
    shape = _pooled(name, self.array.shape, ndim, *rest)  # type: ignore[arg-type]
    strides = as_images(shape, self)
    return Out(shape, self.dtype, strides), Out(shape, int64, strides, exact=True)


def _avg_pool(
    name: str,
    ndim: int,
    self: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Out:
    if (self.dtype.category < FLOAT and self.dtype is not int64) or self.dtype.category == COMPLEX:
        raise DTypeError(texts.undefined_for(name, self.dtype))
    if divisor == 0:
        raise ArgumentError(f"{name}: divisor_override must not be 0")
    shape = _pooled(name, self.array.shape, ndim, kernel_size, stride, padding, (1,), ceil_mode)
    return Out(shape, self.dtype, as_images(shape, self))


def _avg_pool_backward(name: str, ndim: int, grad_output: Tensor, self: Tensor, *rest: object) -> Out:
    wanted = _avg_pool(name, ndim, self, *rest)  # type: ignore[arg-type]
    return _like_self(name, grad_output, self, wanted.shape)


def _like_self(name: str, grad_output: Tensor, self: Tensor, wanted: Ints) -> Out:
    if grad_output.array.shape != wanted:
        raise ShapeError(texts.wrong_shape(name, "grad_output", wanted, grad_output.array.shape))
    if grad_output.dtype is not self.dtype:
        raise DTypeError(texts.wrong_dtype(name, "grad_output", self.dtype, grad_output.dtype))
    return Out(self.array.shape, self.dtype, as_images(self.array.shape, self))


# ---- windows that are chosen to give an output of some size


def _adaptive(name: str, ndim: int, self: Tensor, output_size: Sequence[int]) -> Ints:
    size = spread(name, "output_size", output_size, ndim)
    at_least(name, "output_size", size, 0)
    check_images(name, ndim, self.array.shape)
    return (*self.array.shape[:-ndim], *size)


def _adaptive_avg(name: str, ndim: int, self: Tensor, output_size: Sequence[int]) -> Out:
    if self.dtype.category != FLOAT:
        raise DTypeError(texts.undefined_for(name, self.dtype))
    shape = _adaptive(name, ndim, self, output_size)
    return Out(shape, self.dtype, as_images(shape, self))


def _adaptive_avg_backward(name: str, ndim: int, grad_output: Tensor, self: Tensor) -> Out:
    check_images(name, ndim, self.array.shape)
    return _like_self(name, grad_output, self, (*self.array.shape[:-ndim], *grad_output.array.shape[-ndim:]))


def _adaptive_max(name: str, ndim: int, self: Tensor, output_size: Sequence[int]) -> tuple[Out, Out]:
    if self.dtype.category != FLOAT:
        raise DTypeError(texts.undefined_for(name, self.dtype))
    if len(output_size) != ndim:
        raise ShapeError(texts.wrong_output_size(name, ndim, output_size))
    shape = _adaptive(name, ndim, self, output_size)
    strides = as_images(shape, self)
    return Out(shape, self.dtype, strides), Out(shape, int64, strides, exact=True)


def _fractional(
    name: str, ndim: int, self: Tensor, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Tensor
) -> tuple[Out, Out]:
    kernel = spread(name, "kernel_size", kernel_size, ndim)
    size = spread(name, "output_size", output_size, ndim)
    shape = self.array.shape
    check_images(name, ndim, shape)
    at_least(name, "kernel_size", kernel, 1)
    if self.dtype.category != FLOAT or random_samples.dtype is not self.dtype:
        raise DTypeError(
            f"{name}: 'self' and 'random_samples' must have one floating-point dtype, got {self.dtype.name} and "
            f"{random_samples.dtype.name}"
        )
    for n, k, o in zip(shape[-ndim:], kernel, size, strict=True):
        # Windows of three dims must leave room for a shift, as in torch.
        if o + k - 1 > n - (ndim == 3) or o < 1:
            raise ShapeError(
                f"{name}: windows of {list(kernel)} for an output of {list(size)} do not fit 'self' of shape {list(shape)}"
            )
    batch = shape[0] if len(shape) == ndim + 2 else 1
    wanted = (batch, shape[-ndim - 1], ndim)
    given = random_samples.array.shape
    if len(given) != 3 or given[0] < wanted[0] or given[1:] != wanted[1:]:
        raise ShapeError(texts.wrong_shape(name, "random_samples", wanted, given))
    found = (*shape[:-ndim], *size)
    return Out(found, self.dtype), Out(found, int64, exact=True)


# fmt: off
SHAPES: ShapeTable = {
    "max_pool2d_with_indices.out": partial(_max_pool, "max_pool2d", 2),
    "max_pool3d_with_indices.out": partial(_max_pool, "max_pool3d", 3),
    "avg_pool2d.out": partial(_avg_pool, "avg_pool2d", 2),
    "avg_pool3d.out": partial(_avg_pool, "avg_pool3d", 3),
    "avg_pool2d_backward.grad_input": partial(_avg_pool_backward, "avg_pool2d_backward", 2),
    "avg_pool3d_backward.grad_input": partial(_avg_pool_backward, "avg_pool3d_backward", 3),
    "_adaptive_avg_pool2d.out": partial(_adaptive_avg, "adaptive_avg_pool2d", 2),
    "_adaptive_avg_pool3d.out": partial(_adaptive_avg, "adaptive_avg_pool3d", 3),
    "_adaptive_avg_pool2d_backward.out": partial(_adaptive_avg_backward, "adaptive_avg_pool2d_backward", 2),
    "_adaptive_avg_pool3d_backward.out": partial(_adaptive_avg_backward, "adaptive_avg_pool3d_backward", 3),
    "adaptive_max_pool2d.out": partial(_adaptive_max, "adaptive_max_pool2d", 2),
    "adaptive_max_pool3d.out": partial(_adaptive_max, "adaptive_max_pool3d", 3),
    "fractional_max_pool2d.output": partial(_fractional, "fractional_max_pool2d", 2),
    "fractional_max_pool3d.output": partial(_fractional, "fractional_max_pool3d", 3),
}
# fmt: on
