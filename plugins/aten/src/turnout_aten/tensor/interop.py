"""Exchange with the outside: Python numbers, NumPy arrays, DLPack.

No array library is imported here: the tensor's backend does what needs one.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import turnout
from turnout.config.effects import effect
from turnout.dtypes import INT
from turnout.errors import AliasError, ArgumentError, CallError, DataError, DTypeError
from turnout.operators.arguments import as_dtype
from turnout.operators.tracebacks import shorten, shortening
from turnout.state import BELOW_AUTOGRAD, in_effect
from turnout_aten import operators as aten
from turnout_aten.errors import arguments as texts
from turnout_aten.errors.tensors import tracked
from turnout_aten.tensor import host_bytes as elements
from turnout_aten.tensor.devices import device as device_named
from turnout_aten.tensor.devices import place
from turnout_aten.tensor.inference import made as inference_made
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.reads import READERS, reads
from turnout_aten.tensor.tensor import wrap

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor

_HOST = device_named("cpu")

# DLPack's device type numbers, and the device types here that have the same memory.
DLPACK_DEVICES = {1: "cpu", 2: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 10: "rocm"}


HOST = (1, 0)

# ---- Python numbers


def item(tensor: Tensor) -> Any:
    """The number in a tensor of one element. Raises ArgumentError for more or fewer, NoDataError for a meta tensor.

    Arguments:
        tensor: this tensor

    Example:
        >>> turnout.tensor([3]).item()
        3
    """
    try:
        if tensor.array.shape and tensor.numel() != 1:
            raise ArgumentError(texts.not_one_element("item", tensor.shape, "; use tolist()"))
        return aten._local_scalar_dense(tensor)
    except Exception as error:
        shorten(error)
        raise


def tolist(tensor: Tensor) -> Any:
    """Nested lists of Python numbers, or the number of a 0-dim tensor. Raises NoDataError for a meta tensor.

    The numbers of a fake tensor of integers are symbols.

    Arguments:
        tensor: this tensor

    Example:
        >>> turnout.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
    """
    try:
        if READERS:
            reads("tolist()")
        if tensor.fake_mode is not None and tensor.dtype.category == INT:
            return [tolist(each) for each in tensor.unbind()] if tensor.shape else item(tensor)
        made = tensor.device.backend.tolist(tensor.array)
        if made is not None:
            return made
        values = elements.decode(host_bytes(tensor), tensor.dtype)
        return nested(values, tensor.shape) if tensor.shape else values[0]
    except Exception as error:
        shorten(error)
        raise


def host_bytes(tensor: Tensor) -> bytes | memoryview:
    """The elements as host bytes. Waits for pending work."""
    return tensor.device.backend.to_host(tensor.array)


def nested(values: list[Any], shape: tuple[int, ...]) -> Any:
    """A flat list as lists of lists."""
    for length in reversed(shape[1:]):
        count = len(values) // length if length else 0
        values = [values[i * length : (i + 1) * length] for i in range(count)]
    if 0 in shape[1:]:
        return _empty_lists(shape)
    return values


def _empty_lists(shape: tuple[int, ...]) -> list[Any]:
    return [] if len(shape) == 1 else [_empty_lists(shape[1:]) for _ in range(shape[0])]


# ---- NumPy


def numpy(tensor: Tensor, *, force: bool = False) -> Any:
    """A NumPy array over the tensor's memory.

    Raises AliasError for a tensor that requires a gradient, CallError for one on a device that the host cannot reach.
    `force=True` detaches the tensor and copies it to `cpu` if needed.

    Arguments:
        tensor: this tensor
        force: whether to detach the tensor and copy it to the host where that is needed

    Example:
        >>> turnout.tensor([1, 2]).numpy()
        array([1, 2])
    """
    try:
        if READERS:
            reads("numpy()")
        if force:
            tensor = tensor.detach()
            made = tensor.device.backend.numpy(tensor.array)
            return made if made is not None else numpy(tensor.to(device="cpu"))
        # Kernels that run below Autograd may read the array: nothing that they compute is recorded.
        if tensor.gmask and tensor.gmask & GRAD.get()[0] and in_effect(~BELOW_AUTOGRAD) & ~BELOW_AUTOGRAD:
            raise AliasError(tracked("numpy", "; use .detach().numpy(), or .numpy(force=True)"))
        made = tensor.device.backend.numpy(tensor.array)
        if made is None:
            raise CallError(f"numpy: the tensor is on {tensor.device}; use .cpu().numpy(), or .numpy(force=True)")
        return made
    except Exception as error:
        shorten(error)
        raise


def array(tensor: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    """The result of `numpy.asarray(tensor)`. Raises as `numpy` does, and ValueError if `copy=False` needs a copy.

    # differs from torch: NumPy's functions of a tensor, such as `np.sin(x)`, give arrays and not tensors.
    """
    try:
        made = numpy(tensor)
        if dtype is not None and made.dtype != dtype:
            if copy is False:
                raise ArgumentError(f"a tensor of dtype {tensor.dtype.name} cannot be an array of {dtype} without a copy")
            return made.astype(dtype)
        return made.copy() if copy else made
    except Exception as error:
        shorten(error)
        raise


def from_numpy(array: Any) -> Tensor:
    """A tensor on `cpu` that shares a NumPy array's memory: writing into one changes the other.

    Raises CallError for any other object, DTypeError for an array whose dtype a tensor cannot have, and DataError, which is a
    ValueError, for such a byte order or strides.

    Arguments:
        array: the array

    Example:
        >>> import numpy
        >>> turnout.from_numpy(numpy.array([1, 2]))
        tensor([1, 2])
    """
    effect("from_numpy()")
    try:
        backend = _HOST.backend
        adopted = backend.adopt(array)
        if adopted is None:
            if not hasattr(array, "__array_interface__") or not hasattr(array, "strides"):
                raise CallError(f"from_numpy: argument 'array' must be a NumPy array, got {type(array).__name__}")
            if not array.dtype.isnative:
                raise DataError(f"from_numpy: no tensor has dtype {array.dtype}, which has the other byte order")
            if elements.foreign_dtype(array.dtype) is None:
                raise DTypeError(f"from_numpy: no tensor has dtype {array.dtype}")
            raise DataError(
                f"from_numpy: strides {array.strides} are negative or not multiples of the element size; copy the array first"
            )
        flags = adopted.flags
        if not flags.writeable:
            warnings.warn("from_numpy: the array is read-only; writing into the tensor will fail", UserWarning, stacklevel=2)
        made = wrap(adopted, backend.current_device() if backend.indexed else _HOST)
        if not flags.c_contiguous and any(n > 1 and stride == 0 for n, stride in zip(made.shape, made.stride(), strict=True)):
            made.shared_storage()  # its elements share memory: writes must take the path that checks for overlap
        return inference_made(made)
    except Exception as error:
        shorten(error)
        raise


def frombuffer(buffer: Any, *, dtype: DType, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector on `cpu` over the memory of an object with the buffer protocol: writing into one changes the other.

    Raises CallError for an object without a buffer, ArgumentError for a buffer without elements, and where `count` elements from
    `offset` on are not inside.

    Arguments:
        buffer: bytes, a bytearray, an array, a memory map or the like
        dtype: the dtype of the elements
        count: how many elements; -1 takes all that follow
        offset: how many bytes to pass over first
        requires_grad: whether gradients with respect to it are wanted

    Example:
        >>> turnout.frombuffer(bytearray([1, 0, 2, 0]), dtype=turnout.int16)
        tensor([1, 2], dtype=turnout.int16)
    """
    effect("frombuffer()")
    dtype = as_dtype("frombuffer", "dtype", dtype)
    try:
        view = memoryview(buffer).cast("B")
    except TypeError:
        raise CallError(
            f"frombuffer: argument 'buffer' must be an object with a contiguous buffer, got {type(buffer).__name__}"
        ) from None
    size, left = dtype.itemsize, len(view) - offset
    if not 0 <= offset < len(view):
        raise ArgumentError(f"frombuffer: offset {offset} is not inside a buffer of {len(view)} bytes")
    if count < 0 and left % size:
        raise ArgumentError(f"frombuffer: {left} bytes from offset {offset} on are not whole elements of {dtype.name}")
    count = left // size if count < 0 else count
    if not 0 < count * size <= left:
        raise ArgumentError(f"frombuffer: {count} elements of {dtype.name} do not fit in {left} bytes from offset {offset} on")
    if view.readonly:
        warnings.warn("frombuffer: the buffer is read-only; writing into the tensor will fail", UserWarning, stacklevel=2)
    backend = _HOST.backend
    place = backend.current_device() if backend.indexed else _HOST
    made = inference_made(wrap(backend.over_buffer(view[offset : offset + count * size], dtype), place))
    return made.requires_grad_() if requires_grad else made


