"""Every public module says in `__all__` what is public, and `dir` shows that and nothing else.

Public are `turnout`, the rooms of core, the packages of the distributions, and the modules that manifests provide, with the
modules inside these that they name themselves (docs/notes/0010).
"""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import subprocess
import sys

import pytest
from generated_pages import public_names
from workspace import ROOT, Distribution, distributions

import turnout

EVERY = [one for one in distributions() if not one.is_stubs]
CORE = next(one for one in EVERY if one.name == "turnout-core")
ROOMS = public_names.rooms()
PROVIDED = public_names.provided()


def packages() -> list[str]:
    """The packages that define or import a name of their own, beside their modules."""

    def has_names(one: Distribution) -> bool:
        tree = ast.parse((one.source / "__init__.py").read_text("utf-8"))
        return any(isinstance(node, (ast.ImportFrom, ast.FunctionDef, ast.ClassDef)) for node in tree.body)

    return [one.module for one in EVERY if has_names(one)]


PUBLIC = {
    **{f"turnout.{room}": f"turnout.{room}" for room in ROOMS},
    **{module: module for module in packages()},
    **{f"turnout.{name}": module for name, module in PROVIDED.items()},
}
each = pytest.mark.parametrize("module", sorted(set(PUBLIC.values())))
# Of a module that finds its names late, `__all__` is made when it is asked for.
NOISE = {"TYPE_CHECKING", "annotations", "sys", "Any", "ContextVar", "RLock"}


def test_the_public_modules_are_those_of_core_and_of_the_manifests():
    assert {"turnout", "turnout.config", "turnout.state", "turnout.plugins", "turnout.errors"} <= PUBLIC.keys()
    assert {"turnout.nn", "turnout.nn.functional", "turnout.autograd.graph", "turnout.signal.windows"} <= PUBLIC.keys()
    assert "turnout_arrays" in PUBLIC
    assert len(PUBLIC) >= 36


@each
def test_a_public_module_lists_its_names_has_each_of_them_and_shows_no_other(module):
    loaded = importlib.import_module(module)
    names = loaded.__all__
    assert names, module
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(loaded, name)] == []
    assert not NOISE & set(names)
    assert not [name for name in names if name.startswith("_") and not name.startswith("__")]
    # What an interpreter completes.
    assert {name for name in dir(loaded) if not name.startswith("_")} == {name for name in names if not name.startswith("_")}


@each
def test_what_a_public_module_defines_without_an_underscore_is_listed(module):
    loaded = importlib.import_module(module)
    path = module.split(".")
    source = next(one.source.parent for one in EVERY if one.module == path[0])
    file = source.joinpath(*path, "__init__.py")
    tree = ast.parse((file if file.exists() else source.joinpath(*path).with_suffix(".py")).read_text("utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    hidden = BESIDE.get(module, set())
    assert {name for name in defined if not name.startswith("_")} - set(loaded.__all__) == hidden


# What other modules of the same distribution use, and users do not.
BESIDE = {
    "turnout.config": {"Override"},
    # not of the standard
    "turnout_array_api.namespace.linalg": {"EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult"},
    "turnout_nn.init": {"fans"},
    "turnout_nn.parameters": {"empty_parameter", "in_role", "is_uninitialized"},
    "turnout_aten.functions.return_types": {
        "ReturnType", "return_type", "of_packet", "named", "nested", "standard", "is_standard",
    },
}  # fmt: skip


def test_the_build_makes_a_stub_of_each_public_module_with_all_its_names(tmp_path):
    runpy.run_path(str(ROOT / "tools/stubs/setup.py"))["write_stubs"](tmp_path)
    missing = {}
    for name, module in PROVIDED.items():
        place = tmp_path.joinpath(*name.split("."))
        file = place / "__init__.pyi" if place.is_dir() else place.with_suffix(".pyi")
        stated = set(re.findall(r" as (\w+)$", file.read_text("utf-8"), re.MULTILINE))
        for every in re.findall(r"^from (\S+) import \*$", file.read_text("utf-8"), re.MULTILINE):  # made by the build
            stated |= set(importlib.import_module(every).__all__)
        members = turnout.plugins.catalog().public_names(name)  # of plugins that cannot be used here, too
        missing[name] = {*importlib.import_module(module).__all__, *members} - stated
    assert {name: names for name, names in missing.items() if names} == {}


def test_every_room_of_core_can_be_reached_after_import_turnout():
    program = f"import turnout; [getattr(turnout, room) for room in {ROOMS!r}]; print(sorted(set({ROOMS!r}) - set(dir(turnout))))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_names_of_turnout_do_not_depend_on_what_was_used_before():
    used = "turnout.explain, turnout.library, turnout.table, turnout.nn, turnout.ones(2).sum(), turnout.ops.aten.add;"
    program = "import turnout; {} print(*dir(turnout))"
    runs = [
        subprocess.run([sys.executable, "-c", program.format(text)], capture_output=True, text=True, check=True).stdout
        for text in ("", used)
    ]
    first, second = ([name for name in run.split() if not name.startswith("_")] for run in runs)
    assert first == second
    assert not NOISE & set(first)


def test_operators_and_records_of_plugins_have_a_short_repr():
    assert repr(turnout.ops).startswith("<operators by namespace: aten")
    record = next(record for record in turnout.plugins.all_plugins() if record.name == "cpu")
    assert repr(record) == f"<plugin cpu (turnout-cpu {record.version}): {record.state}>"
