"""Calls in which one allocation fails, each in its turn: afterwards all is as before, and nothing is reported as ignored."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

KINDS = {
    "function": "turnout.add(x, y)",
    "method": "x.exp().sum()",
    "operator": "turnout.ops.aten.mul(x, 2.0)",
    "recorded": "p * p + x",
    "backward": "(p * x).sum().backward(); p.grad = None",
    "grad": "turnout.autograd.grad((p @ p).sum(), p, create_graph=True)",
    "hooks": "(p * 2).register_hook(lambda g: g).remove()",
    "no_grad": "with turnout.no_grad(): p + 1",
    "enable_grad": "with turnout.no_grad(), turnout.enable_grad(): p + 1",
    "inference_mode": "with turnout.inference_mode(): x + 1",
    "autocast": "with turnout.autocast('cpu', dtype=turnout.bfloat16): x @ y",
    "vmap": "func.vmap(lambda a: a.sin().sum())(x)",
    "vmap with draws": "func.vmap(lambda a: a + turnout.rand(3), randomness='different')(x)",
    "func.grad": "func.grad(lambda a: a.sin().sum())(x)",
    "vjp": "func.vjp(turnout.sin, x)[1](y)",
    "jvp": "func.jvp(lambda a: (a * a).sum(), (x,), (y,))",
    "jacfwd": "func.jacfwd(turnout.sin)(x[0])",
    "hessian": "func.hessian(lambda a: (a ** 3).sum())(x[0])",
    "dual_level": "with forward_ad.dual_level(): forward_ad.make_dual(x, y).exp()",
    "functionalize": "func.functionalize(lambda a: a.clone().add_(1))(x)",
    "trace": "turnout.trace(lambda a: a + 1)(x)",
    "explain": "str(turnout.explain('aten::mul.Tensor', x, y))",
    "override": "with turnout.config.override({'strict': True}): turnout.ones(2)",
    "library": "made = turnout.library.Library('nomem', 'DEF')\ntry: made.define('f(Tensor x) -> Tensor'); "
    "made.impl('f', lambda x: x + 1, 'CPU')\nfinally: made._destroy()",
    "dispatch mode": "with Passing(): x + y",
    "fake mode": "with fake: turnout.ones(2, 3) @ turnout.ones(3, 2)",
    "out": "turnout.add(x, y, out=turnout.empty(3, 3))",
    "in place": "x.clone().mul_(2.0)",
    "view": "x.t()[0].unsqueeze(0).reshape(3)",
    "index": "x[index]; x.clone()[mask] = 0.0",
    "checkpoint": "turnout.utils.checkpoint.checkpoint(turnout.sin, p, use_reentrant=False).sum().backward(); p.grad = None",
    "save": "turnout.save(x, io.BytesIO())",
    "load": "turnout.load(io.BytesIO(saved))",
    # Last, and with another one open, for the first one makes all kernels again.
    "trace_dispatch": "outer or outer.append(turnout.trace_dispatch().__enter__())\nwith turnout.trace_dispatch(): x + y",
}
# Where CPython 3.11 itself crashes: in its compiler, or later for it. `explain` makes wrappers once more to ask for a path.
CRASHES = r"first\):\n.*in compile_function\n|in path_of\n"
PROGRAM = """
import faulthandler, io, json, sys, _testcapi
import turnout
from turnout import func, state
from turnout.autograd import forward_ad
from turnout.config.lock import OVERRIDES
from turnout.explanation import tracing
from turnout_aten.tensor.levels import GRAD, LEVELS
from turnout_autocast.contexts import SETTINGS
from turnout_autograd.duals.levels import ACTIVE
from turnout_autograd.engine.recorded_levels import PULLED
from turnout_autograd.hooks.packing import HOOKS
from turnout_functionalize.regions import REGION
from turnout_tracer.recording import RECORDING

class Passing(turnout.DispatchMode):
    def dispatch(self, op, ks, args):
        return op.redispatch(ks, *args)

