"""Core's devices as type checkers see them in this package: the backend of a tensor's device has arrays.

At run time a `TensorDevice` is core's `Device`, and the functions are core's.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.devices import Device
    from turnout_aten.backend.tensor_backend import TensorBackend

    class TensorDevice(Device):
        """A device that holds tensors."""

        backend: TensorBackend

    def device(type: str | Device, index: int | None = None) -> TensorDevice: ...

    def default_device() -> TensorDevice: ...

else:
    from turnout.devices import Device as TensorDevice
    from turnout.devices import default_device as default_device
    from turnout.devices import device as device
