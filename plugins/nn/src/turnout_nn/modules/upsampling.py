"""Modules that give an image another size, or move its elements between channels and pixels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.nn import functional

from turnout import Tensor
from turnout.errors import CallError
from turnout_nn import errors
from turnout_nn.descriptions import described
from turnout_nn.layers import Layer, layer
from turnout_nn.module import Module

if TYPE_CHECKING:
    from collections.abc import Sequence

    Sizes = int | Sequence[int] | None
    Factors = float | Sequence[float] | None

__all__ = ["ChannelShuffle", "PixelShuffle", "PixelUnshuffle", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """An image, a sequence or a volume [N, C, ...] in another size, by interpolation.

    Arguments:
        size: the new lengths of the dimensions behind the channels
        scale_factor: the factor of the lengths, in place of `size`
        mode: "nearest", "linear", "bilinear", "bicubic", "trilinear" and the like; see `turnout.nn.functional.interpolate`
        align_corners: whether corner pixels keep their places, in the linear and cubic modes
        recompute_scale_factor: whether the factor is computed again from the sizes

    Example:
        >>> turnout.nn.Upsample(scale_factor=2)(turnout.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self, size: Sizes = None, scale_factor: Factors = None, mode: str = "nearest", align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.size = size
        for factor in scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,):
            if factor is not None and (isinstance(factor, str) or not hasattr(factor, "__float__")):
                raise CallError(errors.wrong_factor(type(self).__name__, factor))
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple(map(float, scale_factor))
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None  # type: ignore[arg-type]
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The input in the new size."""
        return functional.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The factor or the size, and the mode."""
        return described(self, "size=" if self.scale_factor is None else "scale_factor=", "mode=")


class UpsamplingNearest2d(Upsample):
    """An image [N, C, H, W] in another size; each pixel is the nearest one of the input.

    Arguments:
        size: the new height and width
        scale_factor: the factor of height and width, in place of `size`

    Example:
        >>> turnout.nn.UpsamplingNearest2d(scale_factor=2)(turnout.ones(1, 1, 2, 2)).shape
        turnout.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Sizes = None, scale_factor: Factors = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """An image [N, C, H, W] in another size, by bilinear interpolation that keeps the corner pixels.

    Arguments:
        size: the new height and width
        scale_factor: the factor of height and width, in place of `size`

    Example:
        >>> turnout.nn.UpsamplingBilinear2d(size=3)(turnout.tensor([[[[0.0, 2.0], [0.0, 2.0]]]]))[0, 0, 0]
        tensor([0., 1., 2.])
    """

    def __init__(self, size: Sizes = None, scale_factor: Factors = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


@layer
class PixelShuffle(Layer):
    """Channels become pixels: [..., C r r, H, W] to [..., C, H r, W r].

    Arguments:
        upscale_factor: r

    Example:
        >>> turnout.nn.PixelShuffle(2)(turnout.ones(1, 4, 1, 1)).shape
        turnout.Size([1, 1, 2, 2])
    """

    upscale_factor: int
    __function__ = functional.pixel_shuffle


@layer
class PixelUnshuffle(Layer):
    """Pixels become channels: [..., C, H r, W r] to [..., C r r, H, W].

    Arguments:
        downscale_factor: r

    Example:
        >>> turnout.nn.PixelUnshuffle(2)(turnout.ones(1, 1, 2, 2)).shape
        turnout.Size([1, 4, 1, 1])
    """

    downscale_factor: int
    __function__ = functional.pixel_unshuffle


@layer
class ChannelShuffle(Layer):
    """Channels in another order: those of one group are spread over all groups.

    Arguments:
        groups: the number of groups, which divides that of the channels

    Example:
        >>> turnout.nn.ChannelShuffle(2)(turnout.arange(4.0).reshape(1, 4, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    groups: int
    __function__ = functional.channel_shuffle
