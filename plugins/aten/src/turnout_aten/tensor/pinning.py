"""Page-locked memory of the host, which a device reads while the program goes on.

The backend of the device allocates it (`TensorBackend.pinned_memory`), and the backend of the host lays an array over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.devices import active_device_types
from turnout.errors import DeviceError, TurnoutError
from turnout_aten.shapes.extents import reach_of
from turnout_aten.tensor.devices import device as device_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from turnout.dtypes import DType
    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.tensor.devices import TensorDevice
    from turnout_aten.tensor.tensor import Tensor


def pinned_array(shape: Sequence[int], dtype: DType, device: TensorDevice, strides: Sequence[int] | None) -> Any:
    """An uninitialised array of the host in page-locked memory; None on a device without data.

    Raises DeviceError for the memory of another device, and where no installed backend has such memory.
    """
    if not device.backend.has_values:
        return None
    host = plugins.default_device_type()
    if device.type != host:
        raise DeviceError(
            f"pin_memory: only memory of {host} can be page-locked, not that of {device}\n"
            f"  to fix  pin the tensor on {host} and copy it to {device} with non_blocking=True"
        )
    if strides is None:
        size = 1
        for length in shape:
            size *= length
    else:
        size = reach_of(shape, strides)
    for backend in _others(host):
        memory = backend.pinned_memory(size * dtype.itemsize)
        if memory is not None:
            return device.backend.over_memory(memory, tuple(shape), dtype, None if strides is None else tuple(strides))
    raise DeviceError(
        "pin_memory: no device is available that reads page-locked memory\n"
        "  to fix  leave pin_memory out, or install a backend that has such memory; `turnout plugins` says which are there,"
        " and why others cannot be used"
    )


def is_pinned(tensor: Tensor) -> bool:
    """Whether a tensor with elements lies in page-locked memory of the host. A backend that has not been used has locked none."""
    device = tensor.device
    if not device.backend.has_values or device.type != plugins.default_device_type() or not tensor.numel():
        return False
    address = tensor.data_ptr()
    return any(_backend(each).is_pinned(address) for each in active_device_types() if _is_of_tensors(each))


def _others(host: str) -> Iterator[TensorBackend]:
    """The backends of tensors beside the host's: those that are active, then those that can be activated."""
    active = active_device_types()
    yield from (_backend(each) for each in active if each != host and _is_of_tensors(each))
    for record in plugins.all_plugins():
        for name in record.provides if record.state == "discovered" else ():
            kind, _, device_type = name.partition(":")
            if kind == "device" and device_type not in active:
                try:
                    found = _backend(device_type)
                except TurnoutError:  # which `turnout plugins` tells
                    continue
                if _is_of_tensors(device_type):
                    yield found


def _backend(device_type: str) -> TensorBackend:
    return device_named(device_type).backend


def _is_of_tensors(device_type: str) -> bool:
    """Whether a backend derives from `TensorBackend`; core alone knows others."""
    return hasattr(_backend(device_type), "pinned_memory")
