"""The programs of examples/dask_programs as somebody installs them: their own tests, and what the package is."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from installed import Environment
from pages import broken_links
from workspace import ROOT, imported, modules, required_name

FOLDER = ROOT / "examples" / "dask_programs"
SOURCE = FOLDER / "src" / "turnout_dask_programs"


def project() -> dict:
    found: dict = tomllib.loads((FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def test_their_own_tests_pass_where_pip_installed_a_copy(tmp_path: Path, need_device: Callable[[str], None]) -> None:
    need_device("dask")
    pytest.importorskip("distributed")
    environment = Environment(tmp_path)
    environment.install("dask_programs", folder=ROOT / "examples")
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "error"]
    tests = str(tmp_path / "sources" / "dask_programs" / "tests")
    done = environment.run(f"import pytest; raise SystemExit(pytest.main([*{arguments!r}, {tests!r}]))")
    assert done.returncode == 0, done.stdout


def test_it_is_a_whole_distribution_with_a_command_for_each_program() -> None:
    assert project()["name"] == "turnout-dask-programs"
    assert (SOURCE / "py.typed").is_file()
    assert (FOLDER / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert broken_links(FOLDER / "README.md") == []
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for command, target in project()["scripts"].items():
        assert command in readme
        assert (SOURCE / f"{target.partition(':')[0].rpartition('.')[2]}.py").is_file()


def test_it_depends_on_what_it_imports_and_uses_public_names_only() -> None:
    depends = {required_name(text).replace("-", "_") for text in project()["dependencies"]}
    known = sys.stdlib_module_names | depends | {"turnout_dask_programs", "turnout", "dask", "distributed"}  # of turnout-dask
    for module, tree in modules(SOURCE):
        for node in ast.walk(tree):
            for path in imported(module, node):
                assert path.partition(".")[0] in known, f"{module} imports {path}"
                assert not re.search(r"\._(?!_)", path), f"{module} imports {path}"
