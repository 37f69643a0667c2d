"""What functions that transform a function say of their own arguments. `name` is that of the transform, such as "vmap"."""

from __future__ import annotations


def not_callable(name: str, value: object) -> str:
    return f"{name}: argument 'func' must be callable, got {type(value).__name__}"


def chunk_size(name: str, size: object) -> str:
    return f"{name}: chunk_size must be a positive int or None, got {size!r}"