def now():
    lists = [tuple(each.get()) for each in (state.DISPATCH, GRAD, LEVELS, OVERRIDES, state.MODES, SETTINGS, HOOKS, ACTIVE)]
    known = turnout.registry.REGISTRY.knows('nomem::f')
    return lists, PULLED.get(), REGION.get(), RECORDING.get(), [t._version for t in (x, y, p)], known, len(tracing._TRACES)

faulthandler.enable()
kinds, first, step = json.loads(sys.argv[1])
x, y, p = turnout.ones(3, 3), turnout.ones(3, 3).mul(2.0), turnout.ones(3, 3, requires_grad=True)
mask, index, fake = x > 0, turnout.tensor([0, 2]), turnout.FakeMode()
stream = io.BytesIO()
turnout.save(x, stream)
saved, ignored, outer = stream.getvalue(), [], []

def report(what):
    # CPython 3.11 allocates to close a generator that is let go of, 3.14 to let go of an object whose __dict__ was asked for.
    interpreter = repr(what.object).startswith("<generator") or str(what.err_msg).endswith("clearing an object managed dict")
    if not (interpreter and type(what.exc_value) is MemoryError):
        ignored.append((repr(what.object), repr(what.exc_value)))

sys.unraisablehook = report
for kind, text in kinds.items():
    code, quiet, at, first = compile(text, kind, "exec"), 0, first, 1
    for _ in range(3):
        exec(code)
    before = now()
    while quiet < 20 + 40 // step:  # as many calls in which nothing failed: it needs no more
        print(json.dumps([kind, at]), flush=True)
        try:
            _testcapi.set_nomemory(at, at + 1)
            exec(code)
            quiet += 1
        except MemoryError:
            quiet = 0
        except SystemError as error:  # CPython 3.11 itself loses the error of some instructions, of frames and of its compiler
            if "without" not in str(error):
                raise
            quiet = 0
        finally:
            _testcapi.remove_mem_hooks()
        p.grad = made = None
        if (after := now()) != before or ignored:
            print(json.dumps([kind, at, repr(before), repr(after), ignored]), flush=True)
            before = after
            ignored.clear()
        at += step
"""


# Crashes CPython 3.12.1 and 3.13.0, which let go of a function that there was no memory for.
PLAIN = """
import _testcapi

def f(x=1):
    def inner():
        return x
    return [inner() for _ in range(3)]

for at in range(1, 50):
    try:
        _testcapi.set_nomemory(at, at + 1)
        f()
    except MemoryError:
        pass
    finally:
        _testcapi.remove_mem_hooks()
"""


def wrong_after(step: int) -> list[list[object]]:
    """What is wrong after calls of all kinds, of which every `step`th allocation fails, and where the interpreter crashed."""
    found: list[list[object]] = []
    kinds, first = dict(KINDS), 1
    while kinds:
        given = json.dumps([kinds, first, step])
        ran = subprocess.run([sys.executable, "-c", PROGRAM, given], capture_output=True, text=True, check=False)
        lines = [json.loads(line) for line in ran.stdout.splitlines()]
        found += [line for line in lines if len(line) > 2]
        if ran.returncode == 0:
            break
        kind, first = lines[-1][0], lines[-1][1] + step
        if ran.returncode > 0 or not re.search(CRASHES, ran.stderr):
            found.append([*lines[-1], ran.returncode, ran.stderr])
        if ran.returncode > 0:
            break
        kinds = {name: kinds[name] for name in list(kinds)[list(kinds).index(kind) :]}
    return found


@pytest.mark.parametrize("step", [1, 100])
def test_state_is_as_before_whichever_allocation_fails(step: int) -> None:
    if subprocess.run([sys.executable, "-c", PLAIN], check=False).returncode < 0:
        pytest.skip("this Python crashes in plain functions when there is no memory for one")
    assert wrong_after(step) == []
