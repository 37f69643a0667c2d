"""Functions of `turnout.nn.functional` that resize, pad and sample images."""

from __future__ import annotations

from turnout.errors import ArgumentError, ModeError
from turnout.operators.tracebacks import shorten, shortening
from turnout_aten import operators as aten
from turnout_aten.composites.images import scaled_size
from turnout_aten.errors import arguments as texts
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as _functions
from turnout_aten.generated import nn_functional as _generated
from turnout_aten.nn.pooling import adaptive_avg_pool2d, adaptive_avg_pool3d

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor

# mode -> the operators for one, two and three spatial dims
COPYING = {"nearest": "upsample_nearest{}d", "nearest-exact": "_upsample_nearest_exact{}d"}
MIXING = {
    ("linear", 1): "upsample_linear1d", ("bilinear", 2): "upsample_bilinear2d", ("trilinear", 3): "upsample_trilinear3d",
    ("bicubic", 2): "upsample_bicubic2d",
}  # fmt: skip
SMOOTH = {
    ("bilinear", 2): "_upsample_bilinear2d_aa", ("bicubic", 2): "_upsample_bicubic2d_aa",
    ("lanczos", 2): "_upsample_lanczos2d_aa",
}  # fmt: skip
_MODES = ("nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "area", "lanczos")


@shortening
def interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """[N, C, *S] resized to `size` or by `scale_factor`: one number, or one per spatial dim.

    The mode is nearest, nearest-exact, linear (one dim), bilinear, bicubic (two), trilinear (three) or area. `align_corners` maps
    the centres of the first and last element onto each other; `recompute_scale_factor` uses the ratio of the rounded
    sizes; `antialias` smooths where the image shrinks. Raises ArgumentError for sizes and modes that do not fit.

    Arguments:
        recompute_scale_factor: whether the scale is computed anew from the lengths, which are whole numbers
        antialias: whether the input is smoothed before it is made smaller

    Example:
        >>> turnout.nn.functional.interpolate(turnout.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    ndim = input.ndim - 2
    align = _alignment(mode, align_corners)
    size, scales = _size_and_scales(input, ndim, size, scale_factor)
    if recompute_scale_factor:
        if scales is None:
            raise ArgumentError("interpolate: recompute_scale_factor needs scale_factor")
        size, scales = scaled_size(input, scales), None
    if antialias and (mode, ndim) not in SMOOTH:
        raise ArgumentError(
            f"interpolate: antialias needs mode bilinear, bicubic or lanczos and 4 dimensions, got {mode!r} and {input.ndim}"
        )
    if mode in COPYING and 1 <= ndim <= 3:
        return _upsampled(COPYING[mode].format(ndim), input, size, scales)
    if mode == "area" and 1 <= ndim <= 3:
        return _area(input, ndim, size, scales)
    name = (SMOOTH if antialias else MIXING).get((mode, ndim))
    if name is None:
        if mode not in _MODES:
            raise ModeError(texts.not_one_of("interpolate", "mode", _MODES, mode))
        raise ModeError(f"interpolate: mode {mode!r} does not resize {input.ndim} dimensions")
    return _upsampled(name, input, size, align, scales)


def _alignment(mode: str, align_corners: bool | None) -> bool:
    if mode in ("nearest", "nearest-exact", "area"):
        if align_corners is not None:
            raise ArgumentError(f"interpolate: mode {mode!r} takes no align_corners; linear, bilinear, bicubic and trilinear do")
        return False
    return bool(align_corners)


def _size_and_scales(input: Tensor, ndim: int, size: Any, scale_factor: Any) -> tuple[Any, Any]:
    found: list[Any] = []
    for name, value in (("size", size), ("scale_factor", scale_factor)):
        if isinstance(value, (tuple, list)):
            if len(value) != ndim:
                many = "" if ndim == 1 else f" or {ndim}"
                raise ArgumentError(
                    f"interpolate: '{name}' must be one number{many} for 'input' of shape {list(input.shape)}, got {list(value)}"
                )
            found.append(list(value))
        else:
            found.append(None if value is None else [value] * ndim)
    if (size is None) == (scale_factor is None):
        raise ArgumentError(texts.not_one_of_two("interpolate", "size", "scale_factor"))
    return found[0], found[1]


def _upsampled(name: str, *args: Any) -> Tensor:
    return getattr(aten, f"{name}__vec")(*args)


def _area(input: Tensor, ndim: int, size: Any, scales: Any) -> Tensor:
    if size is None:
        size = scaled_size(input, scales)
    if ndim == 1:
        return _functions.adaptive_avg_pool1d(input, size)
    return adaptive_avg_pool2d(input, size) if ndim == 2 else adaptive_avg_pool3d(input, size)


@shortening
def upsample(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Tensor:
    """`interpolate` under its old name.

    Example:
        >>> turnout.nn.functional.upsample(turnout.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode, align_corners)


@shortening
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode nearest.

    Example:
        >>> turnout.nn.functional.upsample_nearest(turnout.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    return interpolate(input, size, scale_factor, mode="nearest")


@shortening
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with mode bilinear and aligned corners.

    Example:
        >>> turnout.nn.functional.upsample_bilinear(turnout.ones(1, 1, 2, 2), scale_factor=2).shape
        turnout.Size([1, 1, 4, 4])
    """
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """The tensor padded at both ends of its last dims. `pad` holds (before, after) for each dim, starting with the last.

    The mode is constant (`value`, 0 by default; negative numbers crop), reflect, replicate or circular. Raises ShapeError for a
    padding that does not fit, NotImplementedError for a mode that does not support so many dims.

    Arguments:
        input: a tensor of any shape
        pad: how many elements are added: before and after in the last dim, then in the one before it, and so on
        mode: "constant", "reflect", "replicate" or "circular"
        value: the constant

    Example:
        >>> turnout.nn.functional.pad(turnout.tensor([1, 2]), (1, 1))
        tensor([0, 1, 2, 0])
    """
    try:
        return _generated.pad(input, pad, mode, value)
    except Exception as error:
        shorten(error)
        raise


_SAMPLING = ("bilinear", "nearest", "bicubic")
_OUTSIDE = ("zeros", "border", "reflection")


@shortening
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """[N, C, H, W] sampled at the coordinates of a grid [N, *out, 2] in [-1, 1], x first; or the same with three dims.

    The mode is bilinear, nearest or bicubic (two dims only). Outside the image, values are zeros, border or reflection. Raises
    ArgumentError for other modes, ShapeError for shapes that do not fit.

    Arguments:
        grid: where to read
        mode: "bilinear", "nearest" or "bicubic"
        padding_mode: "zeros", "border" or "reflection"

    Example:
        >>> turnout.nn.functional.grid_sample(turnout.ones(1, 1, 2, 2), turnout.zeros(1, 1, 1, 2), align_corners=True).item()
        1.0
    """
    for name, value, words in (("mode", mode, _SAMPLING), ("padding_mode", padding_mode, _OUTSIDE)):
        if value not in words:
            raise ArgumentError(texts.not_one_of("grid_sample", name, words, value))
    return _functions.grid_sampler(input, grid, _SAMPLING.index(mode), _OUTSIDE.index(padding_mode), bool(align_corners))


@shortening
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` of the affine maps theta [N, 2, 3] or [N, 3, 4] and an output size [N, C, *out].

    Raises ArgumentError for a theta that is not floating-point or does not fit the size.

    Arguments:
        theta: the matrices of the maps
        size: the shape of the result of `grid_sample`

    Example:
        >>> F = turnout.nn.functional
        >>> F.affine_grid(turnout.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 2, 2), align_corners=True)[0, 0]
        tensor([[-1., -1.],
                [ 1., -1.]])
    """
    if not theta.is_floating_point():
        raise ArgumentError(f"affine_grid: 'theta' must be floating-point, got {theta.dtype.name}")
    ndim = len(size) - 2
    if ndim not in (1, 2, 3) or theta.ndim != 3 or theta.shape[-2:] != (ndim, ndim + 1):
        raise ArgumentError(f"affine_grid: 'theta' of shape {list(theta.shape)} does not fit size {list(size)}")
    if min(size) <= 0:
        raise ArgumentError(texts.not_positive("affine_grid", "size", list(size)))
    return _functions.affine_grid_generator(theta, size, bool(align_corners))


@shortening
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The windows of [N, C, H, W] as columns: [N, C * kernel, windows]. N is optional.

    Example:
        >>> turnout.nn.functional.unfold(turnout.ones(1, 2, 2), (2, 1))
        tensor([[1., 1.],
                [1., 1.]])
    """
    return _generated.im2col(input, *[_pair("unfold", v) for v in (kernel_size, dilation, padding, stride)])


@shortening
def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Columns summed at the positions of their windows: [N, C * kernel, windows] to [N, C, *output_size]. N is optional.

    Arguments:
        input: the columns
        output_size: the height and width of the image

    Example:
        >>> turnout.nn.functional.fold(turnout.ones(4, 1), (2, 2), (2, 2))[0]
        tensor([[1., 1.],
                [1., 1.]])
    """
    return _generated.col2im(input, *[_pair("fold", v) for v in (output_size, kernel_size, dilation, padding, stride)])


def _pair(name: str, value: Any) -> list[int]:
    if isinstance(value, (tuple, list)):
        if len(value) not in (1, 2):
            raise ArgumentError(f"{name}: sizes are one number or two, got {list(value)}")
        return list(value) * (2 // len(value))
    return [value, value]


__all__ = describe(
    globals(),
    input="the images, [N, C, ...]",
    size="the lengths of the result",
    scale_factor="the lengths of the result as multiples of the input's",
    mode="how elements are computed",
    align_corners="whether the centres of the corner elements are the ends of the coordinates, instead of their outer edges",
    kernel_size="the lengths of the windows",
    dilation="the distance of the elements of a window",
    padding="how many zeros are put around",
    stride="the distance of windows",
)
