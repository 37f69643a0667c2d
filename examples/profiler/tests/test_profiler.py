"""The profiler counts every call once, keeps own time apart from total time, and changes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

import turnout
from turnout import config, plugins
from turnout_profiler.profiles import PROGRAM, Profile, Row


@pytest.fixture
def switched_on():
    config.set({"keys.enable": ["Profiler"]})
    yield PROGRAM
    config.unset()
    PROGRAM.clear()


def counts(found: Profile) -> dict[str, int]:
    return {row.operator: row.calls for row in found.rows("operator")}


def run(folder: Path, settings: str, program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program of its own under a turnout.toml."""
    (folder / "turnout.toml").write_text(settings)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TURNOUT_", "PYTHON"))}
    clean["XDG_CONFIG_HOME"] = str(folder / "home")
    command = [sys.executable, "-W", "error", "-c", program]
    return subprocess.run(command, cwd=folder, env={**clean, **variables}, capture_output=True, text=True)


# ---- what is counted


def test_a_block_counts_its_calls_and_those_that_they_make():
    x = turnout.ones(2, 3)
    with turnout.profiler.profile() as found:
        turnout.nn.functional.softmax(x, 0)
        x + x
    x * x
    assert counts(found) == {"aten::_softmax": 1, "aten::add.Tensor": 1, "aten::softmax.int": 1}


def test_own_time_is_the_total_less_what_was_called_inside():
    x = turnout.ones(50, 50)
    with turnout.profiler.profile() as found:
        for _ in range(10):
            turnout.nn.functional.softmax(x, 0)
    rows = {row.operator: row for row in found.rows()}
    outer, inner = rows["aten::softmax.int"], rows["aten::_softmax"]
    assert inner.own == inner.total
    assert outer.own == outer.total - inner.total
    assert sum(row.own for row in rows.values()) == outer.total


def test_a_call_inside_one_of_the_same_operator_is_counted_and_its_total_time_is_not_added_twice():
    with turnout.library.Library("deep", "DEF") as library:
        library.define("down(Tensor x, int n) -> Tensor")
        library.impl("down", lambda x, n: turnout.ops.deep.down(x, n - 1) if n else x + 1, "CompositeExplicitAutograd")
        with turnout.profiler.profile() as found:
            turnout.ops.deep.down(turnout.ones(1), 3)
        rows = {row.operator: row for row in found.rows()}
        assert rows["deep::down"].calls == 4
        assert rows["deep::down"].total <= sum(row.own for row in rows.values())


def test_a_call_that_raises_is_counted_and_leaves_the_outer_one_right():
    x = turnout.ones(2, 3)
    with turnout.profiler.profile() as found:
        with pytest.raises(turnout.errors.ShapeError):
            turnout.mm(x, x)
        x + x
    assert counts(found) == {"aten::add.Tensor": 1, "aten::mm": 1}
    assert all(row.own == row.total for row in found.rows())


def test_it_sees_what_gradients_call():
    w = turnout.ones(3, requires_grad=True)
    with turnout.profiler.profile() as found:
        (w * w).sum().backward()
    assert counts(found)["aten::mul.Tensor"] == 3  # one forward, and one for each factor
    assert w.grad.tolist() == [2.0, 2.0, 2.0]


def test_it_sees_what_vmap_and_autocast_call():
    with turnout.profiler.profile() as found:
        made = turnout.vmap(lambda row: row.relu())(turnout.ones(4, 3))
    assert counts(found)["aten::relu"] == 2  # with the example, and the batching rule's with all of them
    assert made.shape == (4, 3)
    x = turnout.ones(2, 2)
    with turnout.profiler.profile() as found, turnout.autocast("cpu", turnout.bfloat16):
        assert (x @ x).dtype is turnout.bfloat16
    assert "aten::_to_copy" in counts(found)


def test_a_trace_is_the_same_with_it_and_a_replay_is_counted():
    def step(x):
        return (x * 2).relu()

    x = turnout.ones(3)
    with turnout.profiler.profile():
        graph = turnout.trace(step)(x)
    assert str(graph) == str(turnout.trace(step)(x))
    with turnout.profiler.profile() as found:
        graph(x)
    assert counts(found)["aten::relu"] == 1


# ---- whose calls


def test_a_block_has_its_own_thread_only_and_a_block_inside_has_a_profile_of_its_own():
    x = turnout.ones(2)
    with turnout.profiler.profile() as outer:
        thread = threading.Thread(target=lambda: x.exp())
        thread.start()
        thread.join()
        with turnout.profiler.profile() as inner:
            x.sin()
        x.cos()
    assert counts(outer) == {"aten::cos": 1}
    assert counts(inner) == {"aten::sin": 1}
    assert turnout.profiler.current() is PROGRAM


def test_a_block_that_raises_leaves_nothing():
    x = turnout.ones(2)
    with pytest.raises(ZeroDivisionError), turnout.profiler.profile() as found:
        raise ZeroDivisionError
    x.exp()
    assert counts(found) == {}
    assert turnout.profiler.current() is PROGRAM


def test_the_setting_counts_the_calls_of_all_threads(switched_on):
    x = turnout.ones(2)
    switched_on.clear()

    def work():
        for _ in range(200):
            x.exp()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts(switched_on) == {"aten::exp": 800}


