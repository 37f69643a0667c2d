"""`__array_namespace_info__`: what the namespace can do."""

from __future__ import annotations

from turnout import devices
from turnout.dtypes import DTYPES, DType, get_default_dtype, int64
from turnout_aten.array_api.data_types import isdtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.devices import Device

_STANDARD = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip


class Info:
    """What the namespace can do; the same for every device."""

    __slots__ = ()

    def capabilities(self) -> dict[str, bool | int]:
        """Masks select elements, shapes may depend on values, and NumPy's arrays set the limit of dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Where arrays are made when nothing says where: the setting `default_device`."""
        place = devices.default_device()
        return place.backend.resolve_device(place)

    def devices(self) -> list[Device]:
        """The default device and those of all active backends; naming a device activates the package that provides it."""
        first = self.default_device()
        found = [first]
        for device_type in devices.active_device_types():
            backend = devices.device(device_type).backend
            for index in range(backend.device_count()):
                place = backend.resolve_device(devices.device(device_type, index))
                if place is not first:
                    found.append(place)
        return found

    def default_dtypes(self, *, device: str | Device | None = None) -> dict[str, DType]:
        """The dtypes of arrays made from Python numbers, and of indices."""
        floating = get_default_dtype()
        return {
            "real floating": floating,
            "complex floating": floating.to_complex(),
            "integral": int64,
            "indexing": int64,
        }

    def dtypes(
        self, *, device: str | Device | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's dtypes by name, those of a kind where one is given. Raises ArgumentError for an unknown kind."""
        return {name: DTYPES[name] for name in _STANDARD if kind is None or isdtype(DTYPES[name], kind)}


def __array_namespace_info__() -> Info:
    """What the namespace can do."""
    return Info()
