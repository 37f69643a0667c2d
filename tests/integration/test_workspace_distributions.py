"""What the distributions promise each other: versions, dependencies, licence, pins."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest
from workspace import ROOT, Distribution, distributions, imported, modules, read, required_name

EVERY = distributions()
WORKSPACE = read(ROOT)
NAMES = {one.name for one in EVERY}

# Extras of the root whose distribution does not exist yet: pip refuses them by name, where an unknown extra is
# only a warning.
PLANNED: set[str] = set()

# Between plugins only where declared here.
ARROWS = {
    "turnout-core": set(),
    "turnout-arrays": {"turnout-core"},
    "turnout-autocast": {"turnout-core"},
    "turnout-autograd": {"turnout-core"},
    "turnout-batched": {"turnout-core"},
    "turnout-cli": {"turnout-autocast", "turnout-autograd", "turnout-core", "turnout-cpu"},
    "turnout-cpu": {"turnout-arrays", "turnout-core"},
    "turnout-cuda": {"turnout-arrays", "turnout-core", "turnout-cpu"},
    "turnout-meta": {"turnout-core"},
    "turnout-opencl": {"turnout-core", "turnout-cpu"},
    "turnout-tracer": {"turnout-core"},
}

each = pytest.mark.parametrize("one", EVERY, ids=lambda one: one.name)


def inside(one: Distribution) -> set[str]:
    return {name for name in map(required_name, one.requirements()) if name.startswith("turnout")}


def test_versions_and_python_ranges_agree():
    assert {one.project["version"] for one in [WORKSPACE, *EVERY]} == {"0.1.0"}
    assert {one.project["requires-python"] for one in [WORKSPACE, *EVERY]} == {">=3.11,<3.14"}


def test_the_root_distribution_has_no_code_and_names_only_known_distributions():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert settings == {"packages": [], "py-modules": []}
    assert inside(WORKSPACE) - PLANNED <= NAMES
    assert not NAMES & PLANNED, "no longer planned: take it out of PLANNED, and into the extra `all`"


def test_the_extra_all_names_every_plugin_and_tool():
    libraries = {"turnout-core", "turnout-arrays"}  # what the others depend on
    named = {required_name(text) for text in WORKSPACE.project["optional-dependencies"]["all"]}
    assert named == NAMES - libraries


def test_dependencies_are_the_declared_arrows():
    assert {one.name: inside(one) for one in EVERY} == ARROWS


def test_core_depends_on_pluggy_and_importlib_metadata_only():
    core = next(one for one in EVERY if one.name == "turnout-core")
    assert {required_name(text) for text in core.project["dependencies"]} == {"importlib-metadata", "pluggy"}


@each
def test_code_imports_only_distributions_it_depends_on(one: Distribution):
    allowed = {name.replace("-", "_") for name in inside(one)} | {one.module, "turnout"}
    for module, tree in modules(one.source):
        for node in ast.walk(tree):
            for name in imported(module, node):
                top = name.partition(".")[0]
                assert not top.startswith("turnout") or top in allowed, f"{module} imports {name}"


@each
def test_each_folder_is_named_after_its_distribution(one: Distribution):
    assert one.folder.name == one.name.removeprefix("turnout-")
    assert (one.source / "__init__.py").exists()
    assert (one.source / "py.typed").exists()
    assert (one.folder / "README.md").exists()


@each
def test_each_distribution_ships_the_licence(one: Distribution):
    assert (one.folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@each
def test_each_entry_point_names_the_manifest_of_its_own_package(one: Distribution):
    for name, value in one.project.get("entry-points", {}).get("turnout.plugins", {}).items():
        assert (one.name, value) == (f"turnout-{name}", f"{one.module}:plugin.toml")
        assert (one.source / "plugin.toml").exists()


def test_every_requirement_is_pinned():
    pins = {}
    for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9.]+", line), line
            pins[required_name(line)] = line
    asked = {required_name(text) for one in EVERY for text in one.requirements()}
    assert asked - NAMES <= pins.keys()


def test_mypy_reads_every_distribution():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    assert set(settings["packages"]) == {one.module for one in EVERY}
    paths = {f"$MYPY_CONFIG_FILE_DIR/{one.folder.relative_to(ROOT)}/src" for one in EVERY}
    assert set(settings["mypy_path"]) == paths