def cuda_array(tensor: Tensor) -> Any:
    """`__cuda_array_interface__` of a tensor, used by Numba and others.

    Raises AttributeError for memory outside a CUDA device, so that `hasattr` returns False; CallError for a tensor that
    requires a gradient.
    """
    reads("__cuda_array_interface__")
    made = getattr(tensor.array, "__cuda_array_interface__", None)
    if made is None:
        raise AttributeError(f"a tensor on {tensor.device} has no __cuda_array_interface__")
    if tensor.gmask & GRAD.get()[0]:
        raise CallError(tracked("__cuda_array_interface__", "; use .detach()"))
    return made


cuda_array_interface = property(cuda_array)


# ---- DLPack


@shortening
def to_dlpack(
    tensor: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A DLPack capsule over the tensor's memory, or over a copy on the host for `dl_device=(1, 0)`.

    Raises BufferError where the protocol requires it, and for memory on a device that has no exchange.
    """
    reads("__dlpack__")
    if tensor.requires_grad:
        raise BufferError("a tensor that requires a gradient cannot be exported through DLPack; detach() it first")
    if dl_device is not None and tuple(dl_device) == HOST and dlpack_device(tensor) != HOST:
        if copy is False:
            raise BufferError(texts.copy_forbidden("", f"a tensor on {tensor.device} needs a copy to reach the host"))
        return to_dlpack(tensor.to(device="cpu"), max_version=max_version)
    options = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
    given = {name: value for name, value in options.items() if value is not None}
    return tensor.device.backend.dlpack(tensor.array, given)


@shortening
def dlpack_device(tensor: Tensor) -> tuple[int, int]:
    """The tensor's device as DLPack's (type, index)."""
    return tensor.device.backend.dlpack_device(tensor.array)


def from_dlpack(value: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of any object with `__dlpack__` and `__dlpack_device__`, or a copy.

    Raises CallError for an object without these methods or on a device without a backend, ArgumentError where a copy is needed
    and forbidden. BufferError comes from the exporter.

    Arguments:
        value: the array, of any library that supports DLPack
        device: the device of the tensor, by default that of the array
        copy: True always copies, False never does, None does where it is needed

    Example:
        >>> import numpy
        >>> turnout.from_dlpack(numpy.array([1, 2]))
        tensor([1, 2])
    """
    effect("from_dlpack()")
    try:
        if not hasattr(value, "__dlpack__") or not hasattr(value, "__dlpack_device__"):
            raise CallError(f"from_dlpack: {type(value).__name__} has no __dlpack__ and __dlpack_device__")
        kind, index = value.__dlpack_device__()
        name = DLPACK_DEVICES.get(int(kind))
        if name is None:
            raise CallError(f"from_dlpack: no device is known for DLPack's device type {int(kind)}")
        backend = device_named(name).backend
        made = inference_made(wrap(backend.from_dlpack(value), backend.resolve_device(device_named(name, int(index)))))
        if device is not None and place(device) is not made.device:
            if copy is False:
                raise ArgumentError(texts.copy_forbidden("from_dlpack", f"an array on {made.device} needs a copy for {device}"))
            return made.to(device=device)
        return made.clone() if copy else made
    except Exception as error:
        shorten(error)
        raise


# The versions of the array API standard of which `turnout.array_api` is a namespace: functions were added, none changed.
ARRAY_API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


@shortening
def array_namespace(self: Tensor, *, api_version: str | None = None) -> Any:
    """`Tensor.__array_namespace__`: `turnout.array_api`, for code written for any array library.

    It serves older versions of the standard too, as NumPy's does. Raises ArgumentError for a version that is newer or none.
    """
    if api_version not in (None, *ARRAY_API_VERSIONS):
        expected = f"None or one of {', '.join(ARRAY_API_VERSIONS)}"
        raise ArgumentError(f"__array_namespace__: api_version must be {expected}, got {api_version!r}")
    return turnout.array_api
