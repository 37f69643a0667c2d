"""Errors of every kind show the lines of the program alone, at the first call and at the second."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from installed import clean

# What is wrong -> the call. `a` is 2 x 3, `b` 2 x 4, `p` 2 x 3 and requires a gradient.
KINDS = {
    "matmul": "m.matmul(a, b)", "an operator": "a @ b", "add": "a + b", "cat": "m.cat([a, b])", "reshape": "a.reshape(7)",
    "index": "a[5]", "index of another kind": "a[:, 'x']", "setting": "a.__setitem__(7, 1.0)", "conv2d": "F.conv2d(a, b)",
    "overload": "m.add(a, 'x')", "operators": "m.ops.aten.add.Tensor(a, b)", "dtype": "m.bitwise_and(a, a)",
    "linalg": "m.linalg.inv(m.zeros(2, 2))", "vmap": "m.vmap(lambda x: x.item())(a)",
    "in vmap": "m.vmap(lambda x: m.matmul(x, b))(a)", "backward": "(p * 2).backward()", "grad": "m.func.grad(lambda x: x @ b)(a)",
    "autograd.grad": "m.autograd.grad(p.sum(), a)", "out=": "m.add(a, a, out=m.ones(2, 3, dtype=m.int64))", "sum": "a.sum(7)",
    "a loss": "F.cross_entropy(a, b)", "a check of ours": "F.dropout(a, 2.0)", "a rare function": "F.max_pool3d(a, 2)",
    "a module": "m.nn.Linear(3, 4)(b)", "data": "m.tensor([[1], [1, 2]])", "a device": "a.to('nowhere')", "a name": "m.nosuch",
    "a member": "m.nn.nosuch", "a setting": "m.config.set(nosuch=1)",
    "a plugin": "m.plugins.activate('nosuch')", "a key": "m.state.include('nosuch')", "a device's name": "m.device('nowhere')",
    "a constructor": "m.nn.Linear('a', 1)", "an optimiser": "m.optim.SGD([p], lr=-1)",
    "a closure": "m.optim.SGD([p]).step(3)", "a closure, by name": "m.optim.LBFGS([p]).step(closure='x')",
    "a hook": "hooked()", "a kernel": "op(a)", "item": "a.item()", "bool": "bool(a)", "einsum": "m.einsum('ij,jk', a, b)",
    "recorded": "p + b", "a factory": "m.ones(-1)", "numpy": "numpy.asarray(p)", "a copy": "copy.deepcopy(p * 2)",
    "in": "'x' in a", "a format": "format(a, 'd')", "complex": "complex(a)", "dlpack": "numpy.from_dlpack(p)",
    "a namespace": "m.ops.nosuch", "an operator's name": "m.ops.aten.nosuch", "an overload's name": "m.ops.aten.exp.nosuch",
    "a version": "a.__array_namespace__(api_version='1')",
}  # fmt: skip
PROGRAM = """
import copy, json, numpy, sys, traceback
import turnout as m
from turnout.nn import functional as F
a, b, p = m.ones(2, 3), m.ones(2, 4), m.ones(2, 3, requires_grad=True)
def fails(*_): raise RuntimeError("of the program")
def hooked():
    x = m.ones(2, requires_grad=True)
    x.register_hook(fails)
    x.sum().backward()
op = m.library.custom_op("tracebacks::fails", fails, mutates_args=(), schema="(Tensor x) -> Tensor")
def frames(error):
    while error is not None:
        yield from [f"{f.filename}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
found = {}
for kind, call in json.load(sys.stdin).items():
    for which in ("first", "second"):
        try:
            eval(compile(call, "<program>", "eval"))
        except Exception as error:
            shown = list(frames(error))
            theirs = [frame for frame in shown if not frame.startswith(("<program>", "<string>", copy.__file__))]
            if theirs or ("of the program" in str(error)) != any("fails" in frame for frame in shown):
                found[f"{kind}, {which}"] = shown
        else:
            found[kind] = ["no error"]
print(json.dumps(found))
"""


def shown(**variables: str) -> dict[str, list[str]]:
    """The frames of each error that shows others than the program's, or lacks one of these."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(KINDS), capture_output=True, text=True, check=True,
        env={**os.environ, **variables},
    )  # fmt: skip
    found: dict[str, list[str]] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("speed", ["on", "off"])
