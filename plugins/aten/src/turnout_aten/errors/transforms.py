"""What functions that run a given one say of their own arguments. `name` is theirs, such as "vmap"."""

from __future__ import annotations


def not_callable(name: str, argument: str, value: object) -> str:
    return f"{name}: argument {argument!r} must be callable, got {type(value).__name__}"
