"""`turnout.opencl`: the OpenCL devices, their memory, streams of work, waiting for them, and the times of their kernels."""

from __future__ import annotations

from turnout.config.effects import effect
from turnout.devices import Device
from turnout_aten.tensor.devices import device as device_named
from turnout_opencl.profiles import profile
from turnout_opencl.streams import Event, Stream, current_stream, default_stream, opened, stream

__all__ = [
    "Event", "Stream", "current_stream", "default_stream", "device_count", "empty_cache", "get_device_name", "memory_stats",
    "profile", "reset_peak_memory_stats", "stream", "synchronize",
]  # fmt: skip
__dir__ = __all__.copy


def device_count() -> int:
    """The number of OpenCL devices, over all platforms that count.

    Example:
        >>> turnout.opencl.device_count() >= 1
        True
    """
    return device_named("opencl").backend.device_count()


def get_device_name(device: str | Device | None = None) -> str:
    """The name of a device, and of its platform.

    Arguments:
        device: "opencl" or "opencl:1"; None for the current one

    Example:
        >>> isinstance(turnout.opencl.get_device_name(), str)
        True
    """
    return opened(device).name


def synchronize(device: str | Device | None = None) -> None:
    """Wait until everything that was queued on a device is done, in all of its streams.

    Arguments:
        device: "opencl" or "opencl:1"; None for the current one

    Example:
        >>> x = turnout.ones(3, device="opencl").exp()
        >>> turnout.opencl.synchronize()
    """
    effect("turnout.opencl.synchronize()")
    opened(device).finish()


def memory_stats(device: str | Device | None = None) -> dict[str, int]:
    """The memory of a device, in bytes and buffers.

    | key | number |
    |---|---|
    | `allocated_bytes.all.current`, `.peak` | bytes of the buffers that arrays use |
    | `reserved_bytes.all.current`, `.peak` | bytes taken from the driver, with those kept for later arrays |
    | `active.all.current` | buffers that arrays use |
    | `inactive.all.current` | buffers that are kept |
    | `allocation.all.allocated` | buffers that were asked for |
    | `num_ooms` | those for which there was no room |

    Arguments:
        device: "opencl" or "opencl:1"; None for the current one

    Example:
        >>> before = turnout.opencl.memory_stats()["allocated_bytes.all.current"]
        >>> x = turnout.ones(1000, device="opencl")
        >>> turnout.opencl.memory_stats()["allocated_bytes.all.current"] - before
        4000
    """
    effect("turnout.opencl.memory_stats()")
    return opened(device).memory_stats()


def reset_peak_memory_stats(device: str | Device | None = None) -> None:
    """Let the peaks of `memory_stats` start from what is in use now.

    Arguments:
        device: "opencl" or "opencl:1"; None for the current one

    Example:
        >>> turnout.opencl.reset_peak_memory_stats()
    """
    effect("turnout.opencl.reset_peak_memory_stats()")
    opened(device).reset_peaks()


def empty_cache(device: str | Device | None = None) -> None:
    """Give the memory that is kept for later arrays back to the driver.

    Arguments:
        device: "opencl" or "opencl:1"; None for the current one

    Example:
        >>> turnout.opencl.empty_cache()
        >>> turnout.opencl.memory_stats()["inactive.all.current"]
        0
    """
    effect("turnout.opencl.empty_cache()")
    opened(device).release()
