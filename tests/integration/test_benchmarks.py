"""The benchmarks run and print every row. What they measure is never asserted."""

from __future__ import annotations

import html
import json
import subprocess
import sys
from pathlib import Path

import pytest
from workspace import ROOT

import turnout

ROWS = [
    "add", "recorded", "backward", "custom_op", "impl", "custom_ported", "impl_ported", "custom_grad",
    "custom_grad_ported", "large", "operators", "backends", "mlp", "matmul_np", "matmul", "chain_np", "chain",
    "softmax", "layer_norm", "conv2d", "sort", "sum0", "sum1", "sum2", "import", "first_call",
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


def test_rows_of_several_groups_are_measured_in_one_run_and_drawn_on_one_page(tmp_path: Path) -> None:
    report, charts = tmp_path / "report.json", tmp_path / "page.html"
    done = run("--group", "all", "--quick", "--rows", "operators,first1,views3", "--json", str(report), "--html", str(charts))
    assert done.returncode == 0, done.stderr
    rows = json.loads(report.read_text("utf-8"))["rows"]
    assert [row["row"] for row in rows] == ["operators", "first1", "views3"]
    page = charts.read_text("utf-8")
    assert [f"<h2>{group}</h2>" in page for group in ("calls", "small", "kernels")] == [True, True, True]
    for row in rows:
        said = f"{row['what']}: {row['skipped']}" if "skipped" in row else f"{row['what']}: Turnout "
        assert html.escape(said) in page
    assert "://" not in page  # it loads nothing


def test_the_page_draws_a_bar_for_each_ratio_and_lists_what_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import page

    sides = {"against": "torch", "unit": "ratio", "turnout": 1e-6, "other": 2e-6}
    rows = [{"what": "x < y", "value": 0.5, **sides}, {"what": "x[0]", "value": 4.0, **sides}]
    others = [{"what": "import", "unit": "ms", "value": 16.2, "against": "bare Python"}, {"what": "mlp", "skipped": "no torch"}]
    text = page.text({"python": "3.11"}, {"calls": [*rows, *others]})
    assert "2 rows, geometric mean 1.41" in text
    assert [text.count(f'<rect class="{kind}"') for kind in ("fast", "near", "slow")] == [1, 0, 1]
    assert "x &lt; y: Turnout 1.00 us, torch 2.00 us" in text
    assert "<li>import: 16 ms over bare Python</li><li>mlp: no torch</li>" in text
    assert page.place(page.LEAST) == 0
    assert page.place(2 * page.MOST) == page.WIDTH


def test_the_benchmark_of_clusters_prints_every_row() -> None:
    pytest.importorskip("distributed")
    small = ["--megabytes", "0.01", "--repeats", "1", "--chunks", "6", "--workers", "3"]
    command = [sys.executable, str(ROOT / "benchmarks" / "clusters.py"), *small]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    what = [line[:58].strip() for line in done.stdout.splitlines()[1:]]
    assert what == [
        "50 chunks of 0.0025 million float32, threads",
        "1,000 operators on 4 chunks, building",
        "the same on 1 process",
        "the same on 2 processes",
        "chain: tasks for 6 chunks",
        "chain: bytes between 3 workers",
        "gradient of x @ w: tasks for 6 chunks",
        "gradient of x @ w: bytes between 3 workers",
    ]


@pytest.mark.parametrize("row", ["add", "backward", "custom_op", "impl", "import", "recorded"])
def test_a_profile_names_the_pieces_of_a_row(row: str) -> None:
    done = run("--quick", "--profile", row)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 5


def test_models_are_measured_on_the_devices_that_are_there() -> None:
    pytest.importorskip("torch")
    if turnout.cuda.is_available():
        pytest.skip("there is a device of type cuda, without which the benchmark is to go on")
    command = [
        sys.executable,
        str(ROOT / "benchmarks" / "models.py"),
        "--models",
        "autoencoder",
        "--devices",
        "cuda,cpu",
        "--repeats",
        "1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("without cuda: ")
    assert [line.split()[:2] for line in lines[1:]] == [["model", "device"], ["autoencoder", "cpu"], ["all", "cpu"]]
