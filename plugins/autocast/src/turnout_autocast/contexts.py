"""The state of autocast in this context: the dtype per device type, and the cache of casts.

What switches the casts on is core's: the switch of Autocast<B> in DISPATCH. A thread or task sees its own state.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from turnout import config
from turnout.config import OVERRIDES
from turnout.dtypes import DType, bfloat16, dtype_named, float16
from turnout.errors import DTypeError
from turnout.guards import Changes, Guard
from turnout.keys import AUTOCAST, KEYS
from turnout.state import DISPATCH
from turnout_aten.tensor.devices import place
from turnout_autocast import errors
from turnout_autocast.casts import Cache
from turnout_autocast.rules import lower_dtype_of

LOWER_PRECISIONS = (bfloat16, float16)


class Settings:
    """What the contexts entered so far say. Never changed: an inner context makes another one.

    dtypes         device type -> lower precision
    cache          of the outermost context, shared by those inside it
    cache_enabled  whether casts are kept now
    """

    __slots__ = ("cache", "cache_enabled", "dtypes")

    def __init__(self, dtypes: dict[str, DType], cache: Cache | None, cache_enabled: bool) -> None:
        self.dtypes = dtypes
        self.cache = cache
        self.cache_enabled = cache_enabled


# One element: those of the innermost context.
SETTINGS: ContextVar[Sequence[Settings]] = ContextVar("turnout_autocast.settings", default=(Settings({}, None, True),))


def entered(device_type: str, dtype: DType | None, cache_enabled: bool | None) -> Changes:
    """What a guard sets to switch casting on for one device type. Raises DTypeError for a dtype that is not a lower precision."""
    backend = place(device_type).backend.name  # activates it
    (outer,) = SETTINGS.get()
    lower = get_autocast_dtype(device_type) if dtype is None else dtype
    if lower not in LOWER_PRECISIONS:
        # differs from torch: `autocast` to a dtype that is no lower precision is an error; PyTorch warns and casts nothing.
        raise DTypeError(errors.not_lower(device_type, dtype, LOWER_PRECISIONS))
    include, keep = DISPATCH.get()
    settings = Settings(
        {**outer.dtypes, device_type: lower},
        outer.cache or Cache(include),
        outer.cache_enabled if cache_enabled is None else bool(cache_enabled),
    )
    switch = KEYS.switch_bit(AUTOCAST + backend)
    return (SETTINGS, [settings]), (DISPATCH, [include | switch, keep | switch])


class Casts(Guard):
    """While entered, casting is as it was where the object was made; with None, there is none. Casts are kept anew."""

    __slots__ = ("_include", "_keep", "_settings")

    def __init__(self, settings: Settings | None = None, include: int = 0, keep: int = -1) -> None:
        self._settings = settings
        self._include = include
        self._keep = keep

    def sets(self) -> Changes:
        include, keep = DISPATCH.get()
        switches = _switches()
        dispatch = DISPATCH, [include & ~switches | self._include & switches, keep & ~switches | self._keep & switches]
        if self._settings is None:
            return (dispatch,)
        then = self._settings
        return (SETTINGS, [Settings(then.dtypes, then.cache and Cache(include), then.cache_enabled)]), dispatch


def casts_here() -> Casts:
    """Casting as it is now, to be entered later."""
    return Casts(SETTINGS.get()[0], *DISPATCH.get())


def casting_as(found: Casts | None) -> Casts:
    """What `casts_here` returned, or None from before this plugin was active: nothing was cast."""
    return Casts() if found is None else found


def _switches() -> int:
    return sum(KEYS.switch_bit(AUTOCAST + backend) for backend in KEYS.backends)


def get_autocast_dtype(device_type: str) -> DType:
    """The lower precision of a device type: of the innermost context for it, else the option `dtype`, else its default.

    Arguments:
        device_type: the type of device, such as "cpu"

    Example:
        >>> turnout.amp.get_autocast_dtype("cpu")
        turnout.bfloat16
    """
    found = SETTINGS.get()[0].dtypes.get(device_type)
    return dtype_named(_option() or lower_dtype_of(device_type)) if found is None else found


_chosen: str | None = None  # the option `dtype`, until a setting changes: reading it takes longer than a cast


def _option() -> str:
    global _chosen
    if OVERRIDES.get():
        return str(config.get("plugin.autocast.dtype"))
    if _chosen is None:
        _chosen = str(config.get("plugin.autocast.dtype"))
    return _chosen


def forget_option(names: object = None) -> None:
    """Read the option again at the next use."""
    global _chosen
    _chosen = None


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept until the outermost context is left.

    Example:
        >>> turnout.amp.is_autocast_cache_enabled()
        True
    """
    return SETTINGS.get()[0].cache_enabled


def clear_autocast_cache() -> None:
    """Forget the casts that the outermost context keeps.

    Example:
        >>> turnout.amp.clear_autocast_cache()
    """
    cache: Any = SETTINGS.get()[0].cache
    if cache is not None:
        cache.clear()
