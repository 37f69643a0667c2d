"""CONTRIBUTING.md says what there is: targets of the Makefile, steps of `.ci/run`, selections, folders, generated files."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatchcase

import pytest
from pages import pages, tracked
from workspace import ROOT, distributions

import selection

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
STEPS = (ROOT / ".ci/run").read_text("utf-8").partition("<<'STEPS'\n")[2]
TARGETS = set(re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[0].split())


def rows(title: str) -> list[list[str]]:
    """The cells of the table of a section, by rows."""
    section = re.split(r"^## ", PAGE.partition(f"## {title}\n")[2], flags=re.MULTILINE)[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]


def in_code(cell: str) -> list[str]:
    return re.findall(r"`(.*?)`", cell)


def test_the_help_of_make_and_the_page_have_each_target():
    comment = re.findall(r"^#.*", MAKEFILE.partition("\n\nPYTHON")[0], re.MULTILINE)
    assert set(re.findall(r"\bmake ([a-z-]+) ", "\n".join(comment))) == TARGETS - {"help"}
    named = re.findall(r"`(?:\w+=\S+ )?make (?:PYTHON=\S+ )?([a-z-]+)", PAGE)
    assert TARGETS - {*named} == {"help", "demo", "freeze", "clean"}


def test_pages_name_targets_and_selections_that_there_are():
    text = "".join(page.read_text("utf-8") for page in pages())
    assert set(re.findall(r"`(?:\w+=\S+ )?make (?:PYTHON=\S+ )?([a-z-]+)", text)) <= TARGETS
    assert {*re.findall(r"--selection (\w+)", text), *re.findall(r"--selection (\w+)", STEPS)} <= selection.SELECTIONS.keys()


def test_the_page_has_the_steps_of_ci_in_their_order():
    (said,) = [cells[1] for cells in rows("Set-up") if cells[0] == "`bash .ci/run`"]
    steps = re.findall(r"\bmake ([a-z-]+)|--selection (\w+)", STEPS)
    assert in_code(said) == list(dict.fromkeys(target or chosen for target, chosen in steps))


def test_the_page_has_the_distributions_of_tools_and_the_folders_of_tests():
    folders = {cells[0]: cells for cells in rows("Layout")}
    tools = [one for one in distributions() if one.folder.parent.name == "tools"]
    _, names, modules = folders["`tools/<name>/`"]
    assert in_code(names) == [one.name for one in tools]
    assert in_code(modules) == [one.module for one in tools if not one.is_stubs]
    said = set(in_code(folders["`tests/`"][1])) - {"opcheck", "turnout_conformance.cases"}
    assert {path.parent.name for path in selection.TESTS.glob("*/test_*.py")} <= said
    assert [each for each in said if not (selection.TESTS / each).is_dir()] == []


# ---- generated files


def test_each_generated_file_is_of_one_row_and_each_row_has_some():
    listed = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "--", "core", "plugins", "tools"]
    run = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.skip("no git here")
    compiled = re.compile(r"/__pycache__/|\.egg-info/|_cache/|/build/|\.(?:so|pyd|dylib)$")
    made = [file for file in run.stdout.splitlines() if not compiled.search(file)]
    of = {name: [file for file in made if f"/{name}" in file] for cells in rows("Generated code") for name in in_code(cells[0])}
    assert [name for name, files in of.items() if not files] == []
    assert sorted(file for files in of.values() for file in files) == sorted(made)


def test_what_files_are_generated_from_is_there_and_make_codegen_runs_what_makes_them():
    files = tracked(("core", "plugins", "tools"))
    recipe = MAKEFILE.partition("\ncodegen:")[2].partition("\n\n")[0]
    runs = set(re.findall(r"-m (turnout[\w.]+)|run_path\(\"(.*?)\"\)", recipe))
    by = set()
    for _, sources, command in rows("Generated code"):
        for source in in_code(sources):
            assert [file for file in files if fnmatchcase(file, f"*/{source.replace('<family>', '*')}")], source
        by.add(in_code(command)[0].removeprefix("python -m "))
    assert by == {module or file for module, file in runs} | {"plugins/kernels/setup.py"}
