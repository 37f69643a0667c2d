"""The build: makes the stubs from core's own names and from the manifests of the workspace, if this is built in one.

An sdist carries the stubs, so that building from it needs nothing else.
"""

from __future__ import annotations

import ast
import shutil
import sys
import tomllib
from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
WORKSPACE = HERE.parent.parent
CORE = WORKSPACE / "core" / "src" / "turnout" / "__init__.py"
STUBS = HERE / "src" / "turnout-stubs"
HEADER = "# Made by the build from the manifests of the plugins.\n"


def write_stubs() -> None:
    """Write every stub into the source tree, from which wheels, sdists and editable installs take it."""
    for old in STUBS.iterdir() if STUBS.exists() else ():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    STUBS.mkdir(parents=True, exist_ok=True)
    (STUBS / "py.typed").write_text("partial\n", encoding="utf-8")
    lines = [HEADER, *core_lines()]
    for path in sorted(WORKSPACE.glob("plugins/*/src/*/plugin.toml")):
        provides = tomllib.loads(path.read_text(encoding="utf-8")).get("provides", {})
        for module, listed in provides.get("names", {}).items():
            lines += [f"from {module} import {name} as {name}" for name in names(path, listed)]
        for name, module in provides.get("modules", {}).items():
            lines.append(f"from . import {name} as {name}")
            write_module(STUBS / name, module)
    (STUBS / "__init__.pyi").write_text("\n".join(lines) + "\n", encoding="utf-8")


def core_lines() -> Iterator[str]:
    """Core's own public names: what its `__init__` imports, for type checkers too, and assigns."""
    statements = list(ast.parse(CORE.read_text(encoding="utf-8")).body)
    for statement in statements:
        if isinstance(statement, ast.If):
            statements += statement.body
        elif isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("turnout"):
            for alias in statement.names:
                if alias.asname is not None and not alias.asname.startswith("_"):
                    yield f"from {statement.module} import {alias.name} as {alias.asname}"
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
            yield ast.unparse(statement)


def names(manifest: Path, listed: Any) -> list[str]:
    """Public names, from the manifest or from the file that it names."""
    if not isinstance(listed, str):
        return list(listed)
    file = manifest.with_name(listed)
    if not file.exists():
        raise FileNotFoundError(f"{file} is made by the build of {manifest.parent.name}: install that first")
    return file.read_text(encoding="utf-8").split()


def write_module(target: Path, module: str) -> None:
    """The stub of `import turnout.nn`, and of the modules inside it: everything that the plugin's own module has."""
    loaded = import_module(module)
    if not hasattr(loaded, "__path__"):
        target.with_suffix(".pyi").write_text(HEADER + imports(loaded), encoding="utf-8")
        return
    target.mkdir(parents=True)
    inner = sorted(found.name for found in iter_modules(loaded.__path__) if not found.name.startswith("_"))
    again = "".join(f"from . import {name} as {name}\n" for name in inner)
    (target / "__init__.pyi").write_text(HEADER + imports(loaded, set(inner)) + again, encoding="utf-8")
    for name in inner:
        text = HEADER + imports(import_module(f"{module}.{name}"))
        (target / f"{name}.pyi").write_text(text, encoding="utf-8")


def imports(module: ModuleType, hidden: Collection[str] = ()) -> str:
    """Import statements for the public names of a module."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [n for n, value in vars(module).items() if not n.startswith("_") and not isinstance(value, ModuleType)]
    names = sorted(set(listed) - {"TYPE_CHECKING", "annotations", *hidden})
    return "".join(f"from {module.__name__} import {name} as {name}\n" for name in names)


class BuildPy(build_py):
    """Makes the stubs first."""

    def run(self) -> None:
        if CORE.exists():
            sys.path[:0] = [str(path) for path in (WORKSPACE / "core" / "src", *WORKSPACE.glob("plugins/*/src"))]
            write_stubs()
        super().run()


STUBS.mkdir(parents=True, exist_ok=True)  # setuptools asks for the folder before anything is built
setup(cmdclass={"build_py": BuildPy})
