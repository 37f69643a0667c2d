"""docs/numbers.md, whose programs print what it says."""

from __future__ import annotations

from pathlib import Path

from pages import ROOT, Reader

PAGE = ROOT / "docs" / "numbers.md"


def test_every_program_of_the_page_prints_what_it_says(tmp_path: Path) -> None:
    assert [block.kind for block in Reader(tmp_path, trees=()).follow(PAGE)] == ["python", "text"] * 2
