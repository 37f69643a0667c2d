"""What composite kernels and factories say of themselves is read as one value, so that a name that is gone is an error."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import turnout
from turnout.registry import Registrations, find_operator
from turnout_arrays import ArrayBackend, kernels
from turnout_aten.kernels import binding
from turnout_aten.kernels.facts import Facts
from turnout_aten.kernels.tables import register_kernels, register_over
from turnout_aten.shapes.specs import ShapeFacts

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path for place in ("core", "plugins", "tools") for path in (ROOT / place).glob("**/src/**/*.py")]
FACTS = {*Facts._fields, *ShapeFacts._fields}
# A bound composite kernel has its shortcut beside it, which is no fact but the callable made of one.
MADE = {"core/src/turnout/operators/kernels.py": ["shortcut"]}


def asked(source: str) -> list[str]:
    """The facts that a source asks a function for by their names: these say nothing when a fact is renamed, or moves."""
    if not any(name in source for name in FACTS) or "attr(" not in source:  # not worth the time
        return []
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    texts = [node.args[1] for node in calls if node.func.id in ("getattr", "hasattr") and len(node.args) > 1]
    return [each.value for each in texts if isinstance(each, ast.Constant) and each.value in FACTS]


def test_no_source_asks_for_a_fact_by_its_name():
    found = {path.relative_to(ROOT).as_posix(): asked(path.read_text("utf-8")) for path in SOURCES}
    assert {file: names for file, names in found.items() if names} == MADE


def test_such_a_question_is_found():
    assert asked("hasattr(getattr(fn, '__wrapped__', None), 'copies') or fn.copies") == ["copies"]
    assert asked("x = getattr(fn, 'fills', None)") == ["fills"]


class Rep(ArrayBackend):
    name = "Rep"
    device_type = "rep"


@pytest.mark.parametrize(("name", "guarded"), [("aten::_to_copy", False), ("aten::clone", False), ("aten::alias_copy", True)])
def test_what_copies_below_a_row_has_no_guard(name: str, guarded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    masks, bind = [], binding.bind
    turnout.ones(1)

    def seen(*args: Any, below: int | None = None) -> Any:
        masks.append(below)
        return bind(*args, below=below)

    monkeypatch.setattr(binding, "bind", seen)
    with Registrations("rep") as library, Registrations("above") as above:
        backend = Rep(np)
        library.backend(backend)
        register_kernels(library, backend, kernels(np))
        register_over(above, "Rep", {name: lambda *args: NotImplemented})
        assert find_operator(name)(turnout.ones(3, device="rep")).tolist() == [1.0, 1.0, 1.0]
    assert [mask is not None for mask in masks] == [guarded]
