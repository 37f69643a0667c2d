"""Short conversion methods of Tensor: `x.float()`, `x.cpu()`, `x.T`, `x.new_tensor(data)`; and the names that the array API
standard gives an array object.

They are a separate mixin because inside it `int` and `float` are methods.
"""

from __future__ import annotations

from turnout import dtypes
from turnout.errors import ArgumentError, ShapeError
from turnout.operators.tracebacks import shorten
from turnout_aten import operators as aten
from turnout_aten.tensor.late_methods import Late, LateProperty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor


def _converted(name: str, dtype: DType) -> Callable[..., Tensor]:
    """The method that converts to a dtype."""

    def convert(self: Any, memory_format: Any = "preserve_format") -> Tensor:
        if memory_format == "preserve_format":
            return aten.to__dtype(self, dtype)
        return aten.to__dtype(self, dtype, False, False, memory_format)

    convert.__name__, convert.__qualname__ = name, f"Conversions.{name}"
    convert.__doc__ = f"""The elements as {dtype.name}; the tensor itself if they are that already.

    Arguments:
        memory_format: how the result lies in memory

    Example:
        >>> turnout.tensor([1, 2]).{name}().dtype
        turnout.{dtype.name}
    """
    return convert


class Conversions:
    """Each returns `self` when no conversion is needed. The format "preserve_format" is what an omitted one means."""

    __slots__ = ()

    if TYPE_CHECKING:

        def new_tensor(
            self: Any, data: Any, *, dtype: DType | None = None, device: Any = None, requires_grad: Any = False
        ) -> Tensor:
            """A tensor of new data. dtype and device default to those of this tensor."""

        def as_subclass(self: Any, cls: Any) -> Any:
            """The tensor as an instance of a subclass of Tensor."""

        def __array_namespace__(self: Any, *, api_version: str | None = None) -> Any:
            """`turnout.array_api`, for code written for any array library."""

        @property
        def data(self: Any) -> Tensor:
            """The same memory without history."""

        @data.setter
        def data(self: Any, value: Any) -> None:
            """Take over another tensor's memory, shape, dtype and device."""

    else:
        new_tensor = Late("turnout_aten.tensor.creation:new_tensor")
        as_subclass = Late("turnout_aten.tensor.subclasses:as_subclass")
        __array_namespace__ = Late("turnout_aten.tensor.interop:array_namespace")
        data = LateProperty("turnout_aten.tensor.data_attribute:data")

    half = _converted("half", dtypes.float16)
    bfloat16 = _converted("bfloat16", dtypes.bfloat16)
    float = _converted("float", dtypes.float32)
    double = _converted("double", dtypes.float64)
    short = _converted("short", dtypes.int16)
    int = _converted("int", dtypes.int32)
    long = _converted("long", dtypes.int64)

    def bool(self: Any, memory_format: Any = "preserve_format") -> Tensor:
        """Each element as a bool: True where it differs from 0.

        Arguments:
            memory_format: how the result lies in memory

        Example:
            >>> turnout.tensor([0, 2]).bool()
            tensor([False,  True])
        """
        if memory_format == "preserve_format":
            return aten.to__dtype(self, dtypes.bool_)
        return aten.to__dtype(self, dtypes.bool_, False, False, memory_format)

    byte = _converted("byte", dtypes.uint8)
    char = _converted("char", dtypes.int8)
    cfloat = _converted("cfloat", dtypes.complex64)
    cdouble = _converted("cdouble", dtypes.complex128)

    def to_device(self: Any, device: Any, /, *, stream: Any = None) -> Tensor:
        """This tensor on a device; `self` if it is already there. Raises ArgumentError for a `stream` other than None.

        Arguments:
            device: the device
            stream: only None

        Example:
            >>> turnout.tensor([1]).to_device("cpu")
            tensor([1])
        """
        if stream is not None:
            raise ArgumentError(f"to_device: streams are not supported, got {stream!r}; pass None")
        return self.to(device=device)

    def __rdiv__(self: Any, other: Any) -> Tensor:
        """other / self; Python 2 used this name."""
        try:
            return self.reciprocal() * other
        except Exception as error:
            shorten(error)
            raise

    @property
    def real(self: Any) -> Tensor:
        """The real part; a real tensor is returned as it is."""
        from turnout_aten.generated.functions import real

        return real(self)

    @real.setter
    def real(self: Any, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self: Any) -> Tensor:
        """The imaginary part of a complex tensor. Raises DTypeError for a real one."""
        from turnout_aten.generated.functions import imag

        return imag(self)

    @imag.setter
    def imag(self: Any, value: Any) -> None:
        self.imag[...] = value

    @property
    def T(self: Any) -> Tensor:
        """The dimensions reversed: the transpose of a matrix."""
        ndim = len(self.array.shape)
        return aten.permute(self, (1, 0) if ndim == 2 else tuple(range(ndim - 1, -1, -1)))

    @property
    def mT(self: Any) -> Tensor:
        """The last two dimensions exchanged: a matrix, or a batch of them, transposed. Raises ShapeError below 2 dims."""
        if len(self.shape) < 2:
            raise ShapeError(f"mT needs at least 2 dimensions, this tensor has shape {list(self.shape)}")
        return self.transpose(-2, -1)

    @property
    def H(self: Any) -> Tensor:
        """The conjugate transpose of a matrix, or a 0-dim tensor conjugated. Raises ShapeError for any other number of dims."""
        if len(self.shape) not in (0, 2):
            raise ShapeError(f"H needs 2 dimensions, this tensor has shape {list(self.shape)}; use mH")
        if self.shape:
            return self.adjoint()
        return self.conj() if self.is_complex() else self

    @property
    def mH(self: Any) -> Tensor:
        """The last two dimensions exchanged and the elements conjugated. Raises ShapeError below 2 dims."""
        return self.adjoint()
