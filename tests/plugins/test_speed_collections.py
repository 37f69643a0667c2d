"""A collection in the middle of a compiled call, whose finaliser gives a tensor of the call other memory and another record."""

from __future__ import annotations

import subprocess
import sys

import pytest

CALLS = ("t[0]", "t.split(1)", "turnout.cat([t, t])", "(w * t).sum()", "t.add_(1)")
PROGRAM = """
import gc, sys, turnout

class Cycle:
    def __init__(self): self.me = self
    def __del__(self): t.data = turnout.zeros(3, 4)

call = compile(sys.argv[1], "call", "eval")
w = turnout.ones(3, 4, requires_grad=True)
turnout.ones(4, 4)[1:]
gc.set_threshold(2)
for n in range(2000):
    t = turnout.ones(4, 4)[1:]
    gc.disable(); Cycle(); gc.enable()
    eval(call)
"""


@pytest.mark.parametrize("call", CALLS)
def test_what_a_call_has_borrowed_stays_while_a_finaliser_replaces_it(call: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, call], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
