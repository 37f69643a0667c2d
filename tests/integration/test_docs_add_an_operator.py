"""docs/add-an-operator.md, followed as it is written in a clone: what it says is edited by hand is all that is edited."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from pages import ROOT, Block, Reader, blocks, changed_text, shell_commands, tracked

PAGE = ROOT / "docs" / "add-an-operator.md"
PLUGINS = ("aten", "arrays", "cpu", "autograd", "batched", "meta", "tracer")
PACKAGES = ("plugins/aten", "core", *(f"plugins/{name}" for name in PLUGINS[1:]), "tools/conformance", "tools/stubs")
TREES = (*PACKAGES, "docs", "tests", "pyproject.toml", ":(glob)plugins/*/README.md")


# Each package in place, with what setuptools leaves beside one: pip would build every one of them for that.
IN_PLACE = """
import os, runpy, setuptools, sys
clone = os.getcwd()
for package in sys.argv[1:]:
    os.chdir(os.path.join(clone, package))
    sys.argv = ["setup.py", "-q", "egg_info", *(["build_py"] if package == "core" else [])]
    runpy.run_path("setup.py", run_name="__main__") if package == "core" else setuptools.setup()
"""


def made_by(target: str) -> str:
    """The commands of a target of the Makefile, as a line of shell."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    return " && ".join(line.strip().replace("$(PY)", "python") for line in recipe[1].splitlines())


@pytest.mark.skipif(os.name == "nt", reason="the page's commands are for a POSIX shell")
def test_two_operators_are_added_by_the_changes_of_the_page_and_no_others(tmp_path):
    reader = Reader(tmp_path, TREES)
    sources = [str(reader.clone / package / "src") for package in PACKAGES]
    (reader.environment.packages() / "clone.pth").write_text(f"import sys; sys.path[:0] = {sources!r}\n")
    checks = [command for command in shell_commands(blocks(PAGE)[-1]) if "pytest" in command]
    last = [shlex.split(command)[-1] for command in checks]  # collected once for all
    files, chosen = " ".join(each for each in last if each.endswith(".py")), " or ".join(Path(each).stem for each in last)
    instead = {
        "make setup": shlex.join(["python", "-c", IN_PLACE, *PACKAGES]),
        "make codegen": made_by("codegen"),
        **dict.fromkeys(checks, ""),
        checks[-1]: f"python -m pytest -q tests/conformance {files} -k '{chosen}'",
    }
    followed = reader.follow(PAGE, instead)
    assert [block.kind for block in followed].count("python") == 2
    differing = [f for f in tracked(TREES) if (reader.clone / f).read_bytes() != (ROOT / f).read_bytes()]
    assert sorted(differing) == sorted({block.changed for block in followed if block.changed})


def test_every_change_of_the_page_fits_the_file_that_it_names():
    texts: dict[str, str] = {}
    for block in (block for block in blocks(PAGE) if block.changed):
        texts[block.changed] = changed_text(texts.get(block.changed) or (ROOT / block.changed).read_text("utf-8"), block)
    assert len(texts) > 6


def test_a_composite_takes_two_files_a_structured_operator_four_and_decisions_and_each_a_case():
    changed = [block.changed for block in blocks(PAGE) if block.changed]
    assert len(changed) == 4 + 7
    cases = "tools/conformance/src/turnout_conformance/cases"
    others = (cases, "plugins/aten/src/turnout_aten/declarations/docs/", "tests/plugins/decisions.txt")
    code = [[file for file in files if not file.startswith(others)] for files in (changed[:4], changed[4:])]
    assert [len(set(files)) for files in code] == [2, 4]
    assert len([file for file in changed if file.startswith(cases)]) == 2


def test_a_change_is_applied_where_its_context_stands_once():
    block = Block(1, "diff", "--- a.py\n x\n+new\n@@\n+first\n y\n")
    assert block.changed == "a.py"
    assert changed_text("x\ny\n", block) == "x\nnew\nfirst\ny\n"
    with pytest.raises(AssertionError, match="2 places"):
        changed_text("x\nx\ny\n", block)
