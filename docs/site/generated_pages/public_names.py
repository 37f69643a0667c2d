"""Which names are public: what a module exports, defines, or imports under the same name again (`from x import y as y`)."""

from __future__ import annotations

import ast
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
    exported = getattr(module, "__all__", None)
    names = _stated(module) if exported is None else exported
    return sorted({name for name in names if not name.startswith("_") and _is_documented(getattr(module, name, None))})


def _stated(module: ModuleType) -> set[str]:
    statements = list(ast.parse(inspect.getsource(module)).body)
    names: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.If):
            statements += statement.body
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, ast.ImportFrom):
            names |= {alias.name for alias in statement.names if alias.asname == alias.name}
    return names


def _is_documented(found: Any) -> bool:
    return inspect.isclass(found) or (callable(found) and not inspect.ismodule(found) and hasattr(found, "__doc__"))
