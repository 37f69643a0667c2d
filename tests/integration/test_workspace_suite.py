"""The suite itself: its fast selection stays within its budget, and a run of it says what a reader needs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from workspace import ROOT

import selection

FILES = sorted(path.relative_to(ROOT).as_posix() for path in selection.TESTS.rglob("test_*.py") if "oracle" not in path.parts)


def test_the_recorded_seconds_of_the_fast_selection_are_within_its_budget() -> None:
    count, seconds = selection.record().fast
    assert count > 20_000
    assert seconds <= selection.BUDGET, "what a change adds to `make test`, something else must give back"


def test_every_file_of_tests_was_measured() -> None:
    """A file without seconds counts as free. `make seconds` measures all but those for a device or for built wheels."""
    missing = [file for file in FILES if file not in selection.record().rows]
    assert [file for file in missing if not re.search(r"NEEDS_DEVICE|mark\.wheels", (ROOT / file).read_text("utf-8"))] == []


def test_each_row_of_the_tables_names_tests_that_there_are() -> None:
    names = list(selection.record().rows)
    for of, tests, reason in (*selection.LEFT_OUT, *selection.ON_DEMAND, *selection.KEPT):
        assert reason
        assert any(fnmatchcase(file, of) for file in FILES), of
        if tests != ".*" and (of, tests, reason) not in selection.ON_DEMAND:
            assert any(selection.matches([(of, tests, reason)], name) for name in names), tests
    for pattern in selection.CALLS:
        assert any(fnmatchcase(file, pattern) for file in FILES), pattern


def test_functions_are_left_out_as_a_whole_only_where_each_of_their_tests_is() -> None:
    names = [name for name in selection.record().rows if "::" in name]
    names += [f"{name}[cpu]" for name in names if "[" not in name] + ["tests/conformance/test_dask.py::test_out_form_fills[dask]"]
    for chosen in ("fast", "rest", "calls", "all", "whole", "sweeps"):
        gone = [name for name in names if selection.has_none_of(name.partition("[")[0], chosen)]
        assert [name for name in gone if selection.SELECTIONS[chosen](name)] == []
        assert bool(gone) is (chosen not in ("whole", "sweeps"))


def test_each_recorded_fault_of_the_product_can_be_put_into_the_tree() -> None:
    listed = subprocess.run([sys.executable, "tests/suite_faults", "list"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert len(listed.stdout.splitlines()) >= 59
    assert [line for line in listed.stdout.splitlines() if "no longer applies" in line] == []


def test_the_record_says_of_each_test_what_it_was_measured_with(tmp_path) -> None:
    path = tmp_path / "seconds.tsv"
    fast, many = "tests/core/test_a.py::test_fast", "tests/core/test_a.py::test_many"
    slow = f"{many}[slow]"
    selection.write({fast: 0.01, slow: 1.5, **{f"{many}[{i}]": 0.03 for i in range(10)}}, path)
    made = selection.record.__wrapped__(path)
    assert made.fast == (11, 0.31)
    assert (made.seconds(fast), made.seconds(slow), made.seconds(f"{many}[7]")) == (0.01, 1.5, pytest.approx(0.03))
    assert made.seconds("tests/core/test_b.py::test_new") is None
    assert selection.is_fast("tests/core/test_b.py::test_new", made)
    assert not selection.is_fast(slow, made)
    assert not selection.is_fast("tests/plugins/test_c.py::test_x", selection.Record({"tests/plugins/test_c.py": (1, 0.2)}))


def test_a_run_says_what_it_takes_how_far_it_is_and_how_to_repeat_a_failure(tmp_path) -> None:
    core = tmp_path / "tests" / "core"
    core.mkdir(parents=True)
    for name in ("conftest", "progress", "selection"):
        shutil.copy(selection.TESTS / f"{name}.py", core.parent)
    (core / "test_numbers.py").write_text(
        "import pytest, time\n@pytest.mark.parametrize('n', range(40))\ndef test_all(n, pytestconfig):\n"
        "    assert len(pytestconfig.pluginmanager.getplugin('terminalreporter').stats) <= 1, 'a worker keeps reports'\n"
        "    if n == 3:\n        pytest.skip('no reason at all')\n    time.sleep(0.05)\n    assert n != 7\n"
    )
    (tmp_path / "Makefile").write_text(".venv/.stamp-install:\n\ttouch $@\n")
    options = ["-q", "-n", "2", "-o", "console_output_style=classic", "-p", "no:cacheprovider", "--record-seconds"]
    command = [sys.executable, "-m", "pytest", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = done.stdout
    assert done.returncode == 1, said + done.stderr
    for line in (
        r"40 tests \(all\), \d+ s of CPU time when last recorded: about \d+:\d\d from here",
        r"100 %  40 of 40 tests, \d+:\d\d gone, about 0:00 left, 1 FAILED",
        r"skipped: 1, no reason at all",
        r"\.venv/bin/python -m pytest 'tests/core/test_numbers\.py::test_all\[7\]'",
        r"compiled modules are older than their sources: run `make setup` first",
        r"\d+ s of CPU time in tests; peak memory in GiB: gw0 \d\.\d\d, gw1 \d\.\d\d, this process \d\.\d\d",
    ):
        assert re.search(f"^{line}$", said, re.MULTILINE), (line, said)
    assert len(said.splitlines()) < 40
    assert float((core.parent / "seconds.tsv").read_text().split("\t")[1]) < 40 * 0.05  # which is CPU time: who waits takes none


# What leaves something behind -> what ends it, as often in the same file. Python 3.14 warns of interpreters that are left.
ENDED_BY = {
    r"interpreters\.create\(": r"interpreters\.destroy\(",
    r"os\.fork\(\)": r"os\.wait(pid)?\(",
    r"\bPopen\(": r"with subprocess\.Popen\(|enter_context\(subprocess\.Popen\(|\.communicate\(|\.wait\(\)|def scheduler_process",
    r"\b(mkdtemp|mkstemp)\(|delete=False": "tmp_path is the folder of a test, which pytest removes",
}


def test_what_tests_and_benchmarks_start_they_end() -> None:
    found, left = set(), []
    for folder in ("tests", "benchmarks", "tools", "docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = "" if path == Path(__file__) else path.read_text("utf-8")
            for start, end in ENDED_BY.items():
                if started := len(re.findall(start, text)):
                    found.add(start)
                    if len(re.findall(end, text)) < started:
                        left.append(f"{path.relative_to(ROOT)}: {start}")
    assert left == []
    assert len(found) == 3
