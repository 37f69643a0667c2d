"""Which names are public: those that a module lists in `__all__`."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import turnout


def resolve(name: str) -> Any:
    """The object of a dotted public name, such as "turnout.Tensor.add". Raises AttributeError where there is none."""
    found: Any = turnout
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def of_module(module: ModuleType) -> list[str]:
    """The public functions and classes of a module, in alphabetical order."""
    return sorted(name for name in module.__all__ if _is_documented(getattr(module, name, None)))


def _is_documented(found: Any) -> bool:
    return inspect.isclass(found) or (callable(found) and not inspect.ismodule(found) and hasattr(found, "__doc__"))
