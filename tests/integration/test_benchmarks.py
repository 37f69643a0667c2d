"""The benchmarks run and print every row. What they measure is never asserted."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, pages

import turnout

ROWS = [
    "add", "recorded", "backward", "custom_op", "impl", "custom_ported", "impl_ported", "custom_grad",
    "custom_grad_ported", "large", "operators", "backends", "mlp", "modules", "identities", "gpt",
    "gpt_functions", "matmul_np", "matmul", "chain_np", "chain", "softmax", "layer_norm", "conv2d",
    "sort", "sum0", "sum1", "sum2", "import", "first_call",
]  # fmt: skip


SKIPPED = ("torch cannot be imported", "there is no device cuda", "this torch has no device cuda")


def output(program: str, *arguments: str) -> str:
    """What a program of the folder prints; it must end well."""
    command = [sys.executable, str(ROOT / "benchmarks" / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[list[str]], None]]:
    """`benchmarks/run.py` in this process."""
    folder = str(ROOT / "benchmarks")
    monkeypatch.syspath_prepend(folder)
    for path in Path(folder).glob("*.py"):
        monkeypatch.delitem(sys.modules, path.stem, raising=False)  # tests have modules of these names
    before = set(sys.modules)
    import run

    yield run.main
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folder):
            del sys.modules[name]


def test_each_group_has_a_title(program: Callable[[list[str]], None]) -> None:
    run = sys.modules["run"]
    assert {*run.GROUPS} < {*run.TITLES}


def test_the_groups_that_pages_name_are_those_that_there_are(program: Callable[[list[str]], None]) -> None:
    run = sys.modules["run"]
    named = {name for page in pages() for name in re.findall(r"--group (\w+)", page.read_text("utf-8"))}
    assert {*run.TITLES} - named == {run.CALLS, run.DRAWN}  # which is the default, and a search for rows
    assert named < {*run.TITLES}


def test_a_quick_run_reports_and_draws_every_row_it_was_asked_for_and_no_other(tmp_path: Path) -> None:
    report, charts = tmp_path / "report.json", tmp_path / "page.html"
    cards = ["cuda add", "cuda TF32 matmul 4096", "cuda _fused_adam_", "cuda small 29", "cuda the same recorded"]
    first = [*ROWS, "first1", "views3", "compiled6"]
    asked = [*first, *cards]
    options = ["--group", "all", "--quick", "--rows", ",".join(asked), "--json", str(report), "--html", str(charts)]
    printed = output("run.py", *options)
    run = json.loads(report.read_text("utf-8"))
    rows = run["rows"]
    assert turnout.cuda.is_available() or run["machine"]["card"] == "there is no device cuda"
    assert run["title"] == "All groups"
    assert run["command"] == f'make bench ARGS="--group all --rows {",".join(asked)} --quick"'
    assert date.fromisoformat(run["date"]) <= datetime.now(UTC).date()
    names = [row["row"] for row in rows]
    assert (names[: len(first)], {*names}) == (first, {*asked})  # some names are rows of several groups
    page = charts.read_text("utf-8")
    assert [f"<h2>{group}</h2>" in page for group in ("calls", "small", "kernels")] == [True, True, True]
    assert "://" not in page  # it loads nothing
    for row in rows:
        assert row["what"] in printed
        assert html.escape(row["what"]) in page
        if "skipped" in row:
            assert row["skipped"].startswith(SKIPPED), row
            assert html.escape(f"{row['what']}: {row['skipped']}") in page
        else:
            assert row["unit"] == "ms" or html.escape(f"{row['what']}: Turnout ") in page
            assert row["turnout"] > 0
            assert row["other"] > 0
            assert row["quartiles"][0] <= row["value"] <= row["quartiles"][1]


def test_a_row_that_does_not_exist_is_refused_with_the_names_of_those_that_do(program: Any, capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        program(["--rows", "add,subtract"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: no such row: subtract; there are {', '.join(ROWS)}\n")


@pytest.mark.parametrize("row", ["add", "backward", "custom_op", "impl", "import", "recorded"])
def test_a_profile_names_the_pieces_of_a_row(row: str, program: Any, capsys: Any) -> None:
    program(["--quick", "--profile", row])
    assert len(capsys.readouterr().out.splitlines()) > 5


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
    what = [line[:58].strip() for line in output("clusters.py", *small).splitlines()[1:]]
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


def test_models_are_measured_on_the_devices_that_are_there() -> None:
    pytest.importorskip("torch")
    if turnout.cuda.is_available():
        pytest.skip("there is a device of type cuda, without which the benchmark is to go on")
    lines = output("models.py", "--models", "autoencoder", "--devices", "cuda,cpu", "--repeats", "1").splitlines()
    assert lines[0].startswith("without cuda: ")
    assert [line.split()[:2] for line in lines[1:]] == [["model", "device"], ["autoencoder", "cpu"], ["all", "cpu"]]
