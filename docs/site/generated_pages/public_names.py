"""What is public: the modules of core and of the manifests, and of each the names that it lists in `__all__`."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Any

import turnout


def resolve(name: str) -> Any:
    """The object of a dotted public name, such as "turnout.Tensor.add". Raises AttributeError where there is none."""
    found: Any = turnout
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found


def rooms() -> list[str]:
    """The public modules of core."""
    return sorted(each.name for each in pkgutil.iter_modules(turnout.__path__) if not each.name.startswith("_"))


def provided() -> dict[str, str]:
    """Public module -> the module of a plugin, as the manifests say, with the public modules inside."""
    found: dict[str, str] = {}
    for manifest in turnout.plugins.catalog().manifests:
        for place, public in manifest.public.items():
            found |= {f"{place}.{name}".removeprefix("."): module for name, module in public.modules.items()}
    for path, module in list(found.items()):
        loaded = import_module(module)
        inside = [each for each in loaded.__all__ if isinstance(getattr(loaded, each), ModuleType)]
        found |= {f"{path}.{each}": getattr(loaded, each).__name__ for each in inside}
    return found


def of_module(path: str) -> dict[str, Any]:
    """The public functions and classes of a public module, in alphabetical order.

    Members of plugins that cannot be used here, because a device or a package is missing, are among them.
    """
    module = resolve(f"turnout.{path}")
    found = {name: getattr(module, name, None) for name in module.__all__}
    for manifest in turnout.plugins.catalog().manifests:
        for name, home in manifest.offers(path).names.items():
            if name not in found:
                found[name] = getattr(import_module(home), name)
    return {name: found[name] for name in sorted(found) if _is_documented(found[name])}


def _is_documented(found: Any) -> bool:
    return inspect.isclass(found) or (callable(found) and not inspect.ismodule(found) and hasattr(found, "__doc__"))
