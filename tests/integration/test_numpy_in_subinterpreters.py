"""Where NumPy refuses a second interpreter of a process, the error says so in one line of Turnout's, and core goes on."""

from __future__ import annotations

import re
import sys

import pytest

from subinterpreters import run_in_subinterpreter

REFUSED = (
    r"device 'cpu': the plugin cpu is unavailable\n"
    r"  why     numpy cannot be loaded in this subinterpreter: [^\n]+\n"
    r"  from    turnout-cpu [^\n]+\n"
    r"  to fix  use cpu in the main interpreter\n"
)
ASKED = """
import traceback, turnout
for _ in range(2):
    try:
        turnout.ones(2)
    except turnout.errors.PluginError as error:
        print(error)
        print(len(traceback.extract_tb(error.__traceback__)), error.__cause__, error.__suppress_context__)
turnout.library.define("own::f", "(int x) -> int")
turnout.library.impl("own::f", "CompositeExplicitAutograd", lambda x: x + 1)
print(turnout.ops.own.f(1))
"""


@pytest.mark.parametrize("speed", ["on", "off"])
def test_a_refusal_of_numpy_is_one_line_of_turnout_and_other_operators_work(speed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNOUT_SPEED", speed)
    printed, warned = run_in_subinterpreter(ASKED, before="import turnout; turnout.ones(2)", options=("-W", "error"))
    assert re.fullmatch(f"(?:{REFUSED}1 None True\n){{2}}2\n", printed), printed
    assert warned == ""


@pytest.mark.parametrize("module", ["turnout_speed._calls", "turnout_speed._rules", "turnout_kernels._native"])
def test_a_compiled_module_belongs_to_one_interpreter_which_may_import_it_again(module: str) -> None:
    pytest.importorskip(module, exc_type=ImportError)
    again = f"import sys, {module} as found; del sys.modules[{module!r}]; import {module} as again; print(again is found)"
    other = f"try:\n    import {module}\nexcept ImportError as error:\n    print(error)"
    printed, _ = run_in_subinterpreter(other, before=again)
    refusal = "another interpreter of this process has loaded it"
    if sys.version_info >= (3, 12):  # where they have GILs of their own, Python refuses
        refusal = f"module {module} does not support loading in subinterpreters"
    assert printed == f"False\n{refusal}\n"
