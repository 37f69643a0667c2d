"""Shape functions of convolutions, and of conversions between images and columns of windows.

Along each spatial dim, a window of `kernel` elements, `dilation` apart, moves in steps of `stride` over the input with `padding`
zeros at both ends. `positions` is the number of windows that fit.
"""

from __future__ import annotations

from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.images import check_images
from turnout_aten.shapes.layouts import as_convolved
from turnout_aten.shapes.specs import Out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor

    Ints = tuple[int, ...]

    from turnout_aten.shapes.specs import ShapeTable


def spread(name: str, argument: str, value: Sequence[int], ndim: int) -> Ints:
    """One number per spatial dim; a single number is used for all dims."""
    if len(value) == ndim:
        return tuple(value)
    if len(value) == 1:
        return tuple(value) * ndim
    many = "" if ndim == 1 else f" or {ndim}"
    raise ShapeError(f"{name}: '{argument}' must be one number{many}, got {list(value)}")


def at_least(name: str, argument: str, values: Ints, low: int) -> None:
    """Raise unless every number is at least `low`."""
    if any(v < low for v in values):
        raise ShapeError(f"{name}: '{argument}' must be at least {low}, got {list(values)}")


def positions(length: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """The number of windows that fit into one dim; 0 or less if none fits."""
    return (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def moves_of(
    name: str, ndim: int, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    output_padding: Sequence[int], transposed: bool,
) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """(stride, padding, dilation, output_padding) with a number for each spatial dim."""
    steps = spread(name, "stride", stride, ndim)
    pads = spread(name, "padding", padding, ndim)
    gaps = spread(name, "dilation", dilation, ndim)
    extra = spread(name, "output_padding", output_padding, ndim)
    at_least(name, "stride", steps, 1)
    at_least(name, "padding", pads, 0)
    at_least(name, "dilation", gaps, 1)
    at_least(name, "output_padding", extra, 0)
    for s, d, e in zip(steps, gaps, extra, strict=True):
        if transposed and e >= s and e >= d:
            raise ShapeError(f"{name}: output_padding {e} must be smaller than stride {s} or dilation {d}")
    return steps, pads, gaps, extra


def _ndim(name: str, shape: Ints, kernel: Ints) -> int:
    """The number of spatial dims."""
    if len(shape) < 3 or len(kernel) != len(shape):
        raise ShapeError(
            f"{name}: 'input' [N, C, ...] and 'weight' must have the same number of dims, at least 3; got shapes "
            f"{list(shape)} and {list(kernel)}"
        )
    return len(shape) - 2


def convolved(shape: Ints, kernel: Ints, moves: tuple[Ints, Ints, Ints, Ints], transposed: bool, groups: int) -> Ints:
    """The shape of the result for an input and weights of these shapes."""
    lengths = [
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1 if transposed else positions(n, k, s, p, d)
        for n, k, s, p, d, e in zip(shape[2:], kernel[2:], *moves, strict=True)
    ]
    return (shape[0], kernel[1] * groups if transposed else kernel[0], *lengths)


def check_gradient(
    grad: Ints, shape: Ints, kernel: Ints, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
    transposed: bool, output_padding: Sequence[int], groups: int,
) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """Raise unless a gradient has the shape of the result of a convolution of these shapes. Returns what `moves_of` does."""
    name = "convolution_backward"
    moves = moves_of(name, _ndim(name, shape, kernel), stride, padding, dilation, output_padding, transposed)
    _check_channels(name, shape, kernel, None, transposed, groups)
    wanted = convolved(shape, kernel, moves, transposed, groups)
    if tuple(grad) != wanted:
        raise ShapeError(texts.wrong_shape(name, "grad_output", wanted, grad))
    return moves


def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Out:
    """[N, C, *S] with weights [O, C / groups, *K], or [C, O / groups, *K] transposed."""
    shape, kernel = input.array.shape, weight.array.shape
    moves = moves_of("convolution", _ndim("convolution", shape, kernel), stride, padding, dilation, output_padding, transposed)
    _, pads, gaps, _ = moves
    _check_channels("convolution", shape, kernel, bias, transposed, groups)
    for operand in (weight, bias):
        if operand is not None and operand.dtype is not input.dtype:
            raise DTypeError(
                f"convolution: 'input', 'weight' and 'bias' must have one dtype, got {input.dtype.name} and {operand.dtype.name}"
            )
    made = convolved(shape, kernel, moves, transposed, groups)
    found = list(made[2:])
    # differs from torch: a `conv_transpose2d` whose result has no element is an error. PyTorch gives it for some batches.
    if any(m < (1 if not transposed or n else 0) or k < 1 for m, n, k in zip(found, shape[2:], kernel[2:], strict=True)):
        if transposed and all(kernel[2:]):
            raise ShapeError(
                f"convolution: padding {list(pads)} leaves nothing of the transposed result, whose lengths would be {found}"
            )
        raise ShapeError(
            f"convolution: a kernel of {list(kernel[2:])} with dilation {list(gaps)} does not fit the padded input, "
            f"{[m + 2 * q for m, q in zip(shape[2:], pads, strict=True)]}"
        )
    return Out(made, input.dtype, as_convolved(made, input, weight))


def _check_channels(name: str, shape: Ints, kernel: Ints, bias: Tensor | None, transposed: bool, groups: int) -> None:
    if groups < 1:
        raise ArgumentError(texts.not_positive(name, "groups", groups))
    if kernel[0] % groups or kernel[0] < groups:
        raise ShapeError(f"{name}: groups {groups} must divide the first dim of 'weight', got shape {list(kernel)}")
    wanted = kernel[0] if transposed else kernel[1] * groups
    if shape[1] != wanted:
        raise ShapeError(
            f"{name}: 'weight' of shape {list(kernel)} with {groups} groups takes {wanted} channels, 'input' has shape "
            f"{list(shape)}"
        )
    channels = kernel[1] * groups if transposed else kernel[0]
    if bias is not None and bias.array.shape != (channels,):
        raise ShapeError(texts.wrong_shape(name, "bias", (channels,), bias.array.shape))


def im2col(
    self: Tensor, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> Out:
    """[N, C, H, W] -> [N, C * kernel, windows]; without N too."""
    shape = self.array.shape
    check_images("im2col", 2, shape)
    kernel, counts = _windows("im2col", shape[-2:], kernel_size, dilation, padding, stride)
    return Out((*shape[:-3], shape[-3] * kernel[0] * kernel[1], counts[0] * counts[1]), self.dtype)


def _windows(
    name: str, lengths: Ints, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> tuple[Ints, Ints]:
    """(kernel, windows along each dim)."""
    kernel = spread(name, "kernel_size", kernel_size, 2)
    gaps, pads = spread(name, "dilation", dilation, 2), spread(name, "padding", padding, 2)
    steps = spread(name, "stride", stride, 2)
    at_least(name, "kernel_size", kernel, 1)
    at_least(name, "dilation", gaps, 1)
    at_least(name, "padding", pads, 0)
    at_least(name, "stride", steps, 1)
    counts = tuple([positions(*each) for each in zip(lengths, kernel, steps, pads, gaps, strict=True)])
    if any(c < 1 for c in counts):
        raise ShapeError(
            f"{name}: a kernel of {list(kernel)} with dilation {list(gaps)} does not fit {list(lengths)} with padding "
            f"{list(pads)}"
        )
    return kernel, counts


def col2im(
    self: Tensor,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Out:
    """[N, C * kernel, windows] -> [N, C, *output_size]; without N too."""
    shape = self.array.shape
    size = spread("col2im", "output_size", output_size, 2)
    at_least("col2im", "output_size", size, 1)
    check_images("col2im", 1, shape)  # [N, C * kernel, windows]
    kernel, counts = _windows("col2im", size, kernel_size, dilation, padding, stride)
    area = kernel[0] * kernel[1]
    if shape[-2] % area or shape[-1] != counts[0] * counts[1]:
        raise ShapeError(
            f"col2im: 'self' of shape {list(shape)} must have {counts[0] * counts[1]} columns, and a multiple of {area} as rows"
        )
    return Out((*shape[:-2], shape[-2] // area, *size), self.dtype)


# fmt: off
SHAPES: ShapeTable = {
    "convolution.out": convolution,
    "im2col.out": im2col,
    "col2im.out": col2im,
}
# fmt: on
