"""`Backend`: what dispatch needs of a package that brings a device. It knows nothing about arrays."""

from __future__ import annotations

from turnout.config.lock import cached_property
from turnout.devices.devices import Device, device
from turnout.errors import DeviceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout.registry import Registrations


class Backend:
    """Derive a class, set its attributes, and register an instance with `Registrations.backend`.

    name         the name in dispatch keys: "CPU" gives the keys CPU, AutogradCPU, AutocastCPU
    device_type  the device string: "cpu"
    indexed      it has several devices: all tensors of a call must be on one, and the call runs under `guard`
    scalars_mix  its 0-dim tensors mix with tensors on any other device
    """

    name: str = ""
    device_type: str = ""
    indexed: bool = False
    scalars_mix: bool = False
    keys: int = 0  # the key set of its plain tensors, set when it is registered
    dense: int = 0  # the part of `keys` that selects the backend's own slot

    def bind_array_kernel(self, op: Operator, kernel: Kernel) -> Callable[..., Any] | None:
        """A kernel on the backend's own arrays as a callable of the internal convention; None for a backend without arrays."""
        return None

    def fresh_result(self, result: str, inputs: list[tuple[str, bool]]) -> tuple[str, dict[str, Any]]:
        """The source of a test and its globals. The test is true only for a plain tensor that shares no memory with the inputs.

        `result` is the source of the value; `inputs` are (source, whether it may be None). Without a quick test, it is "".
        """
        return "", {}

    # ---- devices

    def device_count(self) -> int:
        """How many devices there are."""
        return 1

    def current_device(self) -> Device:
        """The device of a tensor when only the device type is named."""
        return device(self.device_type, 0) if self.indexed else self.place

    @cached_property
    def place(self) -> Device:
        """The one device of a backend that is not indexed."""
        return device(self.device_type)

    def guard(self, device: Device) -> AbstractContextManager[object] | None:
        """A context manager that makes a device current, or None."""
        return None

    def synchronize(self, device: Device) -> None:
        """Wait until all work queued on the device is done."""

    def resolve_device(self, wanted: Device) -> Device:
        """The device on which a tensor is made when `wanted` is named. Raises DeviceError for an index that does not exist."""
        if wanted.index is None:
            return self.current_device() if self.indexed else wanted
        if not self.indexed and wanted.index == 0:
            return self.place
        if wanted.index >= self.device_count():
            raise DeviceError(f"{wanted} does not exist: {self.device_type} has {self.device_count()} device(s)")
        return wanted

    def registered(self, library: Registrations) -> None:
        """Called when the backend was registered. Undo what this sets up with `library.on_undo`."""

    def __repr__(self) -> str:
        return f"<Backend {self.name} ({self.device_type})>"
