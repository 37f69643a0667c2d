"""What modules say of themselves when they are printed."""

from __future__ import annotations

from typing import Any


def described(module: Any, *shown: str, **defaults: Any) -> str:
    """The text of an `extra_repr`: values of attributes, then `name=value` of those that are not the default.

    A name that ends with "=" is always shown with its value.
    """
    values = [f"{name}{getattr(module, name[:-1])!r}" if name[-1] == "=" else repr(getattr(module, name)) for name in shown]
    values += [f"{name}={getattr(module, name)!r}" for name, usual in defaults.items() if getattr(module, name) != usual]
    return ", ".join(values)
