"""Lets `import turnout.nn.functional` find the module of the plugin that provides `turnout.nn`."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class ModuleFinder:
    """Finds public modules and the modules inside them. It comes before the finder of files, which would load them twice.

    `module_of(name)` is the module behind a public one, or None.
    """

    def __init__(self, package: ModuleType, module_of: Callable[[str], str | None]) -> None:
        self._prefix = package.__name__ + "."
        self._own = frozenset(entry.partition(".")[0] for entry in os.listdir(package.__path__[0]))
        self._module_of = module_of

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a public module or of a module inside one; None for any other module."""
        if not fullname.startswith(self._prefix):
            return None
        name, _, rest = fullname[len(self._prefix) :].partition(".")
        module = None if name in self._own else self._module_of(name)
        if module is None:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(fullname, _Alias(f"{module}.{rest}" if rest else module))  # type: ignore[arg-type]


class _Alias:
    """Replaces the module that is being imported by the plugin's own module."""

    def __init__(self, module: str) -> None:
        self._module = module

    def create_module(self, spec: ModuleSpec) -> None:
        """The default one, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Import the real module."""
        from importlib import import_module

        from turnout.plugins.public_names import publish

        loaded = sys.modules[module.__name__] = import_module(self._module)
        package, _, name = module.__name__.rpartition(".")
        publish(loaded, name, package)
