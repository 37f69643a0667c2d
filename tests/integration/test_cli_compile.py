"""`--compile ENGINE` of `turnout run`, `turnout demo` and `turnout graph`: what ran, what the engine was given, what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import commands
import numpy as np
import pytest
from workspace import ROOT

import turnout
from turnout_tracer.compiling import eager

MODEL = ROOT / "tests/plugins/exported/core.pt2"
PROGRAM = """\
import turnout

x, w = turnout.ones(4, 3), turnout.ones(3, 2, requires_grad=True)
kept = {}
print("not part of what is printed")


def step():
    loss = ((x @ w) ** 2).mean() + ((x @ w) ** 2).mean()
    loss.backward()
    w.grad = None
    return loss.detach()


def lazy():
    if "scale" not in kept:
        kept["scale"] = turnout.ones(3)
    return x * kept["scale"]


def loss():
    return (x @ w).sum()


def views():
    return w[1:]


def reads():
    return x if x.sum() > 0 else -x


def prints():
    print("what a function prints")
    return x


def fails():
    raise ValueError("no")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def x(tmp_path: Path) -> Path:
    path = tmp_path / "x.npy"
    np.save(path, np.arange(12, dtype="float32").reshape(4, 3))
    return path


# ---- run


def test_a_model_is_run_by_an_engine_on_the_state_of_the_file(x: Path, tmp_path: Path) -> None:
    eagerly, compiled = [tmp_path / "a.npy", tmp_path / "b.npy"], [tmp_path / "c.npy", tmp_path / "d.npy"]
    plain = commands.facts("run", MODEL, "--input", x, *[part for each in eagerly for part in ("--output", each)])
    assert plain["compiled"] is None
    outputs = [part for each in compiled for part in ("--output", each)]
    found = commands.facts("run", MODEL, "--input", x, "--compile", "eager", *outputs)["compiled"]
    assert {name: found[name] for name in ("engine", "signatures", "calls", "why")} == {
        "engine": "eager", "signatures": 1, "calls": 1, "why": []
    }  # fmt: skip
    for one, other in zip(eagerly, compiled, strict=True):
        assert np.load(one).tobytes() == np.load(other).tobytes()
    assert commands.text("run", MODEL, "--input", x, "--compile", "eager").rstrip().endswith("ms for the second run, by eager")


def test_the_results_are_those_of_the_compiled_run(x: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(eager, "compile", lambda graph, *_: lambda *values: [each * 0 for each in graph(*values)])
    commands.text("run", MODEL, "--input", x, "--compile", "eager", "--output", tmp_path / "y.npy")
    assert not np.load(tmp_path / "y.npy").any()


def test_a_model_that_an_engine_does_not_take_runs_eagerly_and_says_why(x: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise turnout.compiler.EngineError("too large")

    monkeypatch.setattr(eager, "compile", refuse)
    line = commands.text("run", MODEL, "--input", x, "--compile", "eager").splitlines()[-1]
    assert line.endswith("which ran eagerly: the engine 'eager' does not take the graph: too large")


# ---- demo


def test_the_steps_of_the_demo_are_compiled_and_learn_the_same() -> None:
    compiled = commands.facts("demo", "--epochs", "2", "--compile", "eager")
    plain = commands.facts("demo", "--epochs", "2")
    assert compiled["losses"] == plain["losses"]
    assert compiled["accuracy"] == plain["accuracy"]
    assert plain["compiled"] is None
    # The first step makes the state of the optimiser; the second one, and the first with fewer images, are recorded.
    assert compiled["compiled"] == {
        "engine": "eager", "signatures": 3, "calls": compiled["steps"] - 3,
        "why": ["the call changes arguments[1].state, and a compiled call would not"],
    }  # fmt: skip


def test_what_ran_eagerly_in_the_demo_is_printed() -> None:
    lines = commands.text("demo", "--epochs", "1", "--amp", "fp16", "--compile", "eager").splitlines()
    [line] = [line for line in lines if line.startswith("compiled ")]
    assert line.startswith("compiled       0 of 23 steps by eager, in ")
    assert lines[lines.index(line) + 1].startswith("  eagerly      the call takes values out of a tensor: ")


# ---- graph


def test_the_graph_is_printed_before_and_after(program: Path, tmp_path: Path) -> None:
    text = commands.text("graph", f"{program}:step", "--compile", "eager")
    first, second = text.split("\n\n")
    before, after = first.count("aten.mm"), second.count("aten.mm")
    assert before > after > 0
    assert first.startswith("# recorded, ")
    assert second.startswith("# given to eager, ")
    assert "\ndef step(x0, x1):\n" in first
    assert "not part" not in text
    found = commands.facts("graph", f"{program}:step", "--compile", "eager", "-o", tmp_path / "graph.txt")
    assert (tmp_path / "graph.txt").read_text() == text
    assert found["recorded"].rstrip() in first
    assert found["graph"].rstrip() in second


def test_what_records_is_printed_too_with_a_note_about_its_backward(program: Path) -> None:
    text = commands.text("graph", f"{program}:loss", "--compile", "eager")
    assert "\ndef loss(x0, x1):\n" in text
    assert text.splitlines()[-1].startswith("# one node for gradients, whose backward has ")


def test_state_that_the_function_makes_is_there_when_it_is_compiled(program: Path) -> None:
    assert "def lazy(x0, x1):" in commands.text("graph", f"{program}:lazy", "--compile", "eager")


# ---- what is wrong

WRONG = {
    "graph {program}:views --compile eager": "turnout: {program}:views runs eagerly: the results record for gradients\n",
    "graph {program}:reads --compile eager": "turnout: {program}:reads runs eagerly: the call takes values out of a tensor: ",
    "graph {program}:prints --compile eager": "turnout: {program}:prints runs eagerly: the function names print(), which reads",
    "graph {program}:fails --compile eager": "turnout: {program}:fails raised ValueError: no\n",
    "graph {program}:loss --compile eagre": "turnout: there is no engine 'eagre'; did you mean eager?\n  known   eager",
    "run {model} --input {x} --compile nosuch": "turnout: there is no engine 'nosuch'\n  known   eager",
    "run {program} --input {x} --compile eager": "turnout: load: {program} is not a saved graph: ",
    "demo --compile nosuch": "turnout: there is no engine 'nosuch'\n  known   eager",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_said(line: str, program: Path, x: Path) -> None:
    places = {"program": program, "model": MODEL, "x": x}
    done = commands.run(*line.format(**places).split())
    assert (done.exit_code, done.stdout) == (1, "")
    assert WRONG[line].format(**places) in done.stderr


MISUSED = {
    "graph {program}:loss --compile eager --limit 3": "--format and --limit are about drawings: leave them or --compile out",
    "graph {program}:loss --compile eager --format svg": "--format and --limit are about drawings: leave them or --compile out",
    "run {model} --compile eager --profile": "--profile is about operators that run one by one: leave it or --compile out",
}


@pytest.mark.parametrize("line", MISUSED)
def test_options_that_exclude_each_other_are_a_wrong_command_line(line: str, program: Path) -> None:
    done = commands.run(*line.format(program=program, model=MODEL).split())
    assert done.exit_code == 2
    assert MISUSED[line] in " ".join(done.stderr.split())
