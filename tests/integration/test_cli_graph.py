"""`turnout graph`: it runs the function of a file and draws what is behind its results; each thing that can be wrong is said."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import commands
import pytest
from installed import Without
from workspace import ROOT

import turnout
from turnout_autograd.drawing.graph_drawing import FORMATS
from turnout_cli.graph import graph

PROGRAM = """\
import functools
from dataclasses import dataclass

import beside
import turnout
from turnout import Tensor
from turnout.nn import functional


@dataclass
class Model:
    layers: dict
    every: list
    weight: Tensor


scale = turnout.ones(4, requires_grad=True)


def loss():
    print("this is not part of the drawing")
    weight = turnout.ones(4, 3, requires_grad=True)
    model = Model({"last": [beside.parameter]}, [weight], weight)
    del weight
    hidden = functional.relu(functional.linear(turnout.ones(2, 3), model.weight)) * scale
    return functional.cross_entropy(hidden + beside.parameter, turnout.tensor([0, 1]))


def written():
    w = turnout.ones(3, requires_grad=True)
    rows = turnout.zeros(2, 3)
    rows[0] = w.exp()
    return rows


def several():
    w = turnout.ones(3, requires_grad=True)
    total = w.sum()
    return {"sum": total, "parts": (w.max(), w.detach())}


def decorated(function):
    @functools.wraps(function)
    def wrapper():
        return function()

    return wrapper


@decorated
def within():
    inner = turnout.ones(3, requires_grad=True)
    return inner.sum()


def chain():
    y = turnout.ones(1, requires_grad=True)
    for _ in range(1000):
        y = y + 1
    return y


def untracked():
    return turnout.ones(3), turnout.ones(2)


def nothing():
    return None, 3


def needs(x, *, y):
    return x


def fails():
    return beside.add(turnout.ones(3), turnout.ones(4))


def leaves():
    raise SystemExit("done")


number = 3
"""
BESIDE = """\
import turnout

parameter = turnout.ones(4, requires_grad=True)


