"""Modules that pad the last dimensions: with a value, by reflection, by replication, or around a circle."""

from __future__ import annotations

from typing import Any, ClassVar

from turnout.nn import functional

from turnout import Tensor
from turnout_aten.plugin_api import describe
from turnout_nn.layers import Layer, OfDims, each, layer


@layer
class _Pad(Layer, OfDims):
    """Padding of the last `ndim` dimensions, of a mode of `turnout.nn.functional.pad`, with what `fill` says."""

    padding: Any
    mode: ClassVar[str]
    fill: ClassVar[str]
    about = """Pads {dims} of [N, C, {sizes}] or [C, {sizes}] with {fill}.

    Example:
        >>> turnout.nn.{name}(1)(turnout.zeros(1{of[2]})).shape
        turnout.Size([1{of[4]}])
    """
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
    fill = "a value"
    about = _Pad.about.replace("(1)(", "(1, 3.0)(")
    shows: ClassVar[str] = "padding={padding}, value={value}"

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return functional.pad(input, self.padding, "constant", self.value)


class ConstantPad1d(_ConstantPad, ndim=1):
    """Pads the last dimension of [N, C, L] or [C, L] with a value.

    Example:
        >>> turnout.nn.ConstantPad1d(1, 3.0)(turnout.tensor([[1.0, 2.0]]))
        tensor([[3., 1., 2., 3.]])
    """


class _ZeroPad(_Pad):
    mode = "constant"
    fill = "zeros"


class ZeroPad1d(_ZeroPad, ndim=1):
    """Pads the last dimension of [N, C, L] or [C, L] with zeros.

    Example:
        >>> turnout.nn.ZeroPad1d(1)(turnout.tensor([[1.0, 2.0]]))
        tensor([[0., 1., 2., 0.]])
    """


class _ReflectionPad(_Pad):
    mode = "reflect"
    fill = "what stands opposite the edge"


class ReflectionPad1d(_ReflectionPad, ndim=1):
    """Pads the last dimension of [N, C, L] or [C, L] with what stands opposite the edge.

    Example:
        >>> turnout.nn.ReflectionPad1d(1)(turnout.tensor([[1.0, 2.0]]))
        tensor([[2., 1., 2., 1.]])
    """


class _ReplicationPad(_Pad):
    mode = "replicate"
    fill = "the nearest element"


class ReplicationPad1d(_ReplicationPad, ndim=1):
    """Pads the last dimension of [N, C, L] or [C, L] with the nearest element.

    Example:
        >>> turnout.nn.ReplicationPad1d(1)(turnout.tensor([[1.0, 2.0]]))
        tensor([[1., 1., 2., 2.]])
    """


class _CircularPad(_Pad):
    mode = "circular"
    fill = "what stands at the other end"


class CircularPad1d(_CircularPad, ndim=1):
    """Pads the last dimension of [N, C, L] or [C, L] with what stands at the other end.

    Example:
        >>> turnout.nn.CircularPad1d(1)(turnout.tensor([[1.0, 2.0]]))
        tensor([[2., 1., 2., 1.]])
    """


class ConstantPad2d(_ConstantPad, ndim=2):
    pass


class ConstantPad3d(_ConstantPad, ndim=3):
    pass


class ZeroPad2d(_ZeroPad, ndim=2):
    pass


class ZeroPad3d(_ZeroPad, ndim=3):
    pass


class ReflectionPad2d(_ReflectionPad, ndim=2):
    pass


class ReflectionPad3d(_ReflectionPad, ndim=3):
    pass


class ReplicationPad2d(_ReplicationPad, ndim=2):
    pass


class ReplicationPad3d(_ReplicationPad, ndim=3):
    pass


class CircularPad2d(_CircularPad, ndim=2):
    pass


class CircularPad3d(_CircularPad, ndim=3):
    pass


describe(
    globals(),
    padding="the elements to add at each side, or a number for each: (left, right), (left, right, top, bottom) or "
    "(left, right, top, bottom, front, back)",
    value="the value",
)
