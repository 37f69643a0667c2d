"""The programs of docs/threads.md print what the page says."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pages import ROOT, blocks

FOUND = [block for block in blocks(ROOT / "docs" / "threads.md") if block.kind in ("python", "text")]
PROGRAMS = list(zip(FOUND[::2], FOUND[1::2], strict=True))


@pytest.mark.parametrize(("program", "output"), PROGRAMS, ids=lambda block: f"line {block.line}")
def test_a_program_prints_what_stands_below_it(program, output, tmp_path):
    assert (program.kind, output.kind) == ("python", "text")
    done = subprocess.run([sys.executable, "-c", program.text], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == (output.text, "")
