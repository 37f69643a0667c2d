"""Wheels that an outside author built against an earlier tree: they are found, and pass the tests that they have."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from installed import clean
from test_docs_plugin_api import OURS, PROMISED, imported, public

WHEELS = Path(__file__).parent.parent / "kept_wheels"
PACKAGES = ("turnout_keptbackend", "turnout_keptfunctionality", "turnout_keptoperators")


def unpacked(generation: str, folder: Path) -> Path:
    """The wheels of a generation, as an installer lays them out."""
    for wheel in sorted((WHEELS / generation).glob("*.whl")):
        zipfile.ZipFile(wheel).extractall(folder)
    assert {path.name for path in folder.iterdir() if path.suffix != ".dist-info"} == set(PACKAGES)
    return folder


@pytest.mark.parametrize(("generation", "warnings"), [("first", "default"), ("promised", "error")])
def test_a_wheel_of_an_earlier_tree_passes_its_tests(generation: str, warnings: str, tmp_path: Path) -> None:
    site = unpacked(generation, tmp_path / "site")
    command = [sys.executable, "-W", warnings, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", *PACKAGES]
    done = subprocess.run(
        command, cwd=tmp_path, env=clean(PYTHONPATH=os.fspath(site)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "16 passed" in done.stdout


def test_the_later_wheels_import_what_is_promised(tmp_path: Path) -> None:
    sources = sorted(unpacked("promised", tmp_path).rglob("*.py"))
    assert len(sources) > 10
    outside = [
        f"{path.relative_to(tmp_path)}: {module} {name}"
        for path in sources
        for module, name in imported(path.read_text(encoding="utf-8"))
        if module.partition(".")[0] in OURS
        if (name not in PROMISED.get(module, ()) if name else module not in PROMISED) and not public(module, name)
    ]
    assert outside == []
