"""`turnout.amp`: mixed precision.

`autocast` runs operators in the dtype that suits them, `GradScaler` keeps small gradients of float16 apart from zero; the rest
is for kernels of custom operators.
"""

from __future__ import annotations

from typing import NoReturn

from turnout_autocast.contexts import clear_autocast_cache, get_autocast_dtype, is_autocast_cache_enabled
from turnout_autocast.functions import custom_bwd, custom_fwd
from turnout_autocast.mode import autocast, is_autocast_enabled
from turnout_autocast.scaling import GradScaler
from turnout_autocast.service import cached_cast, promote_type

__all__ = [
    "GradScaler", "autocast", "cached_cast", "clear_autocast_cache", "custom_bwd", "custom_fwd", "get_autocast_dtype",
    "is_autocast_cache_enabled", "is_autocast_enabled", "promote_type",
]  # fmt: skip
__dir__ = __all__.copy


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(f"module 'turnout.amp' has no attribute {name!r}")