def add(x, y):
    return x + y
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The working directory, with the programs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "beside", raising=False)
    for name, text in (("program.py", PROGRAM), ("beside.py", BESIDE), ("notes.txt", "a note\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "wrong.py").write_text("x = = 3\n", encoding="utf-8")
    (tmp_path / "zero.py").write_text("def f(): ...\n\n\nf(1 / 0)\n", encoding="utf-8")
    return tmp_path


def run(*args):
    return commands.run("graph", *args)


def drawing(*args):
    return commands.text("graph", *args)


def line(text):
    """The line of the program that holds a text."""
    return next(i for i, each in enumerate(PROGRAM.splitlines(), 1) if text in each)


def test_the_drawing_names_variables_of_the_function_and_of_the_file_and_shows_lines():
    text = drawing("program.py:loss")
    assert text.startswith('digraph "gradients" {\n')
    assert text.endswith("  n0 -> out0\n}\n")
    assert "<b>leaf model.weight</b>" in text
    assert "<b>leaf model.layers['last'][0]</b>" in text
    assert "<b>leaf scale</b>" in text
    assert "<b>hidden = aten::mul.Tensor</b>" in text
    assert f"program.py:{line('hidden = ')}  hidden = functional.relu(" in text
    assert f"program.py:{line('cross_entropy')}  return functional.cross" in text
    assert text == drawing("program.py:loss")


def test_what_the_program_prints_is_not_in_the_drawing():
    done = run("program.py:loss")
    assert "part of the drawing" not in done.stdout
    assert done.stderr == "this is not part of the drawing\n"


def test_a_write_into_a_view_is_drawn():
    text = drawing("program.py:written")
    assert "<b>CopySlices</b>" in text
    assert "aten::copy_, into the view<br" in text
    assert f"program.py:{line('rows[0] =')}  rows[0] = w.exp()<br" in text
    assert "<b>output rows</b>" in text


def test_several_results_are_several_outputs_and_those_without_a_graph_are_counted():
    done = run("program.py:several")
    assert done.exit_code == 0, done.output
    assert done.stderr == "without 1 of 3 tensors, which require no gradient\n"
    assert "<b>output sum</b>" in done.stdout
    assert "<b>output parts[0]</b>" in done.stdout
    assert done.stdout.count("<b>leaf w</b>") == 1


def test_variables_are_those_of_the_function_inside_a_decorator():
    assert "<b>leaf inner</b>" in drawing("program.py:within")


def test_the_limit_elides_what_is_far_from_the_results():
    text = drawing("program.py:chain", "--limit", 2)
    assert "998 nodes and 1 leaf more, beyond limit=2" in text
    assert "more, beyond" not in drawing("program.py:chain", "--limit", 2000)


@pytest.mark.parametrize(
    ("args", "is_svg"),
    [
        (["-o", "out.svg"], True),
        (["-o", "out.SVG"], True),
        (["-o", "out.dot"], False),
        (["-o", "out.gv"], False),
        (["-o", "out"], False),
        (["-o", "out.dot", "--format", "svg"], True),
        (["--format", "svg"], True),
        (["--format", "dot", "-o", "out.svg"], False),
    ],
)
def test_the_format_is_the_one_named_or_that_of_the_suffix(args, is_svg, folder):
    text = drawing("program.py:written", *args)
    if "-o" in args:
        assert text == ""
        text = (folder / args[args.index("-o") + 1]).read_text(encoding="utf-8")
    if is_svg:
        assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
        assert text.count(">output rows<") == 1
    else:
        assert text.startswith("digraph")


def test_every_format_of_a_drawing_is_offered():
    [option] = [each for each in graph.params if each.name == "format_"]
    assert tuple(option.type.choices) == FORMATS


def test_the_process_is_as_before():
    path, profile, modules = list(sys.path), sys.getprofile(), set(sys.modules)
    drawing("program.py:written")
    run("program.py:fails")
    assert sys.path == path
    assert sys.getprofile() is profile
    assert set(sys.modules) - modules <= {"beside"}
    y = turnout.ones(1, requires_grad=True) * 2
    assert y.grad_fn.extra is None  # detect_anomaly is off


WRONG = {
    "nowhere.py:f": "the file nowhere.py does not exist",
    ".:f": "the file . does not exist",
    "notes.txt:f": "notes.txt is not a Python file",
    "wrong.py:f": "wrong.py raised SyntaxError: invalid syntax (wrong.py, line 1)",
    "zero.py:f": "zero.py raised ZeroDivisionError: division by zero\n  at  {folder}/zero.py:4  f(1 / 0)",
    "program.py:los": "program.py has no function los; did you mean loss?",
    "program.py:number": (
        "program.py has no function number; it has loss, written, several, decorated, within, chain, untracked, nothing, "
        "needs, fails, leaves"
    ),
    "program.py:needs": (
        "program.py:needs cannot be called without arguments: missing a required argument: 'x'\n"
        "  to fix  name a function that makes its inputs itself, and calls this one"
    ),
    "program.py:fails": (
        "program.py:fails raised ShapeError: add: shapes [3] and [4] do not broadcast: 3 against 4 at dim 0\n"
        "  at  {folder}/program.py:{fails}  return beside.add(turnout.ones(3), turnout.ones(4))"
    ),
    "program.py:leaves": (
        'program.py:leaves raised SystemExit: done\n  at  {folder}/program.py:{leaves}  raise SystemExit("done")'
    ),
    "program.py:nothing": "program.py:nothing returned no tensor, but NoneType, int",
    "program.py:untracked": (
        "program.py:untracked returned no tensor that requires a gradient, so there is no graph to draw\n"
        "  to fix  requires_grad=True on an input; nothing is recorded under turnout.no_grad()"
    ),
}


@pytest.mark.parametrize("target", WRONG)
def test_what_is_wrong_is_said_in_a_few_lines(target, folder):
    done = run(target)
    assert done.exit_code == 1
    message = WRONG[target].format(folder=folder, fails=line("beside.add"), leaves=line("SystemExit"))
    assert done.stderr == f"turnout: {message}\n"
    assert done.stdout == ""


@pytest.mark.parametrize("target", ["program.py", ":f", "program.py:", ""])
def test_a_target_of_another_form_is_a_wrong_command_line(target):
    done = run(target)
    assert done.exit_code == 2
    assert f"{target!r} names no function: write FILE.py:FUNCTION" in done.stderr


def test_the_traceback_of_the_program_is_shown_when_asked(folder):
    done = subprocess.run(
        [sys.executable, "-m", "turnout_cli", "graph", "--traceback", "program.py:fails"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 1
    assert "beside.py" in done.stderr
    assert "    return x + y\n" in done.stderr


def test_a_file_that_cannot_be_written_is_named():
    done = run("program.py:written", "-o", "nowhere/out.dot")
    assert done.exit_code == 1
    assert done.stderr == "turnout: the folder nowhere does not exist\n"


@pytest.mark.skipif(os.name == "nt", reason="the environment is made of symbolic links")
def test_without_autograd_it_says_what_to_install_before_the_program_runs(folder):
    done = Without(folder, "autograd").command("graph", f"{folder / 'zero.py'}:f")
    assert done.returncode == 1
    assert done.stderr.startswith("turnout: ")
    assert f"pip install -e {ROOT / 'plugins' / 'autograd'}" in done.stderr
    assert "zero" not in done.stderr
