"""Modules that pad the last dimensions: with a value, by reflection, by replication, or around a circle."""

from __future__ import annotations

from typing import Any, ClassVar

from turnout.nn import functional

from turnout import Tensor
from turnout_aten.plugin_api import describe
from turnout_nn.layers import Layer, each, layer


@layer
class _Pad(Layer):
    """Padding of the last `ndim` dimensions, of a mode of `turnout.nn.functional.pad`."""

    padding: Any
    ndim: ClassVar[int]
    mode: ClassVar[str]
    shows: ClassVar[str] = "{padding}"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.padding = each(self.padding, 2 * self.ndim)

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return functional.pad(input, self.padding, self.mode)


@layer
class _ConstantPad(_Pad):
    """Padding with a value."""

    value: float
    shows: ClassVar[str] = "padding={padding}, value={value}"

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return functional.pad(input, self.padding, "constant", self.value)


class ConstantPad1d(_ConstantPad):
    """Pads the last dimension of [N, C, L] or [C, L] with a value.

    Example:
        >>> turnout.nn.ConstantPad1d(1, 3.0)(turnout.tensor([[1.0, 2.0]]))
        tensor([[3., 1., 2., 3.]])
    """

    ndim: ClassVar[int] = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last 2 dimensions of [N, C, H, W] or [C, H, W] with a value.

    Example:
        >>> turnout.nn.ConstantPad2d(1, 3.0)(turnout.zeros(1, 2, 2)).shape
        turnout.Size([1, 4, 4])
    """

    ndim: ClassVar[int] = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last 3 dimensions of [N, C, D, H, W] or [C, D, H, W] with a value.

    Example:
        >>> turnout.nn.ConstantPad3d(1, 3.0)(turnout.zeros(1, 2, 2, 2)).shape
        turnout.Size([1, 4, 4, 4])
    """

    ndim: ClassVar[int] = 3


class ZeroPad1d(_Pad):
    """Pads the last dimension of [N, C, L] or [C, L] with zeros.

    Example:
        >>> turnout.nn.ZeroPad1d(1)(turnout.tensor([[1.0, 2.0]]))
        tensor([[0., 1., 2., 0.]])
    """

    ndim: ClassVar[int] = 1
    mode: ClassVar[str] = "constant"


class ZeroPad2d(_Pad):
    """Pads the last 2 dimensions of [N, C, H, W] or [C, H, W] with zeros.

    Example:
        >>> turnout.nn.ZeroPad2d(1)(turnout.zeros(1, 2, 2)).shape
        turnout.Size([1, 4, 4])
    """

    ndim: ClassVar[int] = 2
    mode: ClassVar[str] = "constant"


class ZeroPad3d(_Pad):
    """Pads the last 3 dimensions of [N, C, D, H, W] or [C, D, H, W] with zeros.

    Example:
        >>> turnout.nn.ZeroPad3d(1)(turnout.zeros(1, 2, 2, 2)).shape
        turnout.Size([1, 4, 4, 4])
    """

    ndim: ClassVar[int] = 3
    mode: ClassVar[str] = "constant"


class ReflectionPad1d(_Pad):
    """Pads the last dimension of [N, C, L] or [C, L] with what stands opposite the edge.

    Example:
        >>> turnout.nn.ReflectionPad1d(1)(turnout.tensor([[1.0, 2.0]]))
        tensor([[2., 1., 2., 1.]])
    """

    ndim: ClassVar[int] = 1
    mode: ClassVar[str] = "reflect"


class ReflectionPad2d(_Pad):
    """Pads the last 2 dimensions of [N, C, H, W] or [C, H, W] with what stands opposite the edge.

    Example:
        >>> turnout.nn.ReflectionPad2d(1)(turnout.zeros(1, 2, 2)).shape
        turnout.Size([1, 4, 4])
    """

    ndim: ClassVar[int] = 2
    mode: ClassVar[str] = "reflect"


class ReflectionPad3d(_Pad):
    """Pads the last 3 dimensions of [N, C, D, H, W] or [C, D, H, W] with what stands opposite the edge.

    Example:
        >>> turnout.nn.ReflectionPad3d(1)(turnout.zeros(1, 2, 2, 2)).shape
        turnout.Size([1, 4, 4, 4])
    """

    ndim: ClassVar[int] = 3
    mode: ClassVar[str] = "reflect"


class ReplicationPad1d(_Pad):
    """Pads the last dimension of [N, C, L] or [C, L] with the nearest element.

    Example:
        >>> turnout.nn.ReplicationPad1d(1)(turnout.tensor([[1.0, 2.0]]))
        tensor([[1., 1., 2., 2.]])
    """

    ndim: ClassVar[int] = 1
    mode: ClassVar[str] = "replicate"


class ReplicationPad2d(_Pad):
    """Pads the last 2 dimensions of [N, C, H, W] or [C, H, W] with the nearest element.

    Example:
        >>> turnout.nn.ReplicationPad2d(1)(turnout.zeros(1, 2, 2)).shape
        turnout.Size([1, 4, 4])
    """

    ndim: ClassVar[int] = 2
    mode: ClassVar[str] = "replicate"


class ReplicationPad3d(_Pad):
    """Pads the last 3 dimensions of [N, C, D, H, W] or [C, D, H, W] with the nearest element.

    Example:
        >>> turnout.nn.ReplicationPad3d(1)(turnout.zeros(1, 2, 2, 2)).shape
        turnout.Size([1, 4, 4, 4])
    """

    ndim: ClassVar[int] = 3
    mode: ClassVar[str] = "replicate"


class CircularPad1d(_Pad):
    """Pads the last dimension of [N, C, L] or [C, L] with what stands at the other end.

    Example:
        >>> turnout.nn.CircularPad1d(1)(turnout.tensor([[1.0, 2.0]]))
        tensor([[2., 1., 2., 1.]])
    """

    ndim: ClassVar[int] = 1
    mode: ClassVar[str] = "circular"


class CircularPad2d(_Pad):
    """Pads the last 2 dimensions of [N, C, H, W] or [C, H, W] with what stands at the other end.

    Example:
        >>> turnout.nn.CircularPad2d(1)(turnout.zeros(1, 2, 2)).shape
        turnout.Size([1, 4, 4])
    """

    ndim: ClassVar[int] = 2
    mode: ClassVar[str] = "circular"


class CircularPad3d(_Pad):
    """Pads the last 3 dimensions of [N, C, D, H, W] or [C, D, H, W] with what stands at the other end.

    Example:
        >>> turnout.nn.CircularPad3d(1)(turnout.zeros(1, 2, 2, 2)).shape
        turnout.Size([1, 4, 4, 4])
    """

    ndim: ClassVar[int] = 3
    mode: ClassVar[str] = "circular"


describe(
    globals(),
    padding="the elements to add at each side, or a number for each: (left, right), (left, right, top, bottom) or "
    "(left, right, top, bottom, front, back)",
    value="the value",
)
