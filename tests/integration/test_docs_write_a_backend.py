"""docs/write-a-backend.md, followed as it is written. What it makes is examples/torchlike."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pages import ROOT, Reader, blocks, tracked

PAGE = ROOT / "docs" / "write-a-backend.md"
EXAMPLE = "examples/torchlike"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the page's commands are for a POSIX shell")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Someone with Turnout installed, outside of the repository."""
    reader = Reader(tmp_path_factory.mktemp("torchlike"), trees=())
    for name, module in {"turnout": "turnout_cli", "pytest": "pytest", "mypy": "mypy"}.items():
        reader.command(name, f'"{reader.python}" -m {module}')
    reader.command(
        "ruff", f'"{Path(sys.executable).parent / "ruff"}"'
    )  # a program: `python -m ruff` would look for this very file
    for _ in reader.follow(PAGE):
        pass
    return reader


def test_the_package_of_the_page_is_built_and_every_program_prints_what_it_says(reader):
    made = reader.run(f'"{reader.python}" -c "import turnout_torchlike; print(turnout_torchlike.__file__)"')
    assert str(reader.environment.packages()) in made.stdout


def test_what_the_page_makes_is_the_example(reader):
    """All files but the README, and the expected failures, of which the page writes a part."""
    written = {block.file for block in blocks(PAGE) if block.file}
    assert written
    for name in tracked((EXAMPLE,)):
        path = name.removeprefix("examples/")
        if path.endswith(("README.md", "expected_failures.txt")):
            continue
        made = (reader.clone / path).read_text(encoding="utf-8")
        if path in written:
            made = made.partition("\n")[2]  # the comment that names the file
        assert made == (ROOT / name).read_text(encoding="utf-8"), name


def test_the_code_of_the_page_has_less_than_100_lines():
    lines = [line for block in blocks(PAGE) if block.file for line in block.text.splitlines()[1:] if line.strip()]
    assert 50 < len(lines) < 100
