"""Pooling over windows, over parts of the input, and its opposite. What the classes of a kind share, and a class for each."""

from __future__ import annotations

from typing import Any, ClassVar

from turnout.nn import functional

from turnout import Tensor
from turnout.errors import ArgumentError
from turnout_aten.plugin_api import describe
from turnout_nn import errors
from turnout_nn.layers import Layer, OfDims, Size, each, layer
from turnout_nn.parameters import Buffer


@layer
class _MaxPool(Layer, OfDims):
    """The maximum of each window.

    Arguments:
        kernel_size: the size of the window: a number, or one for each dimension, as for the next three
    """

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    dilation: Size = 1
    return_indices: bool = False
    ceil_mode: bool = False
    calls = "max_pool{ndim}d"
    about = """The maximum of each window over {dims} of [N, C, {sizes}], or of inputs without N.

    Example:
        >>> turnout.nn.{name}(2)(turnout.zeros(1, 1{of[4]})).shape
        turnout.Size([1, 1{of[2]}])
    """
    shows: ClassVar[str] = (
        "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stride is None:
            self.stride = self.kernel_size

    def forward(self, input: Tensor) -> Any:
        """The maxima; with `return_indices`, their positions too."""
        sizes = (self.kernel_size, self.stride, self.padding, self.dilation)
        return type(self).__function__(input, *sizes, ceil_mode=self.ceil_mode, return_indices=self.return_indices)


@layer
class _MaxUnpool(Layer, OfDims):
    """The opposite of the maximum of windows.

    Arguments:
        kernel_size: the size of the window: a number, or one for each dimension, as for the others
        padding: the elements that were added at both ends
    """

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    calls = "max_unpool{ndim}d"
    about = """Zeros, with the maxima of `MaxPool{ndim}d` where they were.

    Example:
        >>> turnout.nn.{name}(2)(*turnout.nn.MaxPool{ndim}d(2, return_indices=True)(turnout.ones(1, 1{of[4]}))).shape
        turnout.Size([1, 1{of[4]}])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kernel_size = each(self.kernel_size, self.ndim)
        self.stride = self.kernel_size if self.stride is None else each(self.stride, self.ndim)
        self.padding = each(self.padding, self.ndim)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """Zeros, with the input at the given positions.

        Arguments:
            input: the maxima
            indices: their positions, as max pooling returns them
            output_size: the sizes of the last dimensions, where several are possible
        """
        return type(self).__function__(input, indices, self.kernel_size, self.stride, self.padding, output_size)


@layer
class _AvgPool(Layer, OfDims):
    """The mean of each window.

    Arguments:
        kernel_size: the size of the window: a number, or one for each dimension, as for the next two
        padding: the zeros to add at both ends
    """

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None
    calls = "avg_pool{ndim}d"
    about = """The mean of each window over {dims} of [N, C, {sizes}], or of inputs without N.

    Example:
        >>> turnout.nn.{name}(2)(turnout.zeros(1, 1{of[4]})).shape
        turnout.Size([1, 1{of[2]}])
    """
    shows: ClassVar[str] = "kernel_size={kernel_size}, stride={stride}, padding={padding}"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stride is None:
            self.stride = self.kernel_size

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        sizes = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)
        return type(self).__function__(input, *sizes)


@layer
class _LPPool(Layer, OfDims):
    """The norm of each window."""

    norm_type: float
    kernel_size: Size
    stride: Size | None = None
    ceil_mode: bool = False
    calls = "lp_pool{ndim}d"
    about = """The norm of each window over {dims} of [N, C, {sizes}], or of inputs without N.

    Example:
        >>> turnout.nn.{name}(2, 2)(turnout.zeros(1, 1{of[4]})).shape
        turnout.Size([1, 1{of[2]}])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The norms."""
        return type(self).__function__(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


@layer
class _AdaptiveAvgPool(Layer, OfDims):
    """The means of so many parts of the input."""

    output_size: Any
    calls = "adaptive_avg_pool{ndim}d"
    about = """The means of so many parts of {dims} of [N, C, {sizes}], or of inputs without N.

    Example:
        >>> turnout.nn.{name}(2)(turnout.zeros(1, 1{of[5]})).shape
        turnout.Size([1, 1{of[2]}])
    """

    def forward(self, input: Tensor) -> Tensor:
        """The means."""
        return type(self).__function__(input, self.output_size)


@layer
class _AdaptiveMaxPool(Layer, OfDims):
    """The maxima of so many parts of the input."""

    output_size: Any
    return_indices: bool = False
    calls = "adaptive_max_pool{ndim}d"
    about = """The maxima of so many parts of {dims} of [N, C, {sizes}], or of inputs without N.

    Example:
        >>> turnout.nn.{name}(2)(turnout.zeros(1, 1{of[5]})).shape
        turnout.Size([1, 1{of[2]}])
    """
    shows: ClassVar[str] = "output_size={output_size}"

    def forward(self, input: Tensor) -> Any:
        """The maxima; with `return_indices`, their positions too."""
        return type(self).__function__(input, self.output_size, return_indices=self.return_indices)


@layer
class _FractionalMaxPool(Layer, OfDims):
    """The maxima of windows that are placed at random, so that outputs have a given size.

    Arguments:
        kernel_size: the size of the window: a number, or one for each dimension, as for the next two
        output_size: the size of outputs
    """

    kernel_size: Any
    output_size: Any = None
    output_ratio: Any = None
    return_indices: bool = False
    _random_samples: Tensor | None = None
    shows = ""
    calls = "fractional_max_pool{ndim}d"
    about = """The maxima of windows that are placed at random over {dims}, so that outputs have a given size.

    Raises ArgumentError unless one of size and ratio is given, and ratios are between 0 and 1.

    Example:
        >>> turnout.nn.{name}(2, output_size=3)(turnout.zeros(1, 1{of[5]})).shape
        turnout.Size([1, 1{of[3]}])
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._random_samples is not None:
            self._random_samples = Buffer(self._random_samples)
        self.kernel_size = each(self.kernel_size, self.ndim)
        if self.output_size is not None:
            self.output_size = each(self.output_size, self.ndim)
        if self.output_ratio is not None:
            self.output_ratio = each(self.output_ratio, self.ndim)
        if (self.output_size is None) == (self.output_ratio is None):
            raise ArgumentError(errors.size_or_ratio(type(self).__name__))
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ArgumentError(errors.wrong_ratio(type(self).__name__, self.output_ratio))

    def forward(self, input: Tensor) -> Any:
        """The maxima; with `return_indices`, their positions too."""
        sizes = (self.kernel_size, self.output_size, self.output_ratio, self.return_indices)
        return type(self).__function__(input, *sizes, _random_samples=self._random_samples)


@layer
class AvgPool1d(Layer):
    """The mean of each window over the last dimension of [N, C, L], or of inputs without N.

    Arguments:
        padding: the zeros to add at both ends

    Example:
        >>> turnout.nn.AvgPool1d(2)(turnout.zeros(1, 1, 4)).shape
        turnout.Size([1, 1, 2])
    """

    kernel_size: Any
    stride: Any = None
    padding: Any = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    shows: ClassVar[str] = _AvgPool.shows

    def __post_init__(self) -> None:
        super().__post_init__()
        self.kernel_size = each(self.kernel_size, 1)
        self.stride = self.kernel_size if self.stride is None else each(self.stride, 1)
        self.padding = each(self.padding, 1)

    __function__ = functional.avg_pool1d


class AdaptiveAvgPool1d(_AdaptiveAvgPool, ndim=1):
    """The means of so many parts of the last dimension of [N, C, L], or of inputs without N.

    Arguments:
        output_size: the number of parts

    Example:
        >>> turnout.nn.AdaptiveAvgPool1d(2)(turnout.zeros(1, 1, 5)).shape
        turnout.Size([1, 1, 2])
    """


class AdaptiveMaxPool1d(_AdaptiveMaxPool, ndim=1):
    """The maxima of so many parts of the last dimension of [N, C, L], or of inputs without N.

    Arguments:
        output_size: the number of parts

    Example:
        >>> turnout.nn.AdaptiveMaxPool1d(2)(turnout.zeros(1, 1, 5)).shape
        turnout.Size([1, 1, 2])
    """


class MaxPool1d(_MaxPool, ndim=1):
    pass


class MaxPool2d(_MaxPool, ndim=2):
    pass


class MaxPool3d(_MaxPool, ndim=3):
    pass


class MaxUnpool1d(_MaxUnpool, ndim=1):
    pass


class MaxUnpool2d(_MaxUnpool, ndim=2):
    pass


class MaxUnpool3d(_MaxUnpool, ndim=3):
    pass


class AvgPool2d(_AvgPool, ndim=2):
    pass


class AvgPool3d(_AvgPool, ndim=3):
    pass


class LPPool1d(_LPPool, ndim=1):
    pass


class LPPool2d(_LPPool, ndim=2):
    pass


class LPPool3d(_LPPool, ndim=3):
    pass


class AdaptiveAvgPool2d(_AdaptiveAvgPool, ndim=2):
    pass


class AdaptiveAvgPool3d(_AdaptiveAvgPool, ndim=3):
    pass


class AdaptiveMaxPool2d(_AdaptiveMaxPool, ndim=2):
    pass


class AdaptiveMaxPool3d(_AdaptiveMaxPool, ndim=3):
    pass


class FractionalMaxPool2d(_FractionalMaxPool, ndim=2):
    pass


class FractionalMaxPool3d(_FractionalMaxPool, ndim=3):
    pass


describe(
    globals(),
    kernel_size="the size of the window",
    padding="the elements to add at both ends, which are never a maximum",
    output_size="the number of parts: a number, or one for each dimension, where None keeps the size",
    _random_samples="the random numbers to use",
)
