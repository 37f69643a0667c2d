"""docs/write-a-backend.md and docs/write-a-functionality.md, followed as they are written; and the kit proves what they make."""

from __future__ import annotations

import os
import zipfile

import pytest
from pages import ROOT, Reader, blocks, broken_links, tracked

BACKEND = ROOT / "docs" / "write-a-backend.md"
FUNCTIONALITY = ROOT / "docs" / "write-a-functionality.md"
EXAMPLE = "examples/torchlike"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the commands of the pages are for a POSIX shell")


@pytest.mark.parametrize("page", [BACKEND, FUNCTIONALITY], ids=lambda page: page.stem)
def test_the_package_of_the_page_is_built_and_every_program_prints_what_it_says(page, tmp_path):
    reader = Reader(tmp_path)  # with Turnout installed, outside of the repository
    reader.follow(page)
    {BACKEND: torchlike_is_the_example, FUNCTIONALITY: the_wheel_of_ledger_is_whole_and_proved}[page](reader)


def torchlike_is_the_example(reader: Reader) -> None:
    """All files but the README, and the expected failures, of which the page writes a part."""
    made = reader.done([reader.python, "-c", "import turnout_torchlike; print(turnout_torchlike.__file__)"])
    assert str(reader.environment.packages()) in made
    for name in tracked((EXAMPLE,)):
        path = name.removeprefix("examples/")
        if not path.endswith(("README.md", "expected_failures.txt")):
            text = (reader.clone / path).read_text(encoding="utf-8")
            assert text.removeprefix(f"# {path}\n") == (ROOT / name).read_text(encoding="utf-8"), name


def the_wheel_of_ledger_is_whole_and_proved(reader: Reader) -> None:
    """It has its files and no other, and the kit proves it in its own context too."""
    [wheel] = (reader.clone / "dist").glob("*.whl")
    assert {name for name in zipfile.ZipFile(wheel).namelist() if "dist-info" not in name} == {
        "turnout_ledger/__init__.py",
        "turnout_ledger/counting.py",
        "turnout_ledger/plugin.toml",
    }
    assert broken_links(FUNCTIONALITY) == []
    context = "--turnout-key=Ledger --turnout-key-context=Ledger=turnout_ledger.counting:counting"
    reader.done(f"pytest -q --pyargs turnout_conformance {context} -k 'mm or cumsum or relu'")


def test_the_files_of_the_page_about_backends_are_those_of_the_example_and_have_less_than_100_lines():
    files = {block.file: block.text.partition("\n")[2] for block in blocks(BACKEND) if block.file}
    assert files
    for path, text in files.items():
        if not path.endswith("expected_failures.txt"):
            assert text == (ROOT / "examples" / path).read_text(encoding="utf-8"), path
    assert 50 < sum(bool(line.strip()) for text in files.values() for line in text.splitlines()) < 100
