"""`__array_namespace_info__`: the capabilities of the namespace."""

from __future__ import annotations

from turnout import devices
from turnout.dtypes import DTYPES, DType, get_default_dtype, int64
from turnout_array_api.namespace.data_types import isdtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.devices import Device

_STANDARD = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip


class Info:
    """The capabilities of the namespace. They are the same for every device."""

    __slots__ = ()

    def capabilities(self) -> dict[str, bool | int]:
        """Masks can select elements, and shapes may depend on values. NumPy sets the maximum number of dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device of new arrays unless one is given: the setting `default_device`."""
        place = devices.default_device()
        return place.backend.resolve_device(place)

    def devices(self) -> tuple[Device, ...]:
        """The default device and the devices of all active backends. Naming a device activates the package that provides it."""
        first = self.default_device()
        found = [first]
        for device_type in devices.active_device_types():
            backend = devices.device(device_type).backend
            for index in range(backend.device_count()):
                place = backend.resolve_device(devices.device(device_type, index))
                if place is not first:
                    found.append(place)
        return tuple(found)

    def default_dtypes(self, *, device: str | Device | None = None) -> dict[str, DType]:
        """The dtypes of arrays made from Python numbers, and of indices."""
        floating = get_default_dtype()
        return {"real floating": floating, "complex floating": floating.to_complex(), "integral": int64, "indexing": int64}

    def dtypes(self, *, device: str | Device | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The standard's dtypes by name, or only those of a kind. Raises ArgumentError for an unknown kind."""
        return {name: DTYPES[name] for name in _STANDARD if kind is None or isdtype(DTYPES[name], kind)}


def __array_namespace_info__() -> Info:
    """The capabilities of the namespace.

    Example:
        >>> turnout.array_api.__array_namespace_info__().capabilities()["boolean indexing"]
        True
    """
    return Info()
