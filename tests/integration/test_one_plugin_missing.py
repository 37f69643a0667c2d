"""Environments in which one of the optional plugins is not installed: the others work, and asking for it names its package."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from installed import Environment, Without
from workspace import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the environments are made of symbolic links")

# Plugin -> programs that need it.
ASKED = {
    "array_api": ["turnout.ones(2).__array_namespace__()", "from turnout.array_api import add"],
    "autocast": ["with turnout.autocast('cpu'): turnout.ones(2, 2) @ turnout.ones(2, 2)"],
    "batched": ["turnout.vmap(turnout.exp)(x)"],
    "functionalize": ["turnout.func.functionalize(turnout.exp)(x)"],
    "masked": ["turnout.masked.sum(x)", "from turnout.masked import sum"],
    "nn": ["turnout.nn.Linear(2, 2)", "from turnout.nn import Linear", "import turnout.utils.data"],
    "signal": ["turnout.signal.windows.hann(4)", "from turnout.signal.windows import hann"],
    "tracer": ["turnout.trace(turnout.exp)(x)", "import turnout.graphs"],
    "cuda": ["turnout.ones(2, device='cuda')", "from turnout.cuda import Stream"],
    "opencl": ["turnout.ones(2, device='opencl')"],
}
USED = """
x = turnout.ones(2, 3, requires_grad=True)
y = turnout.ones(3, 2)
(x @ y).sum().backward()
assert x.grad.tolist() == [[2.0] * 3] * 2
assert turnout.ones(2, device="meta").exp().shape == (2,)
if missing != "array_api":
    assert x.__array_namespace__().matmul(x, y).shape == (2, 2)
if missing != "autocast":
    with turnout.autocast("cpu"):
        assert (x @ y).dtype is turnout.bfloat16
if missing != "batched":
    assert turnout.vmap(lambda row: row @ y)(x).tolist() == [[3.0, 3.0]] * 2
if missing != "functionalize":
    assert turnout.func.functionalize(lambda a: a.clone().mul_(2))(y).tolist() == [[2.0] * 2] * 3
if missing != "masked":
    assert turnout.masked.mean(x, 1, mask=x > 0).tolist() == [1.0] * 2
if missing != "nn":
    assert turnout.nn.Linear(3, 2)(x).shape == (2, 2)
if missing != "signal":
    assert turnout.signal.windows.hann(3).tolist() == [0.0, 1.0, 0.0]
if missing != "tracer":
    graph = turnout.trace(lambda a: (a @ y).sum())(x)
    assert graph(x.detach() * 2).item() == 24.0
if missing != "opencl":
    try:
        turnout.plugins.require_device("opencl")
    except turnout.errors.PluginError as error:
        assert "no OpenCL device" in str(error) or "pyopencl" in str(error), error
    else:
        assert turnout.exp(turnout.zeros(3, device="opencl")).tolist() == [1.0] * 3
"""
HOPS = """
import turnout

def hops():
    x, y = turnout.ones(2, 3, requires_grad=True), turnout.ones(2, 3)
    with turnout.trace_dispatch() as log:
        turnout.cat([x @ y.t(), x @ x.t()]).exp()
    calls = [(call.op, call.key, call.kernel) for call in log.walk()]
    return [calls, str(turnout.explain(turnout.matmul, x, y.t())), str(turnout.explain(turnout.add, y, y))]

x = turnout.ones(2)
"""
TRIED = """
def tried():
    return [error_of(program) for program in asked]

def error_of(program):
    try:
        exec(program)
    except turnout.errors.TurnoutError as error:
        return str(error)
"""
WITHOUT = f"{HOPS}{TRIED}found = [hops(), tried()]\n{USED}"
EVERYTHING = f"""{HOPS}{TRIED}
before, said = hops(), {{}}
for name, asked in {ASKED}.items():
    said[name] = tried()
found = [before, hops(), said]
"""


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("all"))


@pytest.fixture(scope="module")
def hops(everything: Environment) -> list:
    """The hops of a few calls where all plugins are installed and none of these was used."""
    before, after, said = everything.answer(EVERYTHING)
    assert after == before
    assert {name for name, problems in said.items() if any(problems)} <= {"cuda", "opencl"}  # no driver may be here
    return before


@pytest.mark.parametrize("missing", ASKED)
def test_asking_for_it_names_its_package_and_everything_else_works_by_the_same_hops(
    missing: str, hops: list, tmp_path: Path
) -> None:
    names = f"missing, asked = {missing!r}, {ASKED[missing]!r}\n"
    found, said = Without(tmp_path, missing).answer(names + WITHOUT, flags=("-W", "error"))
    assert found == hops
    remedy = f"pip install -e {ROOT / 'plugins' / missing.replace('_', '-')}"  # core is installed from this clone
    assert [text for text in said if text is None or remedy not in text] == []


def test_none_of_them_is_imported_before_it_is_used(everything: Environment) -> None:
    code = (
        "import sys, turnout\n"
        "x = turnout.ones(2, requires_grad=True)\n"
        "x.exp().sum().backward()\n"
        "turnout.plugins.all_plugins(), turnout.explain(turnout.exp, x), turnout.device('cuda:0'), turnout.device('opencl:0')\n"
        "found = sorted(m for m in sys.modules if m.startswith(('turnout_', 'cupy', 'pyopencl')) and '.' not in m)"
    )
    assert not {"cupy", "pyopencl", *(f"turnout_{name}" for name in ASKED)} & set(everything.answer(code))
