"""`turnout run`: exported programs on arrays that NumPy saved, their results compared and their operators timed."""

from __future__ import annotations

from functools import partial

import commands
import numpy as np
import pytest
from workspace import ROOT

import turnout

MODEL = ROOT / "tests/plugins/exported/core.pt2"


run, text, facts = (partial(command, "run", MODEL) for command in (commands.run, commands.text, commands.facts))


@pytest.fixture
def x(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(12, dtype="float32").reshape(4, 3))
    return path


def test_a_model_is_run_and_its_results_are_written_and_compared(x, tmp_path):
    first, second = tmp_path / "y.npy", tmp_path / "z.npy"
    lines = text("--input", x, "--output", first, "--output", second).splitlines()
    assert lines[0].split() == ["result", "dtype", "shape", "apart"]
    assert lines[1].split() == ["0", "float32", "[4,", "2]"]
    np.testing.assert_allclose(np.load(first)[:, 1], [-2.6833, -0.8944, 0.8944, 2.6833], atol=1e-4)
    assert text("--input", x, "--compare", first, "--compare", second).splitlines()[1].split()[-2:] == ["0.0e+00", "same"]
    np.save(first, np.load(first) + 1)
    done = run("--input", x, "--compare", first)
    assert done.exit_code == 1
    assert done.stdout.splitlines()[1].split()[-1] == "different"
    text("--input", x, "--compare", first, "--tolerance", "1")
    np.save(first, np.ones(3))
    done = run("--input", x, "--compare", first)
    assert done.exit_code == 1
    assert "expected shape [3]  different" in done.stdout


def test_a_nan_that_only_one_of_them_has_is_a_difference(x, tmp_path):
    path = tmp_path / "y.npy"
    run("--input", x, "--output", path)
    array = np.load(path)
    array[0, 0] = np.nan
    np.save(path, array)
    assert run("--input", x, "--compare", path).exit_code == 1


def test_the_profile_has_a_row_and_a_bar_for_each_operator(x):
    rows = [line.split() for line in text("--input", x, "--profile").splitlines() if line.startswith("aten::")]
    assert {row[0] for row in rows} >= {"aten::addmm", "aten::_native_batch_norm_legit_functional", "aten::copy_"}
    assert rows[0][-1] == "#" * 40
    found = facts("--input", x, "--profile")
    assert sum(row["share"] for row in found["operators"]) == pytest.approx(1)
    calls = {row["operator"]: row["calls"] for row in found["operators"]}
    assert calls["aten::copy_"] == 4  # of what buffers become, not of what the profile puts back


def test_the_profile_of_an_opencl_device_has_its_own_times(x, need_device):
    need_device("opencl")
    lines = [line.split() for line in text("--input", x, "--profile", "--device", "opencl").splitlines()]
    assert ["operator", "calls", "ms", "device", "ms", "share"] in lines
    rows = [line for line in lines if line[:1] and line[0].startswith("aten::")]
    assert [float(row[3]) for row in rows] == sorted((float(row[3]) for row in rows), reverse=True)
    found = facts("--input", x, "--profile", "--device", "opencl")["operators"]
    times = {row["operator"]: row["device_milliseconds"] for row in found}
    assert times["aten::addmm"] > 0
    assert sum(row["share"] for row in found) == pytest.approx(1)
    for row in found:
        assert row["share"] == pytest.approx(row["device_milliseconds"] / sum(times.values()))
    on_cpu = facts("--input", x, "--profile")["operators"]
    assert {row["device_milliseconds"] for row in on_cpu} == {None}


def test_a_saved_graph_is_run_too(x, tmp_path):
    turnout.export.load(MODEL).save(tmp_path / "graph.json")
    commands.text("run", tmp_path / "graph.json", "--input", x)


def test_what_is_wrong_is_said(x, tmp_path):
    (tmp_path / "other").write_bytes(b"PK nothing")
    (tmp_path / "other.pt2").write_bytes(b"PK nothing")
    for line, said in {
        (MODEL,): f"turnout: {MODEL} takes 1 inputs (x), and 0 are given\n",
        (MODEL, "--input", MODEL): f"turnout: {MODEL} is not an array that NumPy saved: ",
        (MODEL, "--input", x, *["--compare", x] * 3): "turnout: the model returns 2 tensors, and 3 are to be compared\n",
        (tmp_path / "other",): "is not a saved graph: it does not end as an archive ends",
        (tmp_path / "other.pt2",): "was not written by torch.export.save, or is damaged: it does not end as an archive ends",
    }.items():
        done = commands.run("run", *line)
        assert done.exit_code == 1
        assert said in done.stderr