def test_deactivation_takes_it_away(switched_on):
    turnout.ones(2)
    config.unset()
    plugins.deactivate("profiler")
    turnout.ones(2).exp()
    assert counts(PROGRAM) == {}


# ---- table and chart

ROWS = [Row("aten::mm", 2, 3_000_000, 3_000_000), Row("aten::matmul", 1, 4_000_000, 1_000_000), Row("a::<b>", 1, 0, 0)]


@pytest.fixture
def known() -> Profile:
    """A profile with known times."""
    found = Profile()
    for operator, calls, total, own in ROWS:
        found.record(operator, total, own)
        for _ in range(calls - 1):
            found.record(operator, 0, 0)
    return found


def test_the_table_has_calls_times_and_shares(known):
    assert known.table() == (
        "4 calls of 3 operators in 4.00 ms\n"
        "operator      calls  total ms  own ms   share\n"
        "aten::mm          2     3.000   3.000  75.0 %\n"
        "aten::matmul      1     4.000   1.000  25.0 %\n"
        "a::<b>            1     0.000   0.000   0.0 %"
    )
    assert known.table("total", 1).splitlines()[2:] == [
        "aten::matmul      1     4.000   1.000  25.0 %",
        "2 more            3             3.000  75.0 %",
    ]
    assert str(Profile()) == "no operator was called"


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("own", ["aten::mm", "aten::matmul", "a::<b>"]),
        ("total", ["aten::matmul", "aten::mm", "a::<b>"]),
        ("calls", ["aten::mm", "a::<b>", "aten::matmul"]),
        ("operator", ["a::<b>", "aten::matmul", "aten::mm"]),
    ],
)
def test_each_column_sorts(known, sort, order):
    assert [row.operator for row in known.rows(sort)] == order


def test_a_column_that_is_not_there_is_refused(known):
    with pytest.raises(turnout.errors.ArgumentError) as caught:
        known.rows("owm")
    assert str(caught.value) == "there is no column 'owm' to sort by; there are: own, total, calls, operator"


def test_the_chart_is_an_svg_picture_with_a_bar_for_each_operator(known, tmp_path):
    known.save(tmp_path / "chart.svg")
    tree = ElementTree.parse(tmp_path / "chart.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    bars = tree.findall(f"{space}g")
    assert [bar.findtext(f"{space}text") for bar in bars] == ["aten::mm", "aten::matmul", "a::<b>"]
    widths = [[float(rect.get("width")) for rect in bar.findall(f"{space}rect")] for bar in bars]
    assert widths == [[307.5, 307.5], [410.0, 102.5], [0.0, 0.0]]
    assert "href" not in (tmp_path / "chart.svg").read_text()


# ---- configuration


def test_a_program_is_profiled_by_settings_alone(tmp_path):
    (tmp_path / "charts").mkdir()
    done = run(
        tmp_path,
        '[keys]\nenable = ["Profiler"]\n[plugin.profiler]\nsort = "calls"\nrows = 1\n',
        "import turnout\nx = turnout.ones(2)\nfor _ in range(3): x.exp()\nprint(x.tolist())",
        TURNOUT_PLUGIN__PROFILER__FILE="charts/run.svg",
    )
    assert (done.returncode, done.stdout) == (0, "[1.0, 1.0]\n"), done.stderr
    lines = done.stderr.splitlines()
    assert lines[1].split() == ["operator", "calls", "total", "ms", "own", "ms", "share"]
    assert lines[2].split()[:2] == ["aten::exp", "3"]
    assert lines[3].startswith("1 more")
    assert "aten::exp: 3 calls" in (tmp_path / "charts/run.svg").read_text()


def test_without_the_setting_and_with_print_off_nothing_is_printed(tmp_path):
    program = "import turnout; turnout.ones(2).exp()"
    for settings in ("", '[keys]\nenable = ["Profiler"]\n[plugin.profiler]\nprint = false\n'):
        done = run(tmp_path, settings, program)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["turnout.toml"]


def test_a_project_may_not_say_where_the_chart_is_written(tmp_path):
    settings = '[keys]\nenable = ["Profiler"]\n[plugin.profiler]\nfile = "run.svg"\n'
    done = run(tmp_path, settings, "import turnout; turnout.ones(2)")
    assert done.returncode == 1
    assert (
        f"{tmp_path.resolve() / 'turnout.toml'}:4  plugin.profiler.file: a project's file may not set this option" in done.stderr
    )
    assert not (tmp_path / "run.svg").exists()


def test_a_chart_that_cannot_be_written_is_said_and_the_program_ends_well(tmp_path):
    (tmp_path / "run.svg").mkdir()
    given = {"TURNOUT_KEYS__ENABLE": "Profiler", "TURNOUT_PLUGIN__PROFILER__FILE": "run.svg"}
    done = run(tmp_path, "", "import turnout; turnout.ones(2)", **given)
    assert done.returncode == 0
    assert done.stderr.splitlines()[-1].startswith("turnout-profiler: run.svg was not written: ")


def test_explain_shows_it_above_all_others():
    x = turnout.ones(2)
    with turnout.state.include("Profiler"):
        [line] = [line for line in str(turnout.explain("exp", x)).splitlines() if line.startswith("-> Profiler")]
    assert line.split("profile [backend fallback] (")[1].startswith("turnout-profiler 0.1.0, ")
