"""Mixed precision: the context `autocast`, and where to find the rest.

What runs in which dtype is decided by the plugin that provides the functionality Autocast, activated when a context is first
entered; `cached_cast`, `promote_type`, `get_autocast_dtype`, `is_autocast_cache_enabled` and `clear_autocast_cache` are
attributes of the service it registers. Whether casting is on for a backend is core's own state: the switch of its Autocast<B>.
"""

from __future__ import annotations

from turnout import config, plugins
from turnout.devices import active_device_types, device
from turnout.errors import CallError, DisabledError
from turnout.errors import plugins as errors
from turnout.keys import AUTOCAST, KEYS
from turnout.registry import REGISTRY
from turnout.state import DISPATCH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    from turnout.dtypes import DType
    from turnout_autocast.service import GradScaler as GradScaler
    from turnout_autocast.service import cached_cast as cached_cast
    from turnout_autocast.service import cached_cast_all as cached_cast_all
    from turnout_autocast.service import clear_autocast_cache as clear_autocast_cache
    from turnout_autocast.service import custom_bwd as custom_bwd
    from turnout_autocast.service import custom_fwd as custom_fwd
    from turnout_autocast.service import get_autocast_dtype as get_autocast_dtype
    from turnout_autocast.service import is_autocast_cache_enabled as is_autocast_cache_enabled
    from turnout_autocast.service import promote_type as promote_type

    P = ParamSpec("P")
    R = TypeVar("R")


def __getattr__(name: str) -> Any:
    """What the plugin's service has: the casts, the scaler."""
    if name.startswith("__"):
        raise AttributeError(name)
    from turnout_autocast import service

    try:
        return getattr(service, name)
    except AttributeError:
        raise AttributeError(f"module 'turnout.amp' has no attribute {name!r}") from None


class autocast:
    """Run operators on one type of device in the dtype that suits them. A context manager and a decorator.

    device_type    "cpu", "cuda", ...
    dtype          the lower precision; by default that of the surrounding context, else the device's own (bfloat16 on the CPU)
    enabled        False switches casts off inside, whatever the surrounding contexts say
    cache_enabled  whether a weight is cast once for all its uses, until the outermost context is left

    Contexts nest, also those of different devices. A thread or task that does not enter one has none. When one is entered,
    PluginError is raised where nothing provides Autocast, DeviceError or PluginError for a device that does not exist,
    DisabledError when configuration disables the key, DTypeError for a dtype that is not a lower precision.
    """

    __slots__ = ("_left", "cache_enabled", "device_type", "dtype", "enabled")

    def __init__(
        self, device_type: str, dtype: DType | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise CallError(f"autocast: device_type must be a str such as 'cpu', got {type(device_type).__name__}")
        self.device_type = device(device_type).type
        self.dtype = dtype
        self.enabled = bool(enabled)
        self.cache_enabled = cache_enabled
        self._left: list[Callable[[], None]] = []

    def __enter__(self) -> autocast:
        if self.enabled:
            _require_key(device(self.device_type).backend.name)
            self._left.append(plugins.service(AUTOCAST).enter(self.device_type, self.dtype, self.cache_enabled))
        else:
            self._left.append(_switch_off(self.device_type))
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._left.pop()()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        from functools import wraps

        @wraps(function)
        def in_autocast(*args: P.args, **kwargs: P.kwargs) -> R:
            with autocast(self.device_type, self.dtype, self.enabled, self.cache_enabled):
                return function(*args, **kwargs)

        return in_autocast


def _require_key(backend: str) -> None:
    """Raise DisabledError when configuration disables the key: nothing would be cast."""
    key = AUTOCAST + backend
    if REGISTRY.is_disabled(key, key):
        error: DisabledError = errors.functionality_disabled(key, str(config.origin("keys.disable")))
        raise error


def _switch_off(device_type: str) -> Callable[[], None]:
    """Needs no plugin: a program that does not use mixed precision runs without it."""
    if device_type not in active_device_types():
        return lambda: None  # it has no tensors and no active context
    include, keep = DISPATCH.get()
    token = DISPATCH.set((include & ~KEYS.switch_bit(AUTOCAST + device(device_type).backend.name), keep))
    return lambda: DISPATCH.reset(token)


def is_autocast_enabled(device_type: str = "cpu") -> bool:
    """Whether operators on a type of device are cast now."""
    if device_type not in active_device_types():
        return False
    include, keep = DISPATCH.get()
    return bool(include & keep & KEYS.switch_bit(AUTOCAST + device(device_type).backend.name))
