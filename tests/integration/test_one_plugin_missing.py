"""Environments in which one of the optional plugins is not installed: the others work, and asking for it names its package."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from installed import Environment, Without
from workspace import ROOT

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the environments are made of symbolic links")

ASKED = {
    "autocast": "with turnout.autocast('cpu'): pass",
    "batched": "turnout.vmap(turnout.exp)(x)",
    "functionalize": "turnout.func.functionalize(turnout.exp)(x)",
    "tracer": "turnout.trace(turnout.exp)(x)",
    "cuda": "turnout.ones(2, device='cuda')",
    "opencl": "turnout.ones(2, device='opencl')",
}
USED = """
import turnout

x = turnout.ones(2, 3, requires_grad=True)
y = turnout.ones(3, 2)
missing = MISSING
(x @ y).sum().backward()
assert x.grad.tolist() == [[2.0] * 3] * 2
assert turnout.ones(2, device="meta").exp().shape == (2,)
if missing != "autocast":
    with turnout.autocast("cpu"):
        assert (x @ y).dtype is turnout.bfloat16
if missing != "batched":
    assert turnout.vmap(lambda row: row @ y)(x).tolist() == [[3.0, 3.0]] * 2
if missing != "functionalize":
    assert turnout.func.functionalize(lambda a: a.clone().mul_(2))(y).tolist() == [[2.0] * 2] * 3
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
import json, turnout

x, y = turnout.ones(2, 3, requires_grad=True), turnout.ones(2, 3)
ACTIVATE
with turnout.trace_dispatch() as log:
    turnout.cat([x @ y.t(), x @ x.t()]).exp()
calls = [(call.op, call.key, call.kernel) for call in log.walk()]
print(json.dumps([calls, str(turnout.explain(turnout.matmul, x, y.t())), str(turnout.explain(turnout.add, y, y))]))
"""
ENTERED = {
    "autocast": "with turnout.autocast('cpu'): x @ y.t()",
    "batched": "turnout.vmap(turnout.exp)(x)",
    "functionalize": "turnout.func.functionalize(turnout.exp)(y)",
    "tracer": "turnout.trace(turnout.exp)(y)",
    "opencl": "try: turnout.ones(2, device='opencl')\nexcept turnout.errors.PluginError: pass",
    "cuda": "try: turnout.ones(2, device='cuda')\nexcept turnout.errors.PluginError: pass",
}


@pytest.fixture(params=sorted(ASKED))
def missing(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def without(missing: str, tmp_path: Path) -> Environment:
    return Without(tmp_path, missing)


def test_asking_for_it_names_its_package_and_everything_else_works(without: Environment, missing: str) -> None:
    done = without.run(f"import turnout\nx = turnout.ones(2)\n{ASKED[missing]}")
    assert f"pip install -e {ROOT / 'plugins' / missing}" in done.stderr, done.stderr  # core is installed from this clone
    done = without.run(USED.replace("MISSING", repr(missing)), flags=("-W", "error"))
    assert done.returncode == 0, done.stderr


def test_calls_outside_of_it_take_the_hops_that_they_take_where_it_is_not_installed(
    without: Environment, missing: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    everything = Environment(tmp_path_factory.mktemp("all"))
    used = everything.answer(HOPS.replace("ACTIVATE", ENTERED[missing]))
    assert used == everything.answer(HOPS.replace("ACTIVATE", ""))
    assert used == without.answer(HOPS.replace("ACTIVATE", ""))


def test_none_of_them_is_imported_before_it_is_used(tmp_path: Path) -> None:
    code = (
        "import json, sys, turnout\n"
        "x = turnout.ones(2, requires_grad=True)\n"
        "x.exp().sum().backward()\n"
        "turnout.plugins.all_plugins(), turnout.explain(turnout.exp, x)\n"
        "print(json.dumps(sorted(m for m in sys.modules if m.startswith('turnout_') and '.' not in m)))"
    )
    imported = Environment(tmp_path).answer(code)
    assert not {f"turnout_{name}" for name in ASKED} & set(imported)
