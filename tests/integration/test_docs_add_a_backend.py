"""docs/add-a-backend.md, followed as it is written; and the kit proves its package."""

from __future__ import annotations

import os

import pytest
from pages import ROOT, Reader

PAGE = ROOT / "docs" / "add-a-backend.md"
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the page's commands are for a POSIX shell")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Someone with Turnout installed, outside of the repository."""
    reader = Reader(tmp_path_factory.mktemp("abacus"), trees=())
    reader.command("turnout", f'"{reader.python}" -m turnout_cli')
    reader.command("pytest", f'"{reader.python}" -m pytest')
    for _ in reader.follow(PAGE):
        pass
    return reader


def test_the_package_of_the_page_is_built_and_every_program_prints_what_it_says(reader):
    assert sorted(path.name for path in (reader.clone / "abacus" / "turnout_abacus").iterdir()) == [
        "__init__.py", "arrays.py", "backend.py", "kernels.py", "plugin.toml",
    ]  # fmt: skip


# Its dtypes cannot be seen as one another, and complex numbers not at all.
FAILURES = """
test_operator_gives_what_cpu_gives[abacus-view.dtype-row-major]
test_operator_gives_what_cpu_gives[abacus-view_as_complex-row-major]
test_operator_gives_what_cpu_gives[abacus-view_copy.dtype-row-major]
test_operator_gives_what_cpu_gives[abacus-stft-row-major]
"""


def test_the_kit_proves_it_for_every_operator_case_that_it_has_the_dtypes_for(reader):
    failures = reader.clone / "failures.txt"
    failures.write_text(FAILURES)
    command = [reader.python, "-m", "pytest", "-q", "--pyargs", "turnout_conformance", "--turnout-backend=abacus"]
    chosen = "(gives_what_cpu_gives and row-major) or test_backend_device or test_backend_plugin"
    done = reader.run([*command, "-k", chosen, f"--turnout-expected-failures={failures}"])
    assert done.returncode == 0, done.stdout
    assert "4 xfailed" in done.stdout
