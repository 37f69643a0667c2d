"""The texts of this plugin's errors."""

from __future__ import annotations

from typing import Any


def not_lower(device_type: str, dtype: Any) -> str:
    """autocast() with a dtype that is no lower precision."""
    shown = getattr(dtype, "name", repr(dtype))
    return (
        f"autocast: {shown} is not a lower precision for {device_type!r}\n"
        "  to fix  use turnout.bfloat16 or turnout.float16, or enabled=False to run in the dtypes of the tensors"
    )


def not_floating(what: str, dtype: Any) -> str:
    """A cast to a dtype that is not floating."""
    return f"{what}: tensors are cast to a floating dtype, got {getattr(dtype, 'name', repr(dtype))}"


def not_castable(value: object) -> str:
    """cached_cast() of something that is no tensor."""
    return f"cached_cast: expected a tensor, None, or a list or tuple of them, got {type(value).__name__}"
