"""Devices: interned (type, index) pairs, and `Backend`, what dispatch needs of a package that brings a device type.

Using a device whose backend is not active activates its plugin: this is how `device="acme"` activates a package.
"""

from __future__ import annotations

from turnout import config
from turnout.config import LOCK, OVERRIDES
from turnout.config.installed import installed
from turnout.config.lock import cached_property
from turnout.errors import DeviceError, UniverseError, printed
from turnout.guards import Guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from turnout.guards import Changes
    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout.registry import Registrations

__all__ = ["Backend", "Device", "active_device_types", "default_device", "device", "forget_default_device",
    "named", "register_device_type", "unregister_device_type"]  # fmt: skip

_BACKENDS: dict[str, Backend] = {}
_INTERNED: dict[tuple[str, int | None], Device] = {}


class _Inactive:
    """The placeholder of an inactive backend. The first use of an attribute activates its plugin."""

    __slots__ = ("_device_type",)

    def __init__(self, device_type: str) -> None:
        self._device_type = device_type

    def __getattr__(self, name: str) -> Any:
        return getattr(_activate(self._device_type), name)


class Device(Guard):
    """The place of a tensor's data, "cpu" or "cuda:1", by name or by type and index. In a `with` block it is the default device.

    `type` is the text before the colon, `index` is None if the backend has only one device. No plugin is activated: the first
    use of an attribute of `backend` activates the plugin of the type, and raises DeviceError or PluginError if there is none.
    Devices are interned: equal devices are the same object. Raises DeviceError for a text other than TYPE or TYPE:INDEX, and for
    a type that no installed plugin and no known package has.

    Arguments:
        type: "cpu", "cuda:1" or a device
        index: the index, if the text does not have it

    Example:
        >>> turnout.device("cuda", 1)
        device('cuda:1')
    """

    __slots__ = ("backend", "index", "type")
    schema_type = "Device"

    type: str
    index: int | None
    backend: Backend

    def __new__(cls, type: str | Device, index: int | None = None) -> Device:
        if type.__class__ is str and (known := _INTERNED.get((type, index))) is not None:
            return known
        if isinstance(type, Device):
            return type
        try:
            return cls._made(type, index)
        except Exception as error:
            installed().shorten(error)
            raise

    @classmethod
    def _made(cls, type: str, index: int | None) -> Device:
        if not isinstance(type, str):
            raise DeviceError(f"a device is named by a string such as 'cpu' or 'cuda:0', got {printed(type)}")
        if index is None and ":" in type:
            type, _, digits = type.partition(":")
            if not (digits.isascii() and digits.isdecimal()) or len(digits) > 9:
                raise DeviceError(f"a device is written TYPE or TYPE:INDEX, got '{type}:{digits}'")
            index = int(digits)
        if index is not None and not isinstance(index, int):
            raise DeviceError(f"the index of a device is an int, got {printed(index)} for {type!r}")
        if index is not None and index < 0:
            raise DeviceError(f"the index of a device is not negative, got {index} for {type!r}")
        if not type.isidentifier():
            raise DeviceError(f"a device is written TYPE or TYPE:INDEX, got {type!r}")
        if type not in _BACKENDS and (type, index) not in _INTERNED:
            installed().check_device(type)
        with LOCK:  # otherwise a backend that is registered meanwhile would miss this device
            found = _INTERNED.get((type, index))
            if found is None:
                found = object.__new__(cls)
                found.type, found.index = type, index
                found.backend = _BACKENDS.get(type) or _Inactive(type)  # type: ignore[assignment]
                _INTERNED[type, index] = found
        return found

    def sets(self) -> Changes:
        return config.Override({"default_device": str(self)}).sets()

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return f"device({str(self)!r})"

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Device, (str(self),))


device = Device


def named(text: str) -> Device:
    """The device of a text: `Device(text)`, without the call of the class, 200 ns, where it is known."""
    return _INTERNED.get((text, None)) or Device(text)


def _activate(device_type: str) -> Backend:
    installed().require_device(device_type)
    found = _BACKENDS.get(device_type)
    if found is None:
        raise DeviceError(f"no backend has devices of type {device_type!r}; `turnout plugins` lists what is installed")
    return found


class Backend:
    """What dispatch needs of a package that brings a device type; it knows nothing about arrays.

    Derive a class, set its attributes, and register an instance with `Registrations.backend`.

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

    def path_of(self, op: Operator, kernel: Kernel, ks: int, args: Sequence[Any]) -> str:
        """Which path serves a call of a kernel on the backend's own arrays, and why, in words; "" where there is only one."""
        return ""

    def fresh_result(self, result: str, inputs: list[tuple[str, bool]]) -> tuple[str, dict[str, Any]]:
        """The source of a test and its globals. The test is true only for a plain tensor that shares no memory with the inputs.

        `result` is the source of the value; `inputs` are (source, whether it may be None). Without a quick test, it is "".
        """
        return "", {}

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

    def empty_cache(self) -> None:
        """Give memory that is kept for later calls back to the system. The kit calls it between operators."""

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


def register_device_type(device_type: str, backend: Backend) -> None:
    """Bind a device string to a backend. Raises UniverseError if it is taken."""
    if device_type in _BACKENDS:
        raise UniverseError(f"device {device_type!r} belongs to backend {_BACKENDS[device_type].name} already")
    _BACKENDS[device_type] = backend
    _point_to(device_type, backend)


def unregister_device_type(device_type: str) -> None:
    """Undo `register_device_type`."""
    if _BACKENDS.pop(device_type, None) is not None:
        _point_to(device_type, _Inactive(device_type))


def _point_to(device_type: str, backend: Any) -> None:
    for (known, _), each in list(_INTERNED.items()):
        if known == device_type:
            each.backend = backend


def active_device_types() -> list[str]:
    """The device strings of the active backends."""
    return list(_BACKENDS)


# Kept until a setting changes or the environment is read again: reading it costs 600 ns, at every factory call.
DEFAULT: list[Device | None] = [None]


def default_device() -> Device:
    """The device of tensors made without one: the setting `default_device`, else that of the backend of lowest rank."""
    if (kept := DEFAULT[0]) is not None and not OVERRIDES.get():
        return kept
    return _read_default()


def _read_default() -> Device:
    global _subscribed
    store = config.current_store()
    with LOCK:
        if not _subscribed:
            store.on_change(forget_default_device)
            _subscribed = True
    forgotten = _forgotten
    setting = store.value("default_device")
    wanted = setting.value or installed().default_device_type()
    if not wanted:
        raise DeviceError("no backend is installed whose device is the default one; say device=..., or set default_device")
    # An error about a setting names it: the program may know nothing of it.
    asked = f"device {wanted!r} (default_device, {setting.origin})" if setting.value else ""
    kind = wanted.partition(":")[0]
    if asked and kind.isidentifier() and kind not in _BACKENDS:
        installed().require_device(kind, asked)
    found = device(wanted)
    if asked:
        try:
            found.backend.resolve_device(found)
        except DeviceError as error:
            raise DeviceError(f"{asked}: {error}") from None
    if not OVERRIDES.get():
        with LOCK:
            if forgotten == _forgotten:  # nothing was changed meanwhile
                DEFAULT[0] = found
    return found


_subscribed = False
_forgotten = 0  # how often


def forget_default_device(names: object = None) -> None:
    """Compute it again at the next use, because a setting or the environment has changed."""
    global _forgotten
    _forgotten += 1
    DEFAULT[0] = None