def test_no_error_shows_a_frame_of_turnout_unless_all_are_asked_for(speed: str) -> None:
    assert shown(TURNOUT_SPEED=speed) == {}
    full = shown(TURNOUT_SPEED=speed, TURNOUT_TRACEBACK="full")
    assert {name.rpartition(",")[0] for name in full} == set(KINDS)


# As pytest and IPython run a program, in which each line fails twice.
BY_PYTEST = """
import copy, numpy, pytest
import turnout as m
from turnout.nn import functional as F
a, b, p = m.ones(2, 3), m.ones(2, 4), m.ones(2, 3, requires_grad=True)
CALLS = {calls!r}
@pytest.mark.parametrize("again", [0, 1])
@pytest.mark.parametrize("call", CALLS)
def test_call(call, again):
    eval(call)
"""
BY_IPYTHON = """
import contextlib, io, json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor", xmode="Context")
shell.run_cell("import copy, numpy, turnout as m; from turnout.nn import functional as F")
shell.run_cell("a, b, p = m.ones(2, 3), m.ones(2, 4), m.ones(2, 3, requires_grad=True)")
for call in json.load(sys.stdin):
    for _ in range(2):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            assert not shell.run_cell(call).success, call
        print(out.getvalue())
"""
FRAME_OF_OURS = re.compile(r"[^\n]*(?:core|plugins/\w+)/src/turnout[^\n]*|[^\n]*<turnout[^\n]*")
ALONE = {kind: call for kind, call in KINDS.items() if kind not in ("a hook", "a kernel")}


