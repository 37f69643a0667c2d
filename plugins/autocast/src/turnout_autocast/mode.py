"""The context `autocast`, and whether casting is on: the state has the switch of a backend's Autocast<B>."""

from __future__ import annotations

from turnout import config, plugins
from turnout.devices import active_device_types, device
from turnout.errors import CallError, DisabledError
from turnout.errors import plugins as errors
from turnout.errors.library import NO_DEVICE_TYPE
from turnout.guards import Guard
from turnout.keys import AUTOCAST, KEYS
from turnout.operators import shorten
from turnout.registry import REGISTRY
from turnout.state import StateChange, in_effect
from turnout_aten.tensor.devices import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout.dtypes import DType
    from turnout.guards import Changes


class autocast(Guard):
    """Run operators on one type of device in the dtype that suits them. A context manager and a decorator.

    device_type    "cpu", "cuda", ...
    dtype          the lower precision; if left out that of the context around, else the device's own (bfloat16 on the CPU)
    enabled        False: no casts inside, whatever the contexts around say
    cache_enabled  whether a weight is cast once for all its uses, until the outermost context is left

    Contexts nest, also those of different devices. A thread or task that does not enter one has none. When one is entered,
    PluginError is raised where nothing provides Autocast, DeviceError or PluginError for a device that there is not,
    DisabledError when configuration disables the key, DTypeError for a dtype that is not a lower-precision one.
    """

    __slots__ = ("cache_enabled", "device_type", "dtype", "enabled")

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        try:
            if not isinstance(device_type, str):
                raise CallError(NO_DEVICE_TYPE.format("autocast", type(device_type).__name__))
            self.device_type = device(device_type).type
            self.enabled = bool(enabled)
        except Exception as error:
            shorten(error)
            raise
        self.dtype = dtype
        self.cache_enabled = cache_enabled

    def sets(self) -> Changes:
        if not self.enabled:
            return _switched_off(self.device_type)
        _require_key(place(self.device_type).backend.name)
        return plugins.service(AUTOCAST).entered(self.device_type, self.dtype, self.cache_enabled)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from functools import wraps

        @wraps(function)
        def in_autocast(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device_type, self.dtype, self.enabled, self.cache_enabled):
                return function(*args, **kwargs)

        return in_autocast


def _require_key(backend: str) -> None:
    """Raise DisabledError when configuration disables the key: nothing would be cast."""
    key = AUTOCAST + backend
    if REGISTRY.is_disabled(key, key):
        entry = config.key_disabled(key, key)
        error: DisabledError = errors.functionality_disabled(key, entry, str(config.origin("keys.disable")))
        raise error


def _switched_off(device_type: str) -> Changes:
    """Needs no plugin: a program that leaves mixed precision out runs without it."""
    if device_type not in active_device_types():
        return ()  # it has no tensors, and no context that is on
    return (StateChange(excludes=KEYS.switch_bit(AUTOCAST + place(device_type).backend.name)).here(),)


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether operators on a type of device are cast now.

    Arguments:
        device_type: the type of device, such as "cpu"

    Example:
        >>> turnout.amp.is_autocast_enabled("cpu")
        False
    """
    if device_type not in active_device_types():
        return False
    return bool(in_effect(0) & KEYS.switch_bit(AUTOCAST + place(device_type).backend.name))
