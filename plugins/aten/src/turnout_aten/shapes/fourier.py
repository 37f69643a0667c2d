"""Shapes of the three Fourier transforms that kernels compute: real to complex, complex to real, complex to complex."""

from __future__ import annotations

from turnout.dtypes import COMPLEX, FLOAT
from turnout.errors import ArgumentError, DTypeError, ShapeError
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.shapes.layouts import as_operands, transformed_last
from turnout_aten.shapes.specs import Out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.dtypes import DType
    from turnout_aten.shapes.specs import ShapeTable
    from turnout_aten.tensor.tensor import Tensor

NONE, ROOT, BY_N = range(3)  # how kernels scale a transform


def _transformed(self: Tensor, dim: Sequence[int], normalization: int, is_complex: bool) -> tuple[list[int], list[int]]:
    """The shape as a list, and the dims counted from 0."""
    if normalization not in (NONE, ROOT, BY_N):
        raise ArgumentError(f"fft: normalization must be 0 (none), 1 (by the root of n) or 2 (by n), got {normalization}")
    dtype: DType = self.dtype
    wanted = COMPLEX if is_complex else FLOAT
    if dtype.category != wanted or dtype.itemsize == 2:
        raise DTypeError(f"fft: expected {'complex' if is_complex else 'float32 or float64'} elements, got {dtype.name}")
    shape = list(self.array.shape)
    dims = [wrap_dim(d, len(shape)) for d in dim]
    for d in dims:
        if shape[d] < 1:
            raise ShapeError(f"fft: dim {d} of shape {shape} has no elements to transform")
    return shape, dims


def real_to_complex(self: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Out:
    """With `onesided`, only the first half of the result is made along the last of `dim`."""
    shape, dims = _transformed(self, dim, normalization, False)
    if onesided:
        shape[dims[-1]] = shape[dims[-1]] // 2 + 1
    made = tuple(shape)
    return Out(made, self.dtype.to_complex(), transformed_last(made, self, dims, last=True))


def complex_to_real(self: Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Out:
    """The inverse of a one-sided transform; the last of `dim` gets `last_dim_size` elements."""
    shape, dims = _transformed(self, dim, normalization, True)
    if last_dim_size < 1:
        raise ShapeError(f"fft: the result cannot have {last_dim_size} elements along dim {dims[-1]}")
    half = last_dim_size // 2 + 1
    if shape[dims[-1]] != half:
        raise ShapeError(f"fft: {last_dim_size} elements along dim {dims[-1]} are made of {half}, got {shape[dims[-1]]}")
    shape[dims[-1]] = last_dim_size
    made = tuple(shape)
    return Out(made, self.dtype.to_real(), transformed_last(made, self, dims, last=True))


def complex_to_complex(self: Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Out:
    """The input's shape."""
    shape, dims = _transformed(self, dim, normalization, True)
    made = tuple(shape)
    strides = transformed_last(made, self, dims, last=False) if dims else as_operands(made, self)
    return Out(made, self.dtype, strides)


# fmt: off
SHAPES: ShapeTable = {
    "_fft_r2c.out": real_to_complex,
    "_fft_c2r.out": complex_to_real,
    "_fft_c2c.out": complex_to_complex,
}
# fmt: on
