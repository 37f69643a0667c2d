"""The `.vec` overloads of interpolation, which take either a size or scales."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from turnout.errors import ArgumentError, ShapeError
from turnout_aten import operators as aten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor


def _size(input: Tensor, output_size: Any, scale_factors: Any) -> tuple[Sequence[int], Sequence[float | None]]:
    """(output size, scales). The scales are None if a size is given."""
    ndim = input.ndim - 2
    if (output_size is None) == (scale_factors is None):
        raise ArgumentError("upsample: give either output_size or scale_factors")
    if output_size is not None:
        return output_size, (None,) * ndim
    if len(scale_factors) != ndim:
        raise ShapeError(f"upsample: scale_factors must be {ndim} numbers, got {list(scale_factors)}")
    if not all(math.isfinite(s) for s in scale_factors):
        raise ArgumentError(f"upsample: scale_factors must be finite, got {list(scale_factors)}")
    return [int(n * s) for n, s in zip(input.shape[2:], scale_factors, strict=True)], scale_factors


def _copied(op: Any, input: Tensor, output_size: Any, scale_factors: Any) -> Tensor:
    size, scales = _size(input, output_size, scale_factors)
    return op(input, size, *scales)


def _mixed(op: Any, input: Tensor, output_size: Any, align_corners: bool, scale_factors: Any) -> Tensor:
    size, scales = _size(input, output_size, scale_factors)
    return op(input, size, align_corners, *scales)


def upsample_nearest1d_vec(input: Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None) -> Tensor:
    """Nearest neighbour: the element before the coordinate."""
    return _copied(aten.upsample_nearest1d, input, output_size, scale_factors)


def upsample_nearest2d_vec(input: Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None) -> Tensor:
    """With two dims."""
    return _copied(aten.upsample_nearest2d, input, output_size, scale_factors)


def upsample_nearest3d_vec(input: Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None) -> Tensor:
    """With three."""
    return _copied(aten.upsample_nearest3d, input, output_size, scale_factors)


def upsample_nearest_exact1d_vec(
    input: Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None
) -> Tensor:
    """Exact nearest neighbour: the element with the nearest centre."""
    return _copied(aten._upsample_nearest_exact1d, input, output_size, scale_factors)


def upsample_nearest_exact2d_vec(
    input: Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None
) -> Tensor:
    """With two dims."""
    return _copied(aten._upsample_nearest_exact2d, input, output_size, scale_factors)


def upsample_nearest_exact3d_vec(
    input: Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None
) -> Tensor:
    """With three."""
    return _copied(aten._upsample_nearest_exact3d, input, output_size, scale_factors)


def upsample_linear1d_vec(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scale_factors: Sequence[float] | None
) -> Tensor:
    """Linear, between two neighbours."""
    return _mixed(aten.upsample_linear1d, input, output_size, align_corners, scale_factors)


def upsample_bilinear2d_vec(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scale_factors: Sequence[float] | None
) -> Tensor:
    """With two dims."""
    return _mixed(aten.upsample_bilinear2d, input, output_size, align_corners, scale_factors)


def upsample_trilinear3d_vec(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scale_factors: Sequence[float] | None
) -> Tensor:
    """With three."""
    return _mixed(aten.upsample_trilinear3d, input, output_size, align_corners, scale_factors)


def upsample_bicubic2d_vec(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scale_factors: Sequence[float] | None
) -> Tensor:
    """Bicubic: between four neighbours along each of two dims."""
    return _mixed(aten.upsample_bicubic2d, input, output_size, align_corners, scale_factors)


def upsample_bilinear2d_aa_vec(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scale_factors: Sequence[float] | None
) -> Tensor:
    """Bilinear, with smoothing when the image shrinks."""
    return _mixed(aten._upsample_bilinear2d_aa, input, output_size, align_corners, scale_factors)


def upsample_bicubic2d_aa_vec(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scale_factors: Sequence[float] | None
) -> Tensor:
    """Cubic, smoothed."""
    return _mixed(aten._upsample_bicubic2d_aa, input, output_size, align_corners, scale_factors)


def upsample_lanczos2d_aa_vec(
    input: Tensor, output_size: Sequence[int] | None, align_corners: bool, scale_factors: Sequence[float] | None
) -> Tensor:
    """Lanczos, smoothed."""
    return _mixed(aten._upsample_lanczos2d_aa, input, output_size, align_corners, scale_factors)
