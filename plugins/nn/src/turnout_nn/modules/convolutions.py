"""Convolutions and transposed convolutions of 1 to 3 dimensions: what they share, and a class for each."""

from __future__ import annotations

from math import prod
from typing import Any, ClassVar

from turnout.nn import functional

from turnout import Tensor
from turnout.errors import ArgumentError, ShapeError
from turnout_aten.plugin_api import describe
from turnout_nn import errors
from turnout_nn.layers import OfDims, Size, check_dims, each
from turnout_nn.modules.linear import fill_uniform
from turnout_nn.parameters import Parameter, empty_parameter

_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(OfDims):
    """What all have in common: sizes, a weight and a bias, which begin with uniform values in ±1/sqrt(fan_in)."""

    transposed: ClassVar[bool] = False
    weight: Parameter
    bias: Parameter | None
    padding: Any

    def _set_up(self, channels: tuple[int, int], sizes: dict[str, Any], groups: int, bias: bool, mode: str, made: Any) -> None:
        super().__init__()
        name = type(self).__name__
        self.in_channels, self.out_channels = channels
        if groups <= 0 or any(channel % groups for channel in channels):
            raise ArgumentError(errors.wrong_groups(name, channels, groups))
        if mode not in (_MODES if not self.transposed else _MODES[:1]):
            raise ArgumentError(errors.wrong_padding_mode(name, mode, _MODES if not self.transposed else _MODES[:1]))
        for key, value in sizes.items():
            setattr(self, key, value if isinstance(value, str) else each(value, self.ndim))
        if isinstance(self.padding, str):
            if self.padding not in ("same", "valid"):
                raise ArgumentError(errors.wrong_padding(name, self.padding))
            if self.padding == "same" and any(stride != 1 for stride in self.stride):
                raise ArgumentError(errors.same_with_strides(name, self.stride))
        self.groups = groups
        self.padding_mode = mode
        outer, inner = channels if self.transposed else channels[::-1]
        self.weight = empty_parameter((outer, inner // groups, *self.kernel_size), *made)
        self.register_parameter("bias", empty_parameter((self.out_channels,), *made) if bias else None)
        self.reset_parameters()

    kernel_size: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        fill_uniform(self, prod(self.weight.shape[1:]))

    def extra_repr(self) -> str:
        """The sizes, and what differs from the default."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        usual = {"padding": (0,) * self.ndim, "dilation": (1,) * self.ndim, "output_padding": (0,) * self.ndim, "groups": 1}
        for name, value in usual.items():
            own = getattr(self, name, value)
            text += "" if own == value else f", {name}={own}"
        text += ", bias=False" if self.bias is None else ""
        return text if self.padding_mode == "zeros" else f"{text}, padding_mode={self.padding_mode}"


class _Forward(_Convolution):
    """A convolution: each output is a weighted sum of a window of inputs, over the channels of its group.

    Arguments:
        padding: the elements to add at both ends; "same" keeps the size, "valid" adds none
    """

    calls = "conv{ndim}d"
    about = """A convolution over {dims} of [N, in_channels, {sizes}].

    Raises ArgumentError for groups that do not divide the channels, and for a padding that does not exist.

    Example:
        >>> turnout.nn.{name}(2, 4, 3, stride=2, padding=1)(turnout.zeros(1, 2{of[8]})).shape
        turnout.Size([1, 4{of[4]}])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size | str = 0,
        dilation: Size = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
        self._set_up((in_channels, out_channels), sizes, groups, bias, padding_mode, (device, dtype))

    def forward(self, input: Tensor) -> Tensor:
        """The outputs, [N, out_channels, ...].

        Arguments:
            input: [N, in_channels, ...], or without N
        """
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = functional.pad(input, self._around(), mode=self.padding_mode), 0
        return type(self).__function__(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _around(self) -> list[int]:
        """The padding as `turnout.nn.functional.pad` takes it: from the last dimension on, before and after."""
        found: list[int] = []
        for i in reversed(range(self.ndim)):
            whole = self.dilation[i] * (self.kernel_size[i] - 1)
            if isinstance(self.padding, str):
                found += [whole // 2, whole - whole // 2] if self.padding == "same" else [0, 0]
            else:
                found += [self.padding[i]] * 2
        return found


class _Transposed(_Convolution):
    """A transposed convolution: each input adds a multiple of the kernel to a window of outputs.

    Arguments:
        kernel_size: the size of the window: a number, or one for each dimension, as for the next four
        stride: the distance of windows in the output
        padding_mode: "zeros"
    """

    transposed = True
    calls = "conv_transpose{ndim}d"
    about = """A transposed convolution over {dims} of [N, in_channels, {sizes}], the gradient of a convolution.

    Raises ArgumentError for groups that do not divide the channels.

    Example:
        >>> turnout.nn.{name}(2, 4, 3, stride=2, padding=1)(turnout.zeros(1, 2{of[8]})).shape
        turnout.Size([1, 4{of[15]}])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size,
        stride: Size = 1,
        padding: Size = 0,
        output_padding: Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Size = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        sizes = {"kernel_size": kernel_size, "stride": stride, "padding": padding, "dilation": dilation}
        sizes["output_padding"] = output_padding
        self._set_up((in_channels, out_channels), sizes, groups, bias, padding_mode, (device, dtype))

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The outputs, [N, out_channels, ...].

        Raises ShapeError for an output size that no output padding gives.

        Arguments:
            input: [N, in_channels, ...], or without N
            output_size: the sizes of the last dimensions of the outputs, where several are possible
        """
        added = self.output_padding if output_size is None else self._added(input, list(output_size))
        sizes = (self.stride, self.padding, added, self.groups, self.dilation)
        return type(self).__function__(input, self.weight, self.bias, *sizes)

    def _added(self, input: Tensor, wanted: list[int]) -> list[int]:
        """The output padding that gives a size."""
        check_dims(self, input, self.ndim + 1, self.ndim + 2)
        inputs = list(input.shape)[-self.ndim :]
        sizes = wanted[-self.ndim :]
        if len(wanted) not in (self.ndim, self.ndim + 1, self.ndim + 2):
            raise ShapeError(errors.wrong_output_size(type(self).__name__, wanted, self.ndim))
        least = [
            (inputs[i] - 1) * self.stride[i] - 2 * self.padding[i] + self.dilation[i] * (self.kernel_size[i] - 1) + 1
            for i in range(self.ndim)
        ]
        if any(not low <= size < low + stride for low, size, stride in zip(least, sizes, self.stride, strict=True)):
            most = [low + stride - 1 for low, stride in zip(least, self.stride, strict=True)]
            raise ShapeError(errors.impossible_output_size(type(self).__name__, sizes, least, most))
        return [size - low for size, low in zip(sizes, least, strict=True)]


class Conv1d(_Forward, ndim=1):
    pass


class Conv2d(_Forward, ndim=2):
    pass


class Conv3d(_Forward, ndim=3):
    pass


class ConvTranspose1d(_Transposed, ndim=1):
    pass


class ConvTranspose2d(_Transposed, ndim=2):
    pass


class ConvTranspose3d(_Transposed, ndim=3):
    pass


describe(
    globals(),
    in_channels="the channels of inputs",
    out_channels="the channels of outputs",
    kernel_size="the size of the window: a number, or one for each dimension, as for the next three",
    bias="whether a number is added to each output channel",
    padding_mode='what is added: "zeros", "reflect", "replicate" or "circular"',
    device="where the parameters are",
    dtype="their dtype",
)
