"""The build: makes the stubs from core's own names and from the manifests of the workspace, if this is built in one.

An sdist carries the stubs, so that building from it needs nothing else.
"""

from __future__ import annotations

import ast
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
WORKSPACE = HERE.parent.parent
CORE = WORKSPACE / "core" / "src" / "turnout" / "__init__.py"
STUBS = HERE / "src" / "turnout-stubs"
PLACES = ("plugins", "tools")  # the folders whose distributions may have public modules
OPS = "turnout.registry.namespaces"
HEADER = "# Made by the build from the manifests of the plugins.\n"


def write_stubs(folder: Path = STUBS) -> None:
    """Write every stub, into the source tree unless told otherwise: wheels, sdists and editable installs take it from there."""
    for old in folder.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
        elif old.suffix == ".pyi":
            old.unlink()
    lines = [HEADER, *core_lines()]
    namespaces: list[str] = []
    paths = [path for place in PLACES for path in WORKSPACE.glob(f"{place}/*/src/*/plugin.toml")]
    manifests = {path: tomllib.loads(path.read_text(encoding="utf-8")) for path in paths}
    members: dict[str, list[str]] = {}
    for path, manifest in sorted(manifests.items()):
        provides = manifest.get("provides", {})
        lines += public(path, provides, folder)
        for place, table in provides.get("members", {}).items():
            members.setdefault(place, []).extend(public(path, table, folder / place))
        if (path.parent / "generated" / "operators.pyi").exists():
            for name in provides.get("namespaces", []):
                lines.append(f"from {path.parent.name}.generated.operators import Namespace_{name} as _Namespace_{name}")
                namespaces.append(f"    {name}: _Namespace_{name}")
    for place, added in members.items():  # after the stubs of the owners
        file = as_package(folder, place)
        file.write_text("\n".join([file.read_text(encoding="utf-8").rstrip("\n"), *added, ""]), encoding="utf-8")
    if namespaces:  # in place of core's `ops`, which takes any name
        lines.remove(f"from {OPS} import ops as ops")
        lines += [f"from {OPS} import Ops as _Ops", "class _TypedOps(_Ops):", *namespaces, "ops: _TypedOps"]
    (folder / "__init__.pyi").write_text("\n".join(lines) + "\n", encoding="utf-8")


def as_package(folder: Path, place: str) -> Path:
    """The stub of a public module that has members, which is a package's: their modules have stubs beside it."""
    file = folder / place / "__init__.pyi"
    file.parent.mkdir(exist_ok=True)
    if not file.exists():
        alone = folder / f"{place}.pyi"
        if alone.exists():
            alone.rename(file)
        else:
            file.write_text(HEADER, encoding="utf-8")
    return file


def public(manifest: Path, provides: dict[str, Any], folder: Path) -> list[str]:
    """Import statements for the names and modules of a table of a manifest. Modules get stubs of their own in the folder."""
    lines = []
    for module, listed in provides.get("names", {}).items():
        lines += [f"from {module} import {name} as {name}" for name in names(manifest, listed)]
    for name, module in provides.get("modules", {}).items():
        lines.append(f"from . import {name} as {name}")
        write_module(folder / name, module)
    return lines


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
        elif isinstance(statement, ast.AnnAssign) or (
            isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name)
        ):
            yield ast.unparse(statement)


def names(manifest: Path, listed: Any) -> list[str]:
    """Public names, from the manifest or from the file that it names."""
    if not isinstance(listed, str):
        return list(listed)
    file = manifest.with_name(listed)
    if not file.exists():
        raise FileNotFoundError(f"{file} is made by the build of {manifest.parent.name}: pip install {manifest.parents[2]}")
    return file.read_text(encoding="utf-8").split()


def write_module(target: Path, module: str) -> None:
    """The stub of `import turnout.nn`, and of the modules inside it: everything that the plugin's own module has."""
    file = source(module)
    if file.name != "__init__.py":
        target.with_suffix(".pyi").write_text(HEADER + imports(module), encoding="utf-8")
        return
    target.mkdir(parents=True)
    (target / "__init__.pyi").write_text(HEADER + imports(module), encoding="utf-8")
    for inside in sorted([*file.parent.glob("*.py"), *(path.parent for path in file.parent.glob("*/__init__.py"))]):
        if not inside.stem.startswith("_"):
            write_module(target / inside.stem, f"{module}.{inside.stem}")


def imports(module: str) -> str:
    """Import statements for the public names of a module.

    Read, not run: while a workspace is installed, what the plugins import may not be there yet.
    """
    statements = list(ast.parse(source(module).read_text(encoding="utf-8")).body)
    names: set[str] = set()
    modules: dict[str, str] = {}
    exported: list[str] | None = None
    lines: list[str] = []
    for statement in statements:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            statements += [each for each in statement.body if not isinstance(each, ast.Assign)]  # names of types
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                modules[alias.asname or alias.name] = f"{statement.module}.{alias.name}"
                if alias.name == "*":
                    lines.append(f"from {statement.module} import *\n")
                elif alias.asname == alias.name:
                    names.add(alias.name)
        elif isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            if isinstance(statement.value, ast.Call):  # of `describe`: the functions and classes that the module defines
                made = [each.name for each in statements if isinstance(each, (ast.FunctionDef, ast.ClassDef))]
                exported = sorted(name for name in made if not name.startswith("_"))
            else:
                exported = list(ast.literal_eval(statement.value))
        elif isinstance(statement, ast.AugAssign) and ast.unparse(statement.target) == "__all__":
            lines.append(imports(modules[ast.unparse(statement.value).removesuffix(".__all__")]))
        elif isinstance(statement, ast.Assign):
            names |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    if exported is None:
        exported = sorted(name for name in names if not name.startswith("_") and name != "TYPE_CHECKING")
    else:
        lines = [line for line in lines if not line.endswith("*\n")]  # what they bring that is public, __all__ names
    for name in exported:
        # A module inside has its own stub: of a module itself, a type checker would see the `__getattr__`.
        beside = source(module).with_name(name)
        inside = modules.get(name) == f"{module}.{name}" and (beside.is_dir() or beside.with_suffix(".py").exists())
        lines.append(f"from {'.' if inside else module} import {name} as {name}\n")
    return "".join(lines)


def source(module: str) -> Path:
    """The file of a module of the workspace."""
    relative = Path(*module.split("."))
    for root in (root for place in PLACES for root in WORKSPACE.glob(f"{place}/*/src")):
        for path in (root / relative / "__init__.py", root / relative.with_suffix(".py")):
            if path.exists():
                return path
    raise FileNotFoundError(f"no plugin of the workspace has the module {module}, which a manifest names")


class BuildPy(build_py):
    """Makes the stubs first."""

    def run(self) -> None:
        if CORE.exists():
            write_stubs()
        super().run()


class Sdist(sdist):
    """Makes the stubs first."""

    def run(self) -> None:
        if CORE.exists():
            write_stubs()
        super().run()


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildPy, "sdist": Sdist})
