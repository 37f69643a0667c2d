"""Lets `import turnout.nn.functional` load the module of the plugin that provides `turnout.nn`, and imports say what is missing.

Python asks a finder under a lock of all imports. So the finder takes no lock and imports nothing. The loader, which runs under
the lock of the one module, sees what the plugins provide.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType


class ModuleFinder:
    """Finds public modules and the modules inside them. It comes before the finder of files, which would load them twice.

    `module(name, path)` is a public module, or the one at a path inside, or None; it may activate a plugin.
    """

    def __init__(self, package: ModuleType, module: Callable[[str, str], ModuleType | None]) -> None:
        self._prefix = package.__name__ + "."
        self._own = frozenset(entry.partition(".")[0] for entry in _entries(package.__path__[0]))
        self._module = module

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of what may be a public module or a module inside one; None for any other module."""
        name, _, rest = fullname.removeprefix(self._prefix).partition(".")
        if not fullname.startswith(self._prefix) or name in self._own or name.startswith("_"):
            return None
        return ModuleSpec(fullname, _Alias(self._module, name, rest))  # type: ignore[arg-type]


def _entries(folder: str) -> list[str]:
    """The names of modules and packages in a package."""
    try:
        return os.listdir(folder)
    except NotADirectoryError:  # it is in a zip file
        from pkgutil import iter_modules

        return [module.name for module in iter_modules([folder])]


class _Alias:
    """Replaces the module that is being imported by the plugin's own module."""

    def __init__(self, module: Callable[[str, str], ModuleType | None], name: str, rest: str) -> None:
        self._module = module
        self._name = name
        self._rest = rest

    def create_module(self, spec: ModuleSpec) -> None:
        """The default one, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        """Import the real module. Raises ModuleNotFoundError for a name that no plugin provides."""
        from turnout.plugins.public_names import publish

        loaded = self._module(self._name, self._rest)
        if loaded is None:
            raise ModuleNotFoundError(f"No module named {module.__name__!r}", name=module.__name__)
        sys.modules[module.__name__] = loaded
        # Another thread that imports it meanwhile has the module that is replaced, and waits for this one.
        vars(module)["__getattr__"] = lambda name: getattr(loaded, name)
        package, _, name = module.__name__.rpartition(".")
        publish(loaded, name, package)


class MissingMembers:
    """Finds nothing, and comes last: where `from turnout.nn import Linear` finds no `Linear`, it raises the error that says why.

    For what a module does not have, Python asks for a module inside it, under the module's own name in its plugin. If that is not
    there either, the program sees an ImportError without a reason.
    """

    @staticmethod
    def find_spec(fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec whose loader raises, for what may be a member of a public module; None for any other module."""
        parent, _, name = fullname.rpartition(".")
        public = getattr(sys.modules.get(parent), "__dict__", {}).get("__public__")  # there may be any object
        if public is None or name.startswith("_"):
            return None
        return ModuleSpec(fullname, _Missing(public.facade.why_missing, public.place, name))  # type: ignore[arg-type]


class _Missing:
    """Loads nothing."""

    def __init__(self, why_missing: Callable[[str, str], None], place: str, name: str) -> None:
        self._why_missing = why_missing
        self._place = place
        self._name = name

    def create_module(self, spec: ModuleSpec) -> None:
        """The default one, which `exec_module` refuses."""

    def exec_module(self, module: ModuleType) -> None:
        """Raise PluginError for a member of a plugin that cannot be used, ModuleNotFoundError for any other name."""
        self._why_missing(self._place, self._name)
        raise ModuleNotFoundError(f"No module named {module.__name__!r}", name=module.__name__)
