"""Modules that learn the size of their inputs at the first call, and become plain modules then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from turnout import Tensor
from turnout.errors import ShapeError
from turnout_aten.plugin_api import describe
from turnout_nn import errors
from turnout_nn.layers import OfDims, Size, check_dims
from turnout_nn.modules import convolutions, linear, normalisation
from turnout_nn.parameters import UninitializedBuffer, UninitializedParameter, is_uninitialized


class _Lazy(OfDims):
    """A module whose parameters get their shapes at the first call, or from a state that is loaded.

    becomes  the class that it then is of
    size     the attribute for the size of inputs
    """

    becomes: ClassVar[Any]
    size: ClassVar[str]

    def __init_subclass__(cls, ndim: int = 0) -> None:
        super().__init_subclass__(ndim)
        if ndim:
            cls.becomes = cls.__bases__[-1]

    def _begin(self, make: Callable[[], None], device: Any, dtype: Any) -> None:
        """Set up by `make`, for inputs of size 0, and forget the parameters and buffers that depend on the size."""
        make()
        sized = self.shapes(0).keys()
        for name in sized & self._parameter_names.keys():
            if getattr(self, name) is not None:
                setattr(self, name, UninitializedParameter(device=device, dtype=dtype))
        for name in sized & self._buffer_names.keys():
            if getattr(self, name) is not None:
                setattr(self, name, UninitializedBuffer(device=device, dtype=dtype))

    def shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        """Name -> shape of the parameters and buffers that depend on the size of inputs."""
        raise NotImplementedError

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        return any(is_uninitialized(tensor) for tensor in [*self._parameters.values(), *self._buffers.values()])

    def initialize_parameters(self, input: Tensor) -> None:
        """Give parameters and buffers the shapes that an input asks for, and initial values.

        Arguments:
            input: the input
        """
        if self.has_uninitialized_params():
            self._set_size(self._size_of(input))
            for name, shape in self.shapes(getattr(self, self.size)).items():
                tensor = getattr(self, name)
                if is_uninitialized(tensor):
                    tensor.materialize(shape)
            self.becomes.reset_parameters(self)
        self._become()

    def _size_of(self, input: Tensor) -> int:
        if not input.ndim:
            raise ShapeError(errors.wrong_ndim(type(self).__name__, "1 or more", input))
        return int(input.shape[-1])

    def _set_size(self, size: int) -> None:
        setattr(self, self.size, size)

    def _become(self) -> None:
        self.__class__ = self.becomes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Learn the size of the input, become a plain module, and call that."""
        try:
            self.initialize_parameters(*args, **kwargs)
        except TypeError as error:
            errors.leave_out_last_frame(error)
            raise
        return self(*args, **kwargs)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        weight = state_dict.get(f"{prefix}{self._key()}")
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if weight is not None and not is_uninitialized(weight) and not self.has_uninitialized_params():
            self._set_size(self._size_in(weight))
            self._become()

    def _key(self) -> str:
        """The name of a tensor that tells the size."""
        return "weight"

    def _size_in(self, weight: Tensor) -> int:
        return int(weight.shape[1])


class LazyLinear(_Lazy, linear.Linear):
    """A `Linear` that learns `in_features` at its first call.

    Arguments:
        out_features: the length of the last dimension of outputs

    Example:
        >>> layer = turnout.nn.LazyLinear(4)
        >>> layer(turnout.zeros(2, 3)).shape, layer
        (turnout.Size([2, 4]), Linear(in_features=3, out_features=4, bias=True))
    """

    becomes = linear.Linear
    size = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        self._begin(lambda: linear.Linear.__init__(self, 0, out_features, bias, device, dtype), device, dtype)

    def shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        """Name -> shape of what depends on the size of inputs."""
        return {"weight": (self.out_features, size)}


class _LazyConvolution(_Lazy):
    """A convolution that learns its input channels."""

    size = "in_channels"
    about = """A `{plain}` that learns `in_channels` at its first call.

    Example:
        >>> turnout.nn.{name}(4, 1)(turnout.zeros(2, 3{of[4]})).shape
        turnout.Size([2, 4{of[4]}])
    """
    transposed: ClassVar[bool]
    groups: int
    out_channels: int
    kernel_size: tuple[int, ...]

    def shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        """Name -> shape of what depends on the size of inputs."""
        outer, inner = (size, self.out_channels) if self.transposed else (self.out_channels, size)
        return {"weight": (outer, inner // self.groups, *self.kernel_size)}

    def _size_of(self, input: Tensor) -> int:
        check_dims(self, input, self.ndim + 1, self.ndim + 2)
        return int(input.shape[-self.ndim - 1])

    def _size_in(self, weight: Tensor) -> int:
        return int(weight.shape[0] if self.transposed else weight.shape[1] * self.groups)


class _LazyForward(_LazyConvolution):
    def __init__(
        self,
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
        rest = (kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self._begin(lambda: self.becomes.__init__(self, 0, out_channels, *rest), device, dtype)


class _LazyTransposed(_LazyConvolution):
    def __init__(
        self,
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
        rest = (kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode, device, dtype)
        self._begin(lambda: self.becomes.__init__(self, 0, out_channels, *rest), device, dtype)


class _LazyNorm(_Lazy):
    """A normalisation of channels that learns their number."""

    size = "num_features"
    about = """A `{plain}` that learns `num_features` at its first call.

    Example:
        >>> turnout.nn.{name}()(turnout.zeros(2, 3{of[4]})).shape
        turnout.Size([2, 3{of[4]}])
    """
    weight: Any

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        rest = (0, eps, momentum, affine, track_running_stats, device, dtype)
        self._begin(lambda: self.becomes.__init__(self, *rest, bias=bias), device, dtype)

    def shapes(self, size: int) -> dict[str, tuple[int, ...]]:
        """Name -> shape of what depends on the size of inputs."""
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (size,))

    def _size_of(self, input: Tensor) -> int:
        check_dims(self, input, *self.becomes.dims)
        return int(input.shape[1 if self.becomes.is_batched(input) else 0])

    def _key(self) -> str:
        return "weight" if "weight" in self._parameter_names and self.weight is not None else "running_mean"

    def _size_in(self, weight: Tensor) -> int:
        return int(weight.shape[0])


class LazyConv1d(_LazyForward, convolutions.Conv1d, ndim=1):
    pass


class LazyConv2d(_LazyForward, convolutions.Conv2d, ndim=2):
    pass


class LazyConv3d(_LazyForward, convolutions.Conv3d, ndim=3):
    pass


class LazyConvTranspose1d(_LazyTransposed, convolutions.ConvTranspose1d, ndim=1):
    pass


class LazyConvTranspose2d(_LazyTransposed, convolutions.ConvTranspose2d, ndim=2):
    pass


class LazyConvTranspose3d(_LazyTransposed, convolutions.ConvTranspose3d, ndim=3):
    pass


class LazyBatchNorm1d(_LazyNorm, normalisation.BatchNorm1d, ndim=1):
    pass


class LazyBatchNorm2d(_LazyNorm, normalisation.BatchNorm2d, ndim=2):
    pass


class LazyBatchNorm3d(_LazyNorm, normalisation.BatchNorm3d, ndim=3):
    pass


class LazyInstanceNorm1d(_LazyNorm, normalisation.InstanceNorm1d, ndim=1):
    pass


class LazyInstanceNorm2d(_LazyNorm, normalisation.InstanceNorm2d, ndim=2):
    pass


class LazyInstanceNorm3d(_LazyNorm, normalisation.InstanceNorm3d, ndim=3):
    pass


describe(globals())