@pytest.mark.parametrize("speed", ["on", "off"])
def test_pytest_shows_the_line_of_the_program_alone(speed: str, tmp_path: Path) -> None:
    (tmp_path / "test_calls.py").write_text(BY_PYTEST.format(calls=list(ALONE.values())), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--tb=long", "test_calls.py"]
    run = subprocess.run(
        command, cwd=tmp_path, env=clean(TURNOUT_SPEED=speed), capture_output=True, text=True, check=False, timeout=200
    )
    assert f"{2 * len(ALONE)} failed" in run.stdout, run.stdout
    assert FRAME_OF_OURS.findall(run.stdout) == []
    full = {**clean(TURNOUT_SPEED=speed), "TURNOUT_TRACEBACK": "full"}
    run = subprocess.run(
        [*command, "-k", "matmul"], cwd=tmp_path, env=full, capture_output=True, text=True, check=False, timeout=200
    )
    assert FRAME_OF_OURS.findall(run.stdout)


@pytest.mark.parametrize("speed", ["on", "off"])
def test_ipython_shows_the_line_of_the_program_alone(speed: str, tmp_path: Path) -> None:
    for traceback, shows, programs in (("short", False, [*ALONE.values()]), ("full", True, [*ALONE.values()][:5])):
        variables = {"TURNOUT_SPEED": speed, "TURNOUT_TRACEBACK": traceback, "IPYTHONDIR": str(tmp_path)}
        run = subprocess.run(
            [sys.executable, "-c", BY_IPYTHON], input=json.dumps(programs), env={**os.environ, **variables},
            capture_output=True, text=True, check=False, timeout=200,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        assert run.stdout.count("Error") > 2 * len(programs) - 5
        assert bool(FRAME_OF_OURS.findall(run.stdout)) == shows, run.stdout


# Functions that show a frame of their own for wrong arguments: small ones, which are called inside others.
LEFT = {
    "check", "promote_types", "result_type", "set_default_dtype", "bfloat16", "bool", "byte", "cdouble", "cfloat", "char", "cpu",
    "can_cast", "cuda", "double", "float", "half", "int", "is_alias_of", "is_contiguous", "long", "new_tensor", "pin_memory",
    "register_hook", "register_post_accumulate_grad_hook", "shares_memory_with", "short", "to_device",
}  # fmt: skip
EVERY = """
import turnout as m, inspect, traceback
odd, t = type("Odd", (), {})(), m.ones(2, 3)
plain = {*dir(object()), "__deepcopy__", "__setstate__", "__turnout_dispatch__"}
places = [m, t, m.nn.functional, m.linalg, m.fft, m.special, m.signal.windows, m.func, m.autograd, m.masked]
calls = [(odd,), (t, odd), (odd, odd), (t, t, odd), (t, 99)]
calls += [(), ("text",), (3.5, 1), ([1], 2, 2), (t, "text", t), (t,) * 12]
def bound(function, args):
    try:
        inspect.signature(function).bind(*args)
    except TypeError:
        return False
    return True
found, unnamed, tried = set(), set(), 0
for place in places:
    for name in dir(place):
        special = place is t and name[:2] == "__" == name[-2:] and name not in plain
        if (name[0] == "_" and not special) or name in ("save", "load", "set_gmask", "triton_op", "wrap_triton"):
            continue
        try:
            function = getattr(place, name)
        except Exception:  # a property that asks for another tensor
            continue
        if not callable(function) or isinstance(function, type):
            continue
        for args in calls:
            try:
                function(*args)
            except m.errors.TurnoutError as error:
                tried += 1
                if len(traceback.extract_tb(error.__traceback__)) > 1:
                    found.add(name)
            except TypeError as error:
                if not bound(function, args) and len(traceback.extract_tb(error.__traceback__)) > 1:
                    unnamed.add(f"{name}: {error}")
            except (AttributeError, AssertionError, LookupError, UnboundLocalError) as error:
                unnamed.add(f"{name}: {error}")
            except Exception:
                pass
print(*sorted(unnamed), sep=chr(10), end=chr(10) * 2)
print(tried, *sorted(found))
"""


def test_wrong_arguments_show_no_frame_of_turnout_in_nearly_all_public_functions() -> None:
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", EVERY], capture_output=True, text=True, check=True)
    unnamed, _, counted = run.stdout.strip().rpartition("\n\n")
    tried, *found = counted.split()
    assert not unnamed, "an error that does not name the argument, or shows where Turnout met with it"
    assert int(tried) > 3000
    assert set(found) <= LEFT


# Classes that only Turnout makes: each method of `turnout.keys` and `turnout.operators` trusts its caller.
INTERNAL = (
    "turnout.keys.", "turnout.operators.", "turnout.guards.", "turnout.registry.", "turnout.schema.", "turnout.devices.",
    "turnout.autograd.Handle",
)  # fmt: skip
OF_CLASSES = """
import inspect, sys, traceback, types
import turnout as m
from turnout.plugins import is_ours
odd, p = type("Odd", (), {})(), m.nn.Parameter(m.ones(2, 3))
classes, seen = {}, set()
def walk(place, path):
    for name in sorted(dir(place)):
        try:
            value = None if name[0] == "_" else getattr(place, name)
        except Exception:  # a device that is not there
            continue
        if isinstance(value, types.ModuleType) and is_ours(value.__name__) and value.__name__ not in seen:
            seen.add(value.__name__)
            walk(value, f"{path}.{name}")
        elif isinstance(value, type) and is_ours(value.__module__) and not issubclass(value, BaseException):
            classes.setdefault(value, f"{path}.{name}")
walk(m, "turnout")
found, tried = {}, [0, 0]
def attempt(which, label, function, *args, **kwargs):
    try:
        made = function(*args, **kwargs)
        return next(made, None) if inspect.isgenerator(made) else made
    except Exception as error:
        # What a signature does not take, what Turnout says, and what code raises that meets with a wrong argument.
        about = isinstance(error, (m.TurnoutError, NotImplementedError, TypeError, AttributeError, ValueError))
        tried[which] += about
        frames = [f.f_globals.get("__name__", "") for f, _ in traceback.walk_tb(error.__traceback__)]
        if (about or which == 0) and any(is_ours(name) for name in frames):
            found.setdefault(label, f"{type(error).__name__}: {str(error).splitlines()[:1]} {args} {frames}")
ONE = [(), ("x",), (odd,), ("a", 1), (1, 2, 3), (p,), ([p],), (-1,), (odd, odd, odd), ({},), (None,), (lambda: 1,), ("x",) * 12]
ONE += [(3, -2), ([],), ([p], -1), (m.ones(2), "a", 7.5)]
sgd = m.optim.SGD([p], lr=0.1)
MADE = [(), (3,), (3, 2), (2, 2, 2), (sgd,), (sgd, 1), (sgd, [1]), (sgd, lambda e: 1.0), ([p],), (m.ones(2),), ("cpu",)]
MADE += [(m.nn.Linear(3, 2),), ({},), ([1, 2, 3],), ([1, 2, 3], 2, True), (lambda x: x,), (4, 2), (8, 2, 1), (1, [5], [6])]
TWO = [("x",), (odd,), ("x", odd), (odd, odd, odd), (99,), (-1, "x"), ([odd],), ({"a": 1},), (None,), (1,) * 12]
def make(cls):
    for args in MADE:
        try:
            return cls(*args)
        except Exception:
            pass
done = set()
for cls, path in sorted(classes.items(), key=lambda each: each[1]):
    if path.startswith(tuple(sys.argv[1].split())):
        continue
    for args in ONE:
        for named in ({}, {"nosuch": 1}, {"lr": -1}, {"device": "nowhere"}):
            attempt(0, path, cls, *args, **named)
    made = make(cls)
    if made is None or issubclass(cls, m.Tensor):
        continue
    for name in dir(cls):
        by_syntax = name in ("__call__", "__getitem__", "__setitem__")
        if name in ("save", "sets", "left", "forward") or (name[0] == "_" and not by_syntax):
            continue
        method = getattr(cls, name, None)
        if callable(method) and not isinstance(method, type) and method not in done:
            done.add(method)
            for args in TWO:
                if name in ("load_state_dict", "step"):  # which keep what they are given
                    made = make(cls)
                attempt(1, f"{path}.{name}", getattr(made, name), *args)
for label, text in found.items():
    print(label, text)
print(len(classes), *tried)
"""
# Methods that Turnout calls, and those of registrations, which plugins call while they are activated; and a few that small calls
# use, or whose arguments may be of any class.
LEFT_OF_CLASSES = {
    "turnout.FakeMode.at", "turnout.FakeMode.item", "turnout.Generator.reserve", "turnout.Size.__getitem__",
    *(f"turnout.SymInt.{name}" for name in ("computed", "index_of", "is_exactly")), "turnout.autograd.Node.__call__",
    "turnout.nn.AdaptiveAvgPool1d.state_dict", "turnout.state.StateChange.run",
    *(f"turnout.utils.data.{name}.__getitem__" for name in ("StackDataset", "Subset")),
    *(f"turnout.plugins.Registrations.{name}" for name in ("backend", "impl_table", "undo_to")),
    "turnout.DispatchMode.dispatch", "turnout.FakeMode.device", "turnout.FakeMode.generator", "turnout.autograd.Node.backward",
    *(f"turnout.plugins.Registrations.{name}" for name in ("alias", "define", "fallback", "fallthrough", "functionality")),
    "turnout.plugins.Registrations.impl", "turnout.table.Plan",
}  # fmt: skip


def test_wrong_arguments_show_no_frame_of_turnout_in_any_public_class() -> None:
    command = [sys.executable, "-W", "ignore", "-c", OF_CLASSES, " ".join(INTERNAL)]
    *found, counted = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    classes, constructors, methods = map(int, counted.split())
    assert classes > 300
    assert constructors > 3000
    assert methods > 1000
    assert [line for line in found if line.split()[0] not in LEFT_OF_CLASSES] == []
