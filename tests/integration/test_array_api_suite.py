"""The suite of the array API standard, where a checkout of it is at hand: the variable ARRAY_API_TESTS names its folder.

It is https://github.com/data-apis/array-api-tests with its submodule, and needs `ndindex` and `pytest-json-report`. What may fail
stands in `array_api_allowed.txt` with the clause of the standard or the fault of the suite; one that passes all the same fails.
So the examples are drawn with a fixed seed: others now and then show no fault of those.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ALLOWED = Path(__file__).with_name("array_api_allowed.txt")
FOLDER = os.environ.get("ARRAY_API_TESTS", "")


def test_every_test_that_may_fail_has_a_reason() -> None:
    text = ALLOWED.read_text(encoding="utf-8")
    for paragraph in text.strip().split("\n\n"):
        lines = paragraph.splitlines()
        assert lines[0].startswith("# ")
        assert all(line.startswith(("# ", "array_api_tests/")) for line in lines)


@pytest.mark.skipif(not FOLDER, reason="ARRAY_API_TESTS names no checkout of the suite")
@pytest.mark.timeout(7200)
def test_the_suite_of_the_standard_passes() -> None:
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "xfail_strict=true", "--disable-deadline",
        "--hypothesis-seed=0", f"--xfails-file={ALLOWED}", f"--max-examples={os.environ.get('ARRAY_API_EXAMPLES', '100')}",
        "array_api_tests",
    ]  # fmt: skip
    given = {"ARRAY_API_TESTS_MODULE": "turnout.array_api", "ARRAY_API_TESTS_VERSION": "2025.12"}
    done = subprocess.run(command, cwd=FOLDER, env={**os.environ, **given}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
