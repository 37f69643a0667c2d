"""Pooling: the largest element or the mean of each window, and the gradient of the mean.

A thread has a window, or a warp where windows are large and few. In gradients a thread has an element of the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from turnout_arrays.convolutions import spread
from turnout_cuda.floats import Kernels, kind
from turnout_cuda.images import MOST
from turnout_cuda.programs import NARROW, Programs, name_of

Table = dict[str, Any]
Ints = tuple[int, ...]

_LARGE = 64  # elements from which on a window is large
_FEW = 1 << 17  # windows that are too few to give every thread of a GPU one


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    made = _Pooling(xp, programs)
    table: Table = {}
    for ndim in (2, 3):
        table |= {
            f"max_pool{ndim}d_with_indices.out": made.max_pool(ndim),
            f"avg_pool{ndim}d.out": made.avg_pool(ndim),
            f"avg_pool{ndim}d_backward.grad_input": made.avg_pool_backward(ndim),
            f"adaptive_max_pool{ndim}d.out": made.adaptive_max_pool(ndim),
            f"_adaptive_avg_pool{ndim}d.out": made.adaptive_avg_pool(ndim),
            f"_adaptive_avg_pool{ndim}d_backward.out": made.adaptive_avg_pool_backward(ndim),
        }
    return table


def _dims(
    image: Ints, pooled: Ints, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> Ints | None:
    """(length, count, kernel, stride, padding, dilation) of each of three dims; None where a number is too large."""
    ndim = len(image)
    given = [spread(each, ndim) for each in (kernel, stride if len(stride) else kernel, padding, dilation)]
    each = [each for dim in zip(image, pooled, *given, strict=True) for each in dim]
    return (*(1, 1, 1, 1, 0, 1) * (3 - ndim), *each) if max(each) < MOST else None


def _even_dims(image: Ints, pooled: Ints) -> Ints | None:
    """The same for windows that cover the image evenly."""
    each = [each for n, m in zip(image, pooled, strict=True) for each in (n, m, 0, 1, 0, 1)]
    return (*(1, 1, 0, 1, 0, 1) * (3 - len(image)), *each) if max(each) < MOST else None


def _narrow(dims: Ints, *arrays: Any) -> int:
    """Whether positions are numbers of 32 bits, and the products that even windows are computed from."""
    each = zip(dims[::6], dims[1::6], dims[2::6], strict=True)
    products = [(length + 1) * (count + 1) for length, count, kernel in each if not kernel]
    return int(max(*[array.size for array in arrays], *products) < NARROW)


class _Pooling(Kernels):
    def largest(self, image: Any, out: Any, indices: Any, dims: Ints | None) -> Any:
        """The largest element of each window and its place in the image."""
        if dims is None or kind(image) is None or not image.size or not out.size:
            return NotImplemented
        given = self.arrays.packed(image)
        made, places = self.room(out, given), self.arrays.target(indices, self.xp.dtype("int64"))
        args = (given, made, places, made.size, _narrow(dims, image, made), *dims)
        if self.is_large(dims, made.size):
            self.programs.start("largest_of_large_windows", name_of(image), (-(-made.size // 4),), (32, 4), args)
        else:
            self.programs.over_elements("largest_of_windows", name_of(image), made.size, args)
        self.arrays.deliver(made, out)
        self.arrays.deliver(places, indices)
        return None

    def mean(self, image: Any, out: Any, dims: Ints | None, padded: bool = False, divisor: int | None = None) -> Any:
        """The mean of each window, where elements of the padding count as `padded` says."""
        return self.means("mean_of_windows", image, out, dims, padded, divisor, large="mean_of_large_windows")

    def mean_backward(self, grad: Any, out: Any, dims: Ints | None, padded: bool = False, divisor: int | None = None) -> Any:
        """The gradient of `mean` with respect to the image."""
        return self.means("mean_of_windows_backward", grad, out, dims, padded, divisor)

    def means(
        self, name: str, source: Any, out: Any, dims: Ints | None, padded: bool, divisor: int | None, *, large: str = ""
    ) -> Any:
        """Run a kernel of means, a thread for each element of the output, or the one for few `large` windows."""
        if dims is None or kind(source) is None or not source.size or not out.size:
            return NotImplemented
        given = self.arrays.packed(source)
        made = self.room(out, given)
        args = (given, made, made.size, _narrow(dims, source, made), int(padded), float(divisor or 0), *dims)
        if large and self.is_large(dims, made.size):
            self.programs.over_rows(large, name_of(source), made.size, self.elements(dims), args)
        else:
            self.programs.over_elements(name, name_of(source), made.size, args)
        return self.arrays.deliver(made, out)

    def room(self, out: Any, source: Any) -> Any:
        """The output if a kernel can write it, else a new array: windows overlap, so what is read must not be written."""
        made = self.arrays.target(out, source.dtype)
        return made if self.programs.apart(made, source) else self.xp.empty(out.shape, source.dtype)

    def elements(self, dims: Ints) -> int:
        """The elements of one window."""
        return prod(
            kernel or -(-length // count) for length, count, kernel in zip(dims[::6], dims[1::6], dims[2::6], strict=True)
        )

    def is_large(self, dims: Ints, windows: int) -> bool:
        return windows < _FEW and self.elements(dims) >= _LARGE

    # ---- rows

    def max_pool(self, ndim: int) -> Any:
        def kernel(
            self_: Any, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, out: Any, indices: Any
        ) -> Any:
            dims = _dims(self_.shape[-ndim:], out.shape[-ndim:], kernel_size, stride, padding, dilation)
            return self.largest(self_, out, indices, dims)

        return kernel

    def adaptive_max_pool(self, ndim: int) -> Any:
        def kernel(self_: Any, output_size: Any, out: Any, indices: Any) -> Any:
            return self.largest(self_, out, indices, _even_dims(self_.shape[-ndim:], out.shape[-ndim:]))

        return kernel

    def avg_pool(self, ndim: int) -> Any:
        def kernel(
            self_: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool, divisor: Any,
            out: Any,
        ) -> Any:  # fmt: skip
            dims = _dims(self_.shape[-ndim:], out.shape[-ndim:], kernel_size, stride, padding, (1,))
            return self.mean(self_, out, dims, count_include_pad, divisor)

        return kernel

    def avg_pool_backward(self, ndim: int) -> Any:
        def kernel(
            grad_output: Any, self_: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
            divisor: Any, out: Any,
        ) -> Any:  # fmt: skip
            dims = _dims(out.shape[-ndim:], grad_output.shape[-ndim:], kernel_size, stride, padding, (1,))
            return self.mean_backward(grad_output, out, dims, count_include_pad, divisor)

        return kernel

    def adaptive_avg_pool(self, ndim: int) -> Any:
        def kernel(self_: Any, output_size: Any, out: Any) -> Any:
            return self.mean(self_, out, _even_dims(self_.shape[-ndim:], out.shape[-ndim:]))

        return kernel

    def adaptive_avg_pool_backward(self, ndim: int) -> Any:
        def kernel(grad_output: Any, self_: Any, out: Any) -> Any:
            return self.mean_backward(grad_output, out, _even_dims(out.shape[-ndim:], grad_output.shape[-ndim:]))

        return kernel
