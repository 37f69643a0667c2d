"""Convolutions of few products, and their gradients, by one launch each: a thread adds the products of a position or a weight.

cuDNN has to be told of a convolution, which takes the host longer than such a kernel runs, and windows that are copied for a
product of matrices take several launches.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from turnout_arrays.convolutions import spread
from turnout_aten.shapes.convolutions import check_gradient
from turnout_cuda.floats import Kernels, computed, kind
from turnout_cuda.images import MOST
from turnout_cuda.programs import MOST_BLOCKS, NARROW, Programs, name_of

Ints = tuple[int, ...]
Window = tuple[Sequence[int], Sequence[int], Sequence[int]]

# Products up to which one launch is better: at a fifth of the rate of an H200 in float32 they take 40 us, about as long as the
# host needs to call cuDNN or to launch the copies of windows. An estimate: benchmark rows have sizes on both sides.
PRODUCTS = 1 << 28
# Products of one sum, which a thread adds one after the other: so many take it as long as the above.
DEPTH = 1 << 11
_THREADS = 128
_PARTS = 1024  # blocks that keep any GPU busy
_BLOCKS = 128  # fewer would leave many of a GPU's processors idle: then a thread has one channel, or a warp one weight
_CHANNELS = 8  # of a thread, as in kernels/convolutions.cu
_ROWS, _COLUMNS = 8, 4  # of weights of a warp, as in kernels/convolutions.cu
_LINES, _ELEMENTS = 4, 9  # of a thread, where each group has one channel, as in kernels/convolutions.cu


def kernels(xp: Any, programs: Programs) -> dict[str, Any]:
    """The rows of this module."""
    return Direct(xp, programs).rows()


class Direct(Kernels):
    """The rows, which leave convolutions of more products to others. Other methods take contiguous arrays of one dtype."""

    def dims(self, read: Ints, positions: Ints, kernel: Ints, window: Window) -> Ints:
        """(length, count, kernel, stride, padding, dilation) of each of three dims."""
        ndim = len(kernel)
        given = [spread(each, ndim) for each in window]
        each = [n for dim in zip(read, positions, kernel, *given, strict=True) for n in dim]
        return (*(1, 1, 1, 1, 0, 1) * (3 - ndim), *each)

    def serves(self, *arrays: Any, window: Window) -> bool:
        """Whether kernels can number the elements of arrays, and the places of windows."""
        fits = all(0 < array.size < NARROW for array in arrays)
        return fits and max(*window[0], *window[1], *window[2], *[n for a in arrays for n in a.shape]) < MOST

    def is_few(self, weight: Any, small: Any, inputs: int, groups: int) -> bool:
        """Whether products are few, with weights at all positions of `small`, of which sums have those of so many channels. Where
        a channel is a group, nothing is read twice."""
        products = weight.size * small.shape[0] * prod(small.shape[2:])
        return _is_alone(weight, groups) or bool(products <= PRODUCTS and inputs * prod(weight.shape[2:]) <= DEPTH)

    def convolve(self, x: Any, weight: Any, bias: Any, made: Any, window: Window, groups: int, back: bool) -> None:
        """Write the convolution of `x`, or with `back` the transposed one."""
        dims = self.dims(x.shape[2:], made.shape[2:], weight.shape[2:], window)
        given = (x, weight, weight if bias is None else bias, made)
        if _is_alone(weight, groups):
            self._convolve_alone(given, (x.shape[0] * groups, groups, int(back), int(bias is not None)), dims)
            return
        rows, columns = weight.shape[0] // groups, weight.shape[1]
        inputs, outputs = (rows, columns) if back else (columns, rows)
        count = x.shape[0] * prod(made.shape[2:])
        block = min(-(-count // 32) * 32, _THREADS)
        blocks = -(-count // block)
        tile = _CHANNELS if outputs >= 4 and blocks * groups * -(-outputs // _CHANNELS) >= _BLOCKS else 1
        grid = (blocks, groups * -(-outputs // tile))
        ints = (x.shape[0], groups, inputs, outputs, int(back), int(bias is not None), int(tile > 1))
        self.programs.start("convolve", name_of(x), grid, (block,), (*given, *ints, *dims))

    def _convolve_alone(self, given: tuple[Any, ...], ints: Ints, dims: Ints) -> None:
        depth, height, width = dims[1::6]  # positions
        places, planes = depth * -(-height // _LINES) * width, ints[0]
        block = min(-(-places // 32) * 32, _THREADS)
        grid = (-(-places // block), min(planes, MOST_BLOCKS))
        self.programs.start("convolve_alone", name_of(given[0]), grid, (block,), (*given, *ints, *dims))

    def of_weights(self, small: Any, large: Any, made: Any, window: Window, groups: int) -> None:
        """Write the gradient of weights, where `small` has an element for each position and `large` is what windows lie over."""
        dims = self.dims(large.shape[2:], small.shape[2:], made.shape[2:], window)
        if _is_alone(made, groups):
            self._of_weights_alone(small, large, made, groups, dims)
            return
        rows, columns = made.shape[0] // groups, made.shape[1]
        count = groups * -(-rows // _ROWS) * -(-columns // _COLUMNS) * prod(made.shape[2:])
        tiled = rows * columns >= 16 and count >= _BLOCKS
        count = count if tiled else made.size
        args = (small, large, made, small.shape[0], groups, rows, columns, int(tiled), *dims)
        self.programs.over_rows("convolve_backward", name_of(small), count, small.shape[0] * prod(small.shape[2:]), args)

    def _of_weights_alone(self, small: Any, large: Any, made: Any, groups: int, dims: Ints) -> None:
        name, images, elements = name_of(small), small.shape[0], prod(made.shape[2:])
        parts = self.xp.empty((min(images, -(-_PARTS // groups)), made.size), computed(name))
        block = 32 if prod(small.shape[2:]) <= 64 else 256
        grid = (groups, len(parts), -(-elements // _ELEMENTS))
        self.programs.start("convolve_alone_backward", name, grid, (block,), (small, large, parts, images, groups, *dims))
        args = (parts, made, len(parts), made.size)
        self.programs.over_elements("convolve_alone_total", name, made.size, args)

    # ---- rows

    def rows(self) -> dict[str, Any]:
        return {"convolution.out": self.forward, "convolution_backward": self.backward}

    def forward(
        self, input: Any, weight: Any, bias: Any, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
        transposed: bool, output_padding: Sequence[int], groups: int, out: Any,
    ) -> Any:  # fmt: skip
        window = (stride, padding, dilation)
        if kind(input, weight, out) is None or not 3 <= input.ndim <= 5 or out.shape[1] > MOST_BLOCKS:
            return NotImplemented
        inputs = weight.shape[0] // groups if transposed else weight.shape[1]
        if not self.serves(input, weight, out, window=window):
            return NotImplemented
        if not self.is_few(weight, input if transposed else out, inputs, groups):
            return NotImplemented
        x, w, made = self.arrays.packed(input), self.arrays.packed(weight), self.arrays.target(out, out.dtype)
        if not self.programs.apart(made, x, w):  # what is read must not be written
            made = self.xp.empty(out.shape, out.dtype)
        self.convolve(x, w, None if bias is None else self.arrays.packed(bias), made, window, groups, transposed)
        return self.arrays.deliver(made, out)

    def backward(
        self, grad_output: Any, input: Any, weight: Any, bias_sizes: Any, stride: Sequence[int], padding: Sequence[int],
        dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int, output_mask: Sequence[bool],
    ) -> Any:  # fmt: skip
        arrays, window = (grad_output, input, weight), (stride, padding, dilation)
        check_gradient(grad_output.shape, input.shape, weight.shape, *window, transposed, output_padding, groups)
        if kind(*arrays) is None or input.ndim > 5 or input.shape[1] > MOST_BLOCKS:
            return NotImplemented
        lie = input.flags.c_contiguous and weight.flags.c_contiguous  # else the results lie otherwise
        if not lie or not self.serves(*arrays, window=window):
            return NotImplemented
        inputs = weight.shape[1] if transposed else weight.shape[0] // groups
        if not self.is_few(weight, input if transposed else grad_output, inputs if output_mask[0] else 1, groups):
            return NotImplemented
        grad = self.arrays.packed(grad_output)
        found: list[Any] = [None, None, None]
        if output_mask[0]:
            found[0] = self.xp.empty(input.shape, input.dtype)
            self.convolve(grad, weight, None, found[0], window, groups, not transposed)
        if output_mask[1]:
            found[1] = self.xp.empty(weight.shape, weight.dtype)
            small, large = (input, grad) if transposed else (grad, input)
            self.of_weights(small, large, found[1], window, groups)
        if output_mask[2]:
            found[2] = of_bias(self.xp, grad_output)
        return tuple(found)


def _is_alone(weight: Any, groups: int) -> bool:
    """Whether each group has one channel."""
    return bool(weight.shape[1] == 1 == weight.shape[0] // groups)


def of_bias(xp: Any, grad: Any) -> Any:
    """The gradient of a bias: the sum of each channel."""
    axes = (0, *range(2, grad.ndim))
    return xp.add.reduce(grad.astype(computed(name_of(grad)), copy=False), axes).astype(grad.dtype, copy=False)
