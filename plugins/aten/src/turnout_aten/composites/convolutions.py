"""Convolutions in terms of `convolution`. The weight's gradient is a product of the output's gradient and the input's windows."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from turnout.errors import ArgumentError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.layouts import lying
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.convolutions import check_gradient, spread
from turnout_aten.shapes.layouts import as_convolved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.tensor.tensor import Tensor

    Ints = Sequence[int] | int

# Maximum elements of the windows of one block of images; limits the memory of a weight's gradient.
_BLOCK = 1 << 24
# From this many positions on, the weight's gradient is made image by image.
_LONG = 64
# Elements of the copied windows of some images.
_COLUMNS = 1 << 20


def _convolved(
    name: str, ndim: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any,
    groups: int, transposed: bool = False, output_padding: Any = (0,),
) -> Tensor:  # fmt: skip
    """A convolution of [N, C, *S] or [C, *S]."""
    if input.ndim not in (ndim + 1, ndim + 2):
        raise ShapeError(texts.no_images(name, "input", ndim + 1, ndim + 2, input.shape))
    single = input.ndim == ndim + 1
    x = aten.unsqueeze(input, 0) if single else input
    made: Tensor = aten.convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    return aten.squeeze__dim(made, 0) if single else made


def _padded(
    name: str, ndim: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: str, dilation: Any,
    groups: int,
) -> Tensor:  # fmt: skip
    """`padding` is "valid" (none) or "same" (keeps the lengths). An odd amount has its extra zero at the end."""
    if padding == "valid":
        return _convolved(name, ndim, input, weight, bias, stride, (0,), dilation, groups)
    if padding != "same":
        raise ArgumentError(f"{name}: padding must be 'valid', 'same' or numbers, got {padding!r}")
    if any(s != 1 for s in stride):
        raise ArgumentError(f"{name}: padding='same' needs stride 1, got {list(stride)}")
    if weight.ndim != ndim + 2:
        raise ShapeError(texts.no_images(name, "weight", ndim + 2, ndim + 2, weight.shape))
    totals = [d * (k - 1) for d, k in zip(spread(name, "dilation", dilation, ndim), weight.shape[2:], strict=True)]
    behind = [v for total in reversed(totals) for v in (0, total % 2)]
    if any(behind):
        input = aten.constant_pad_nd(input, behind)
    return _convolved(name, ndim, input, weight, bias, stride, [t // 2 for t in totals], dilation, groups)


def _convolution(ndim: int) -> Callable[..., Tensor]:
    name = f"conv{ndim}d"

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints = 0, dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        return _convolved(name, ndim, input, weight, bias, stride, padding, dilation, groups)

    return conv


def _convolution_padding(ndim: int) -> Callable[..., Tensor]:
    """The same, padded by a word."""
    name = f"conv{ndim}d"

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: str = "valid", dilation: Ints = 1,
        groups: int = 1,
    ) -> Tensor:  # fmt: skip
        return _padded(name, ndim, input, weight, bias, stride, padding, dilation, groups)

    return conv


def _transposed(ndim: int) -> Callable[..., Tensor]:
    """The adjoint."""
    name = f"conv_transpose{ndim}d"

    def conv(
        input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Ints = 1, padding: Ints = 0,
        output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1,
    ) -> Tensor:  # fmt: skip
        return _convolved(name, ndim, input, weight, bias, stride, padding, dilation, groups, True, output_padding)

    return conv


conv1d = _convolution(1)
conv2d = _convolution(2)
conv3d = _convolution(3)
conv1d_padding = _convolution_padding(1)
conv2d_padding = _convolution_padding(2)
conv3d_padding = _convolution_padding(3)
conv_transpose1d = _transposed(1)
conv_transpose2d = _transposed(2)
conv_transpose3d = _transposed(3)


# ---- gradients


def convolution_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, bias_sizes: Sequence[int] | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # fmt: skip
    """The gradients of (input, weight, bias); None where the mask is False."""
    steps, pads, gaps, _ = check_gradient(
        grad_output.shape, input.shape, weight.shape, stride, padding, dilation, transposed, output_padding, groups
    )
    if weight.dtype.is_complex:
        input, weight = aten.conj(input), aten.conj(weight)
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        found[0] = _input_grad(grad_output, input.shape, weight, steps, pads, gaps, transposed, groups)
    if output_mask[1]:
        small, large = (input, grad_output) if transposed else (grad_output, input)
        found[1] = _weight_grad(small, large, weight.shape[2:], steps, pads, gaps, groups)
    if output_mask[2]:
        found[2] = aten.sum__dim_IntList(grad_output, [d for d in range(input.ndim) if d != 1])
    for at, grad in enumerate(found[:2]):
        if grad is not None:
            found[at] = lying(grad, as_convolved(grad.shape, input, weight))
    return found[0], found[1], found[2]


def _input_grad(
    grad: Tensor, shape: Sequence[int], weight: Tensor, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, groups: int,
) -> Tensor:  # fmt: skip
    if transposed:
        made = aten.convolution(grad, weight, None, stride, padding, dilation, False, (0,) * len(stride), groups)
        for dim, n in enumerate(shape[2:], 2):  # output_padding can make room for more windows
            if made.shape[dim] != n:
                made = aten.slice__Tensor(made, dim, 0, n, 1)
        return made
    # output_padding adds the elements at the end that no window reaches.
    extra = [
        n - ((m - 1) * s - 2 * p + d * (k - 1) + 1)
        for n, m, s, p, d, k in zip(shape[2:], grad.shape[2:], stride, padding, dilation, weight.shape[2:], strict=True)
    ]
    return aten.convolution(grad, weight, None, stride, padding, dilation, True, extra, groups)


def _weight_grad(
    small: Tensor, large: Tensor, kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int,
) -> Tensor:  # fmt: skip
    """[O, C / groups, *K]: the sum, over images and positions, of small [N, O, *P] times the windows of large [N, C, *S]."""
    ndim = len(kernel)
    n, rows, channels, area = small.shape[0], small.shape[1] // groups, large.shape[1] // groups, prod(small.shape[2:])
    if any(padding):
        large = aten.constant_pad_nd(large, [p for p in reversed(padding) for _ in range(2)])
    for dim, (m, k, s, d) in enumerate(zip(small.shape[2:], kernel, stride, dilation, strict=True), 2):
        # More windows than positions may fit; the surplus at the end is dropped.
        large = aten.slice__Tensor(large, dim, 0, (m - 1) * s + d * (k - 1) + 1, 1)
        large = aten.slice__Tensor(aten.unfold(large, dim, d * (k - 1) + 1, s), -1, 0, d * (k - 1) + 1, d)
    depth = channels * prod(kernel)
    if area >= _LONG and n:
        return aten.reshape(_by_image(small, large, groups, depth), (groups * rows, channels, *kernel))
    # [N, C, *P, *K] -> [N, groups, area, C * K]
    order = (0, *range(2, 2 + ndim), 1, *range(2 + ndim, 2 + 2 * ndim))
    step = max(1, _BLOCK // max(groups * depth * area, 1))
    total: Tensor | None = None
    for first in range(0, max(n, 1), step):
        here = min(step, n - first)
        part = aten.slice__Tensor(large, 0, first, first + here, 1)
        part = aten.permute(part, order) if groups == 1 else _by_group(part, ndim, groups)
        windows = aten.reshape(part, (groups, here * area, depth))
        left = aten.reshape(aten.slice__Tensor(small, 0, first, first + here, 1), (here, groups, rows, area))
        left = aten.reshape(aten.permute(left, (1, 2, 0, 3)), (groups, rows, here * area))
        made = aten.bmm(left, windows)
        total = made if total is None else aten.add__Tensor(total, made)
    assert total is not None
    return aten.reshape(total, (groups * rows, channels, *kernel))


def _by_image(small: Tensor, large: Tensor, groups: int, depth: int) -> Tensor:
    """The sum over images of small [N, O, *P] times windows [N, C, *P, *K], a product for each image and group.

    The positions come last, so that the windows are copied line by line, not kernel by kernel.
    """
    ndim = small.ndim - 2
    n, area = small.shape[0], prod(small.shape[2:])
    step = max(1, _COLUMNS // max(groups * depth * area, 1))
    windows = aten.permute(large, (0, 1, *range(2 + ndim, 2 + 2 * ndim), *range(2, 2 + ndim)))
    total: Tensor | None = None
    for first in range(0, n, step):
        here = min(step, n - first)
        right = aten.reshape(aten.slice__Tensor(windows, 0, first, first + here, 1), (here * groups, depth, area))
        rows = small.shape[1] // groups
        left = aten.reshape(aten.slice__Tensor(small, 0, first, first + here, 1), (here * groups, rows, area))
        products = aten.bmm(left, aten.transpose__int(right, 1, 2))
        made = aten.sum__dim_IntList(aten.reshape(products, (here, groups * rows * depth)), (0,))
        total = made if total is None else aten.add__Tensor(total, made)
    assert total is not None
    return total


def _by_group(windows: Tensor, ndim: int, groups: int) -> Tensor:
    """[N, C, *P, *K] -> [groups, N, *P, C / groups, *K]"""
    shape = windows.shape
    split = aten.reshape(windows, (shape[0], groups, shape[1] // groups, *shape[2:]))
    return aten.permute(split, (1, 0, *range(3, 3 + ndim), 2, *range(3 + ndim, 3 + 2 * ndim)))
