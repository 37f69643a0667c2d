"""The devices of a FakeMode. One equals the real device of its name, and its backend makes arrays without data.

Kernels find a backend through the device of a tensor. So the kernels of views, factories and composites, and those of Meta,
serve fake tensors as they are, and what they make is fake too and says the right device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from turnout.devices import Device
from turnout.devices import device as real_device
from turnout.errors import DeviceError, NoDataError, PluginError
from turnout.keys import KEYS
from turnout_aten.tensor.devices import TensorDevice
from turnout_aten.tensor.random import Generator
from turnout_meta.backend import NOTHING_TO_COPY, MetaArray, MetaBackend
from turnout_meta.fakes import errors

if TYPE_CHECKING:
    from turnout.keys import BackendRow
    from turnout_aten.tensor.tensor import Tensor
    from turnout_meta.fakes.mode import FakeMode

    State = tuple[int, int]

FAKE = KEYS.bit("Fake")


class FakeDevice(TensorDevice):
    """A device of a FakeMode."""

    __slots__ = ()

    backend: FakeBackend

    def __new__(cls, type: str, index: int | None, backend: FakeBackend) -> FakeDevice:
        made = object.__new__(cls)  # not one of the real devices, which are interned
        made.type, made.index, made.backend = type, index, backend
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash(real_device(self.type, self.index))


class FakeBackend(MetaBackend):
    """The arrays of one device type in a FakeMode: those of Meta, with the name and the rules of the real backend.

    A backend that cannot work here (no driver, no GPU) is described by its plugin's manifest. It counts as one with several
    devices, of which the first is the current one.
    """

    def __init__(self, mode: FakeMode, row: BackendRow) -> None:
        self.mode = mode
        self.fake_mode = mode
        self.name = row.name
        self.device_type = row.device
        self.keys = KEYS.tensor_bits(row.name) | FAKE
        self.dense = KEYS.bit("Dense") | KEYS.backend_bit(row.name) | FAKE
        real = real_device(row.device).backend
        try:
            self.indexed, self.scalars_mix = real.indexed, real.scalars_mix
            self._current = real.current_device().index
        except (DeviceError, PluginError):
            self.indexed, self.scalars_mix = True, False
            self._current = 0

    def current_device(self) -> FakeDevice:
        return self.mode.at(self, self._current)

    @property
    def place(self) -> FakeDevice:
        return self.mode.at(self, None)

    def resolve_device(self, wanted: Device) -> FakeDevice:
        return self.mode.device(wanted)

    # ---- values: there are none

    def from_host(self, data: Any, shape: Any, dtype: Any, device: Device) -> MetaArray:
        return self.empty(shape, dtype, device)

    def to_host(self, array: MetaArray) -> NoReturn:
        raise NoDataError(errors.no_values("its elements"))

    def received(self, source: Tensor, device: Device) -> MetaArray:
        if source.device.type == "meta":
            raise NoDataError(NOTHING_TO_COPY)  # as when the tensor is real
        return source.array

    def item(self, array: MetaArray) -> Any:
        return self.mode.item(array)

    def numpy(self, array: MetaArray) -> NoReturn:
        raise NoDataError(errors.no_values("numpy"))

    def dlpack(self, array: MetaArray, options: dict[str, Any]) -> NoReturn:
        raise BufferError(errors.no_values("__dlpack__"))


class FakeGenerator(Generator):
    """The generator of a fake device: it draws nothing, so no generator is advanced."""

    __slots__ = ()

    @property
    def keys(self) -> int:
        return self.device.backend.dense

    def reserve(self, count: Any) -> State:
        return self.get_state()


def row_of(device_type: str) -> BackendRow:
    """The row of the backend with this device type. Raises as a real device of an unknown type does."""
    KEYS.discovered()
    for row in KEYS.backend_rows.values():
        if row.device == device_type:
            return row
    backend = real_device(device_type).backend  # registered without a manifest, or unknown
    return KEYS.backend_rows[backend.name]
