"""Core's devices as type checkers see them in this package: the backend of a tensor's device has arrays.

At run time a `TensorDevice` is core's `Device`. `place` decides where a tensor is made.
"""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from turnout.devices import Device
    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.tensor.random import Generator
    from turnout_aten.tensor.tensor import Tensor

    class TensorDevice(Device):
        """A device that holds tensors."""

        backend: TensorBackend

    class TensorMode(Protocol):
        """A mode whose tensors have no data, and devices of their own."""

        def device(self, wanted: str | Device) -> TensorDevice: ...

        def generator(self, device: Device) -> Generator: ...

    def device(type: str | Device, index: int | None = None) -> TensorDevice: ...

    def default_device() -> TensorDevice: ...

else:
    from turnout.devices import Device as TensorDevice
    from turnout.devices import default_device as default_device
    from turnout.devices import device as device

# (the mode in which tensors are made now,) if they have no data.
FAKE_MODE: ContextVar[Sequence[TensorMode]] = ContextVar("turnout.fake_mode", default=())


def fake_mode() -> TensorMode | None:
    """The mode in which tensors are made now, if they have no data."""
    modes = FAKE_MODE.get()
    return modes[0] if modes else None


def place(wanted: str | Device | None, beside: Tensor | None = None) -> TensorDevice:
    """The device on which a tensor is made: the default one for None, with its index if the backend has several.

    `beside` is a tensor that is moved or copied: if it has no data, its mode has the device. Raises DeviceError for a device
    that does not exist.
    """
    named = default_device() if wanted is None else wanted if isinstance(wanted, TensorDevice) else device(wanted)
    mode = beside.device.backend.fake_mode if beside is not None else fake_mode() if FAKE_MODE.get() else None
    if mode is not None:
        return mode.device(named)
    backend = named.backend
    return named if named is backend.place and not backend.indexed else backend.resolve_device(named)
