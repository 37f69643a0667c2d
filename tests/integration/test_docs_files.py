"""docs/files.md: its programs print what it says, one after the other in one folder."""

from __future__ import annotations

import os

import pytest
from pages import ROOT, Reader

PAGE = ROOT / "docs" / "files.md"


@pytest.mark.skipif(os.name == "nt", reason="the environment of the page's reader is that of a POSIX system")
def test_every_program_of_the_page_prints_what_it_says(tmp_path):
    reader = Reader(tmp_path, trees=())
    kinds = [block.kind for block in reader.follow(PAGE)]
    assert kinds.count("python") == kinds.count("text") == 3
    assert [path.name for path in reader.clone.iterdir()] == ["state.turnout"]
