"""Pooling: the largest element or the mean of windows, and the gradient of the mean. Planes are row-major, of three dims."""

from __future__ import annotations

from typing import Any

from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray, memory_of, new_array
from turnout_opencl.backend import copy, row_major_of
from turnout_opencl.convolutions import three
from turnout_opencl.grids import raw

Ints = tuple[int, ...]


class Pool:
    """Windows over the last dims of an array."""

    def __init__(self, ndim: int, kernel: Any = (1,), stride: Any = (), padding: Any = (0,), dilation: Any = (1,)) -> None:
        self.ndim = ndim
        self.kernel = three(kernel, ndim, 1)
        self.steps = (three(stride or kernel, ndim, 1), three(padding, ndim, 0), three(dilation, ndim, 1))

    def _dims(self, array: ClArray) -> Ints:
        return three(array.shape[-self.ndim :], self.ndim, 1) if self.ndim > 1 else (1, 1, array.shape[-1])

    def start(
        self, name: str, out: ClArray, given: ClArray, indices: ClArray | None = None, *, op: int = 0, extra: Ints = ()
    ) -> None:
        """Queue a kernel of the template from `given` into `out`, and into `indices` if it has them."""
        source = row_major_of(given, out.dtype)
        made = out if out.is_contiguous else new_array(out.place, out.shape, out.dtype)
        places = indices if indices is None or indices.is_contiguous else new_array(out.place, indices.shape, indices.dtype)
        bases, buffers = memory_of(made, source, places)
        call = raw(
            op, out.size, self._dims(out), (), bases, extra=extra, inner_sizes=(*self.kernel, *self._dims(given)),
            inner_steps=self.steps,
        )  # fmt: skip
        out.place.start("pool", out.dtype, name, call, buffers if name in ("largest", "adaptive") else buffers[:2], out.size)
        copy(out, made)
        if indices is not None and places is not None:
            copy(indices, places)


def max_pool(ndim: int) -> Any:
    """The kernel for a number of dims."""

    def kernel(
        self: ClArray, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, out: ClArray, indices: ClArray
    ) -> None:
        Pool(ndim, kernel_size, stride, padding, dilation).start("largest", out, self, indices)

    return kernel


def avg_pool(ndim: int) -> Any:
    """The kernel for a number of dims."""

    def kernel(
        self: ClArray, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool, divisor: Any,
        out: ClArray,
    ) -> None:  # fmt: skip
        Pool(ndim, kernel_size, stride, padding).start("mean", out, self, extra=(divisor or 0, int(count_include_pad)))

    return kernel


def avg_pool_backward(ndim: int) -> Any:
    """The kernel for a number of dims."""

    def kernel(
        grad_output: ClArray, self: ClArray, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool,
        count_include_pad: bool, divisor: Any, out: ClArray,
    ) -> None:  # fmt: skip
        pool = Pool(ndim, kernel_size, stride, padding)
        pool.start("mean_slope", out, grad_output, extra=(divisor or 0, int(count_include_pad)))

    return kernel


def adaptive_avg_pool(ndim: int) -> Any:
    """The kernel for a number of dims."""

    def kernel(self: ClArray, output_size: Any, out: ClArray) -> None:
        Pool(ndim).start("adaptive", out, self)

    return kernel


def adaptive_avg_pool_backward(ndim: int) -> Any:
    """The kernel for a number of dims."""

    def kernel(grad_output: ClArray, self: ClArray, out: ClArray) -> None:
        Pool(ndim).start("adaptive_slope", out, grad_output)

    return kernel


def adaptive_max_pool(ndim: int) -> Any:
    """The kernel for a number of dims."""

    def kernel(self: ClArray, output_size: Any, out: ClArray, indices: ClArray) -> None:
        Pool(ndim).start("adaptive", out, self, indices, op=1)

    return kernel


# fmt: off
KERNELS = {
    "max_pool2d_with_indices.out":       Row(max_pool(2)),
    "max_pool3d_with_indices.out":       Row(max_pool(3)),
    "avg_pool2d.out":                    Row(avg_pool(2)),
    "avg_pool3d.out":                    Row(avg_pool(3)),
    "avg_pool2d_backward.grad_input":    Row(avg_pool_backward(2)),
    "avg_pool3d_backward.grad_input":    Row(avg_pool_backward(3)),
    "_adaptive_avg_pool2d.out":          Row(adaptive_avg_pool(2)),
    "_adaptive_avg_pool3d.out":          Row(adaptive_avg_pool(3)),
    "_adaptive_avg_pool2d_backward.out": Row(adaptive_avg_pool_backward(2)),
    "_adaptive_avg_pool3d_backward.out": Row(adaptive_avg_pool_backward(3)),
    "adaptive_max_pool2d.out":           Row(adaptive_max_pool(2)),
    "adaptive_max_pool3d.out":           Row(adaptive_max_pool(3)),
}
# fmt: on
