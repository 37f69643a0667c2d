"""docs/write-a-functionality.md, followed as it is written; and the kit proves its package."""

from __future__ import annotations

import os
import zipfile

import pytest
from pages import ROOT, Reader, broken_links

PAGE = ROOT / "docs" / "write-a-functionality.md"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the page's commands are for a POSIX shell")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Someone with Turnout installed, outside of the repository."""
    reader = Reader(tmp_path_factory.mktemp("ledger"), trees=())
    reader.command("turnout", f'"{reader.python}" -m turnout_cli')
    reader.command("pytest", f'"{reader.python}" -m pytest -p no:cacheprovider')
    for _ in reader.follow(PAGE):
        pass
    return reader


def test_the_package_of_the_page_is_built_and_every_program_prints_what_it_says(reader):
    [wheel] = (reader.clone / "dist").glob("*.whl")
    assert {name for name in zipfile.ZipFile(wheel).namelist() if "dist-info" not in name} == {
        "turnout_ledger/__init__.py",
        "turnout_ledger/counting.py",
        "turnout_ledger/plugin.toml",
    }
    assert broken_links(PAGE) == []


def test_the_kit_proves_it_in_its_own_context_too(reader):
    done = reader.run(
        [
            reader.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "turnout_conformance",
            "--turnout-key=Ledger", "--turnout-key-context=Ledger=turnout_ledger.counting:counting", "-k", "mm or cumsum or relu",
        ]
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
