"""docs/add-an-operator.md, followed as it is written in a clone: what it says is edited by hand is all that is edited."""

from __future__ import annotations

import os
import re

import pytest
from pages import ROOT, Block, Reader, blocks, changed_text, tracked

PAGE = ROOT / "docs" / "add-an-operator.md"
PLUGINS = ("aten", "arrays", "cpu", "autograd", "batched", "meta", "tracer")
PACKAGES = ("plugins/aten", "core", *(f"plugins/{name}" for name in PLUGINS[1:]), "tools/conformance", "tools/stubs")
TREES = (*PACKAGES, "docs", "tests", "pyproject.toml")


def made_by(target: str) -> str:
    """The commands of a target of the Makefile, as a line of shell."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert recipe is not None
    return " && ".join(line.strip().replace("$(PY)", "python") for line in recipe[1].splitlines())


@pytest.mark.skipif(os.name == "nt", reason="the page's commands are for a POSIX shell")
def test_two_operators_are_added_by_the_changes_of_the_page_and_no_others(tmp_path):
    reader = Reader(tmp_path, TREES)
    editable = " ".join(f"-e ./{package}" for package in PACKAGES)
    instead = {"make setup": f"pip install -q {editable}", "make codegen": made_by("codegen")}
    followed = list(reader.follow(PAGE, instead))
    assert [block.kind for block in followed].count("python") == 2
    differing = [f for f in tracked(TREES) if (reader.clone / f).read_bytes() != (ROOT / f).read_bytes()]
    assert sorted(differing) == sorted({block.changed for block in followed if block.changed})


def test_a_composite_takes_two_files_a_structured_operator_four_and_each_a_case():
    changed = [block.changed for block in blocks(PAGE) if block.changed]
    assert len(changed) == 4 + 6
    cases = "tools/conformance/src/turnout_conformance/cases"
    others = (cases, "plugins/aten/src/turnout_aten/declarations/docs/")
    code = [[file for file in files if not file.startswith(others)] for files in (changed[:4], changed[4:])]
    assert [len(set(files)) for files in code] == [2, 4]
    assert len([file for file in changed if file.startswith(cases)]) == 2


def test_a_change_is_applied_where_its_context_stands_once():
    block = Block(1, "diff", "--- a.py\n x\n+new\n@@\n+first\n y\n")
    assert block.changed == "a.py"
    assert changed_text("x\ny\n", block) == "x\nnew\nfirst\ny\n"
    with pytest.raises(AssertionError, match="2 places"):
        changed_text("x\nx\ny\n", block)
