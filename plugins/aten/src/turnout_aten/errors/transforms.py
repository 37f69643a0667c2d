"""What several transforms say, and functions that run a given one, of their own arguments. `name` is theirs, such as "vmap"."""

from __future__ import annotations

DEPENDS_ON_VALUES = "the shape of its result depends on values"
TRANSFORM_INSIDE = "  to fix  use turnout.func.grad or vjp inside the mapped function, or this outside of vmap"


def key_included(key: str, where: str, transform: str) -> str:
    """A call that reaches the kernels of a key which has nothing to do in it."""
    return (
        f"the key {key} takes part in a call {where}: a guard or keys.enable includes it\n"
        f"  to fix  use {transform}, which includes the key where it is needed"
    )


def not_callable(name: str, argument: str, value: object) -> str:
    return f"{name}: argument {argument!r} must be callable, got {type(value).__name__}"
