"""The `.vec` overloads of interpolation, which take either a size or scales."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from turnout.errors import ArgumentError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.errors import arguments as texts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout_aten.tensor.tensor import Tensor


def _size(input: Tensor, output_size: Any, scale_factors: Any) -> tuple[Sequence[int], Sequence[float | None]]:
    """(output size, scales). The scales are None if a size is given."""
    ndim = input.ndim - 2
    if (output_size is None) == (scale_factors is None):
        raise ArgumentError(texts.not_one_of_two("upsample", "output_size", "scale_factors"))
    if output_size is not None:
        return output_size, (None,) * ndim
    if len(scale_factors) != ndim:
        raise ShapeError(f"upsample: scale_factors must be {ndim} numbers, got {list(scale_factors)}")
    return scaled_size(input, scale_factors), scale_factors


def scaled_size(input: Tensor, scale_factors: Sequence[float]) -> list[int]:
    """The lengths of an image times their scales, without the fractions."""
    if not all(math.isfinite(s) for s in scale_factors):
        raise ArgumentError(f"upsample: scale_factors must be finite, got {list(scale_factors)}")
    return [int(n * s) for n, s in zip(input.shape[2:], scale_factors, strict=True)]


def _nearest(name: str) -> Callable[..., Tensor]:
    """The kernel of an operator that takes elements as they are."""

    def vec(input: Tensor, output_size: Any, scale_factors: Any) -> Tensor:
        size, scales = _size(input, output_size, scale_factors)
        return getattr(aten, name)(input, size, *scales)

    return vec


def _mixed(name: str) -> Callable[..., Tensor]:
    """The kernel of an operator that computes new elements."""

    def vec(input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any) -> Tensor:
        size, scales = _size(input, output_size, scale_factors)
        return getattr(aten, name)(input, size, align_corners, *scales)

    return vec


upsample_nearest1d_vec = _nearest("upsample_nearest1d")
upsample_nearest2d_vec = _nearest("upsample_nearest2d")
upsample_nearest3d_vec = _nearest("upsample_nearest3d")
upsample_nearest_exact1d_vec = _nearest("_upsample_nearest_exact1d")
upsample_nearest_exact2d_vec = _nearest("_upsample_nearest_exact2d")
upsample_nearest_exact3d_vec = _nearest("_upsample_nearest_exact3d")
upsample_linear1d_vec = _mixed("upsample_linear1d")
upsample_bilinear2d_vec = _mixed("upsample_bilinear2d")
upsample_trilinear3d_vec = _mixed("upsample_trilinear3d")
upsample_bicubic2d_vec = _mixed("upsample_bicubic2d")
upsample_bilinear2d_aa_vec = _mixed("_upsample_bilinear2d_aa")
upsample_bicubic2d_aa_vec = _mixed("_upsample_bicubic2d_aa")
upsample_lanczos2d_aa_vec = _mixed("_upsample_lanczos2d_aa")
