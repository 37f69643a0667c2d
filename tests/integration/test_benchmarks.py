"""The benchmarks run and print every row. What they measure is never asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from workspace import ROOT

ROWS = [
    "add", "recorded", "backward", "custom_op", "impl", "custom_ported", "impl_ported", "custom_grad",
    "custom_grad_ported", "large", "operators", "backends", "mlp", "matmul_np", "matmul", "chain_np", "chain",
    "softmax", "layer_norm", "conv2d", "sort", "sum0", "sum1", "sum2", "import",
]  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_a_quick_run_reports_every_row_it_was_asked_for(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    done = run("--quick", "--rows", ",".join(ROWS), "--json", str(report))
    assert done.returncode == 0, done.stderr
    rows = json.loads(report.read_text("utf-8"))["rows"]
    assert [row["row"] for row in rows] == ROWS
    for row in rows:
        assert row["what"] in done.stdout
        if "skipped" in row:
            assert row["skipped"].startswith("torch cannot be imported"), row
        else:
            assert row["turnout"] > 0
            assert row["other"] > 0
            assert row["quartiles"][0] <= row["value"] <= row["quartiles"][1]


def test_only_the_rows_that_were_asked_for_are_measured(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert run("--quick", "--rows", "backends", "--json", str(report)).returncode == 0
    assert [row["row"] for row in json.loads(report.read_text("utf-8"))["rows"]] == ["backends"]


def test_a_row_that_does_not_exist_is_refused_with_the_names_of_those_that_do() -> None:
    done = run("--rows", "add,subtract")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"run.py: error: no such row: subtract; there are {', '.join(ROWS)}"


@pytest.mark.parametrize("row", ["add", "backward", "custom_op", "impl", "import", "recorded"])
def test_a_profile_names_the_pieces_of_a_row(row: str) -> None:
    done = run("--quick", "--profile", row)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 5
