"""Devices in `turnout.cuda`: which one is the current one, and what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from turnout.config.effects import effect
from turnout.config.tuples import NamedTuple
from turnout.errors import DeviceError
from turnout.errors.calls import other_device
from turnout_aten.functions.docstrings import describe
from turnout_aten.tensor.devices import device as device_named

if TYPE_CHECKING:
    from turnout.devices import Device
    from turnout_cuda.backend import CUDABackend

    Place = str | int | Device | None


class Properties(NamedTuple):
    """What a device is; memory in bytes."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int


def backend_in_use() -> CUDABackend:
    """The backend of the device. Raises DeviceError or PluginError, with the reason, where there is none."""
    return cast("CUDABackend", device_named("cuda").backend)


def index_of(place: Place) -> int:
    """The index of a device: an int, "cuda:1", or None for the current one. Raises DeviceError where there is no such device."""
    backend = backend_in_use()
    named = device_named("cuda", place) if isinstance(place, int) else device_named("cuda" if place is None else place)
    if named.type != "cuda":
        raise DeviceError(other_device("cuda", named, besides=", or its index"))
    index = backend.resolve_device(named).index
    assert index is not None
    return index


def current_device() -> int:
    """The index of the device that "cuda" means in this thread.

    Example:
        >>> index = turnout.cuda.current_device() if turnout.cuda.is_available() else 0
    """
    effect("turnout.cuda.current_device()")
    return index_of(None)


def set_device(device: Place) -> None:
    """Make a device the one that "cuda" means in this thread.

    Arguments:
        device: "cuda:1" or 1

    Example:
        >>> if turnout.cuda.device_count() > 1:
        ...     turnout.cuda.set_device(1)
    """
    effect("turnout.cuda.set_device()")
    backend_in_use().cupy.cuda.Device(index_of(device)).use()


class device:
    """A block in which "cuda" means this device in this thread.

    Arguments:
        device: "cuda:1" or 1; None changes nothing
    """

    def __init__(self, device: Place) -> None:
        self._index = None if device is None else index_of(device)
        self._before: list[int] = []

    def __enter__(self) -> None:
        self._before.append(current_device())
        if self._index is not None:
            set_device(self._index)

    def __exit__(self, *exc_info: object) -> None:
        set_device(self._before.pop())


def get_device_name(device: Place = None) -> str:
    """The name of a device, such as "NVIDIA H100".

    Example:
        >>> name = turnout.cuda.get_device_name() if turnout.cuda.is_available() else ""
    """
    return get_device_properties(device).name


def get_device_capability(device: Place = None) -> tuple[int, int]:
    """The compute capability of a device, as (major, minor).

    Example:
        >>> at_least = turnout.cuda.is_available() and turnout.cuda.get_device_capability() >= (7, 0)
    """
    found = get_device_properties(device)
    return found.major, found.minor


def get_device_properties(device: Place = None) -> Properties:
    """What a device is: `name`, `major`, `minor`, `total_memory` in bytes, `multi_processor_count`, `warp_size`.

    Example:
        >>> if turnout.cuda.is_available():
        ...     room = turnout.cuda.get_device_properties().total_memory
    """
    found = backend_in_use().cupy.cuda.runtime.getDeviceProperties(index_of(device))
    name = found["name"].decode(errors="replace") if isinstance(found["name"], bytes) else found["name"]
    numbers = (found["major"], found["minor"], found["totalGlobalMem"], found["multiProcessorCount"], found["warpSize"])
    return Properties(name, *map(int, numbers))


def is_bf16_supported() -> bool:
    """Whether the current device computes in bfloat16 by itself, which begins with capability 8.0.

    Example:
        >>> dtype = "bfloat16" if turnout.cuda.is_available() and turnout.cuda.is_bf16_supported() else "float16"
    """
    return get_device_capability() >= (8, 0)


def synchronize(device: Place = None) -> None:
    """Wait until everything that was queued on a device is done.

    Example:
        >>> if turnout.cuda.is_available():
        ...     turnout.cuda.synchronize()
    """
    effect("turnout.cuda.synchronize()")
    backend_in_use().synchronize(device_named("cuda", index_of(device)))


describe(globals(), device='"cuda:1" or 1; None for the current one')
