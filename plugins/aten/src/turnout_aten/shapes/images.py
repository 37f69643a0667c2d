"""Shape functions of operators that resize images: constant padding and interpolation."""

from __future__ import annotations

from turnout.dtypes import COMPLEX, FLOAT, bool_, uint8
from turnout.errors import DTypeError, ShapeError
from turnout_aten.dtypes import check_held
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.layouts import as_images
from turnout_aten.shapes.specs import Out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor


def constant_pad(self: Tensor, pad: Sequence[int], value: Any = 0) -> Out:
    """`pad` holds (before, after) for each dim, starting with the last. Negative numbers crop."""
    shape = list(self.array.shape)
    if len(pad) % 2 or len(pad) > 2 * len(shape):
        raise ShapeError(texts.odd_padding("constant_pad_nd", len(shape), pad))
    if isinstance(value, complex) and self.dtype.category != COMPLEX:
        raise DTypeError(texts.complex_into("constant_pad_nd", self.dtype))
    check_held(self.dtype, value, "constant_pad_nd", "value")
    for i in range(len(pad) // 2):
        dim = len(shape) - 1 - i
        shape[dim] += pad[2 * i] + pad[2 * i + 1]
        if shape[dim] < 0:
            raise ShapeError(texts.too_much_padding("constant_pad_nd", dim, self.array.shape[dim], pad[2 * i], pad[2 * i + 1]))
    made = tuple(shape)
    return Out(made, self.dtype, as_images(made, self))


def check_images(name: str, ndim: int, shape: tuple[int, ...], argument: str = "self", *, alone: bool = True) -> None:
    """Raise unless the shape is [N, C, *S], or [C, *S] where images may be `alone`, with elements in all dims but N."""
    least = ndim + (1 if alone else 2)
    if not least <= len(shape) <= ndim + 2 or 0 in shape[-ndim - 1 :]:
        raise ShapeError(texts.no_images(name, argument, least, ndim + 2, shape, ", none but the batch empty;"))


def _upsampled(ndim: int, self: Tensor, output_size: Sequence[int]) -> Out:
    shape = self.array.shape
    if len(output_size) != ndim:
        raise ShapeError(texts.wrong_output_size("", ndim, output_size))
    check_images("", ndim, shape, alone=False)
    if any(n < 1 for n in output_size):
        raise ShapeError(f"'output_size' must be positive, got {list(output_size)}")
    # differs from torch: `interpolate` of uint8 rounds what floats give. PyTorch's weights are integers, and its result can be
    # wrong by 1.
    dtype = self.dtype
    if dtype.category == COMPLEX or dtype is bool_ or (dtype.category < FLOAT and dtype is not uint8):
        raise DTypeError(texts.undefined_for("", dtype))
    made = (*shape[:2], *output_size)
    return Out(made, dtype, as_images(made, self))


def upsample1d(self: Tensor, output_size: Sequence[int], *rest: object) -> Out:
    """[N, C, L] in another length."""
    return _upsampled(1, self, output_size)


def upsample2d(self: Tensor, output_size: Sequence[int], *rest: object) -> Out:
    """[N, C, H, W] in another height and width."""
    return _upsampled(2, self, output_size)


def upsample3d(self: Tensor, output_size: Sequence[int], *rest: object) -> Out:
    """[N, C, D, H, W] in another depth, height and width."""
    return _upsampled(3, self, output_size)


def bicubic_backward(grad_output: Tensor, output_size: Sequence[int], input_size: Sequence[int], *rest: object) -> Out:
    """upsample_backward, row-major."""
    made = upsample_backward(grad_output, output_size, input_size)
    return Out(made.shape, made.dtype)


def upsample_backward(grad_output: Tensor, output_size: Sequence[int], input_size: Sequence[int], *rest: object) -> Out:
    """The gradient with respect to the input, in `input_size`."""
    shape = grad_output.array.shape
    wanted = (*input_size[:2], *output_size)
    if len(input_size) != len(output_size) + 2 or shape != wanted:
        raise ShapeError(f"'grad_output' must have shape {list(wanted)} for an input of {list(input_size)}, got {list(shape)}")
    # differs from torch: `upsample_bicubic2d_backward` refuses complex tensors, as the resizing does. PyTorch computes it.
    if grad_output.dtype.category == COMPLEX:
        raise DTypeError(texts.undefined_for("", grad_output.dtype))
    made = tuple(input_size)
    return Out(made, grad_output.dtype, as_images(made, grad_output))


# fmt: off
SHAPES: ShapeTable = {
    "constant_pad_nd.out": constant_pad,
    "upsample_nearest1d.out": upsample1d,
    "upsample_nearest1d_backward.grad_input": upsample_backward,
    "upsample_nearest2d.out": upsample2d,
    "upsample_nearest2d_backward.grad_input": upsample_backward,
    "upsample_nearest3d.out": upsample3d,
    "upsample_nearest3d_backward.grad_input": upsample_backward,
    "_upsample_nearest_exact1d.out": upsample1d,
    "_upsample_nearest_exact1d_backward.grad_input": upsample_backward,
    "_upsample_nearest_exact2d.out": upsample2d,
    "_upsample_nearest_exact2d_backward.grad_input": upsample_backward,
    "_upsample_nearest_exact3d.out": upsample3d,
    "_upsample_nearest_exact3d_backward.grad_input": upsample_backward,
    "upsample_linear1d.out": upsample1d,
    "upsample_linear1d_backward.grad_input": upsample_backward,
    "upsample_bilinear2d.out": upsample2d,
    "upsample_bilinear2d_backward.grad_input": upsample_backward,
    "upsample_trilinear3d.out": upsample3d,
    "upsample_trilinear3d_backward.grad_input": upsample_backward,
    "upsample_bicubic2d.out": upsample2d,
    "upsample_bicubic2d_backward.grad_input": bicubic_backward,
    "_upsample_bilinear2d_aa.out": upsample2d,
    "_upsample_bilinear2d_aa_backward.grad_input": upsample_backward,
    "_upsample_bicubic2d_aa.out": upsample2d,
    "_upsample_bicubic2d_aa_backward.grad_input": bicubic_backward,
    "_upsample_lanczos2d_aa.out": upsample2d,
    "_upsample_lanczos2d_aa_backward.grad_input": bicubic_backward,
}
# fmt: on
