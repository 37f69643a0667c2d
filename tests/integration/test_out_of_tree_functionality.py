"""A functionality installed with pip from outside, a call counter above Autograd: core knows nothing of it."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from installed import Environment

PRELUDE = """
import turnout
from turnout import plugins
"""


def answer(environment: Environment, code: str, **options):
    """What `code` leaves in `found`; a warning is an error."""
    return environment.answer(f"{PRELUDE}\n{code}", flags=("-W", "error"), **options)


def test_tensors_made_before_it_was_activated_are_counted_after(working):
    code = """
x = turnout.ones(2, requires_grad=True)
y = x * 3
keys = [x.keys, y.keys]
active = "CallCounter" in turnout.registry.REGISTRY.fallbacks
from fixture_counter import counting
with counting() as counts:
    z = x + y
    forward = dict(counts)
    z.sum().backward()
assert keys == [x.keys, y.keys]
found = [active, forward, counts["aten::sum"], x.grad.tolist()]
"""
    assert answer(working, code) == [False, {"aten::add.Tensor": 1}, 1, [4.0, 4.0]]


def test_the_kit_proves_it_in_its_own_context(working):
    context = "--turnout-key-context=CallCounter=fixture_counter:counting"
    printed = working.kit("--turnout-key=CallCounter", context, "-k", "relu or sort or mm or state or deactivation")
    assert "turnout: kernels of CallCounter ran for" in printed


# Each comes first in one and last in one, and each before and after each other one.
ORDERS = [
    ("cpu", "numpy_twin", "autograd", "counter"),
    ("numpy_twin", "cpu", "counter", "autograd"),
    ("autograd", "counter", "cpu", "numpy_twin"),
    ("counter", "autograd", "numpy_twin", "cpu"),
]
# Each order in a fork of an interpreter that has imported the modules of all plugins that can be used, and activated none.
PERMUTATION = """
import hashlib, importlib, json, os, sys
from fixture_counter import counting
for record in plugins.all_plugins():
    if record.state != "unavailable":  # its module imports what is not there
        importlib.import_module(record.manifest.module)
for ORDER in ORDERS:
    sys.stdout.flush()
    if not (child := os.fork()):
        break
    assert os.waitpid(child, 0)[1] == 0, ORDER
else:
    sys.exit()
for name in ORDER:
    plugins.activate(name)
plugins.deactivate(ORDER[0], with_dependents=True)
plugins.activate(ORDER[0])

def work(device):
    turnout.manual_seed(1)
    x = turnout.randn(4, 3, device=device).requires_grad_()
    w = turnout.randn(3, 2, device=device).requires_grad_()
    with counting() as counts:
        loss = turnout.nn.functional.cross_entropy(x @ w, turnout.tensor([0, 1, 1, 0], device=device))
        loss.backward()
    return loss.item(), x.grad.tolist(), w.grad.tolist(), dict(counts)

from turnout.registry import REGISTRY
keys = REGISTRY.keys.universe.runtime_keys
turnout.ops.aten.add.Tensor.table()  # activates every plugin
first, made = {}, hashlib.sha256()
with REGISTRY.lock:
    for name, op in sorted(REGISTRY.operators.items()):
        # A table is a function of the kernels that win; those of Autograd are made for each operator.
        all_keys = first.setdefault(frozenset(op.kernels), name) == name
        entries = [(key, op.entry(key)) for key in (keys if all_keys else ("AutogradCPU", "AutogradTwin"))]
        kernels = [(key, REGISTRY.winner(op, key, stack)) for key, stack in sorted(op.kernels.items()) if stack]
        kernels += [((key, entry.reason), entry.kernel) for key, entry in entries if entry is not None]
        made.update(repr((name, [(key, kernel.origin, kernel.name) for key, kernel in kernels])).encode())
print(json.dumps([list(keys), work("cpu"), work("twin"), len(first), made.hexdigest()]))
"""


def rounded(found: Any) -> Any:
    """Numbers and lists of them, to the sixth digit; anything else as it is."""
    if isinstance(found, list):
        return [rounded(each) for each in found]
    return round(found, 6) if isinstance(found, float) else found


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_neither_tables_nor_results_depend_on_the_order_of_activation(working):
    done = working.run(f"{PRELUDE}ORDERS = {ORDERS}\n{PERMUTATION}", flags=("-W", "error"))
    assert done.returncode == 0, done.stderr
    first, *others = map(json.loads, done.stdout.splitlines())
    assert len(others) == len(ORDERS) - 1
    assert rounded(first[1]) == rounded(first[2])  # a device may have other kernels
    assert rounded(first[1])[3]["aten::matmul"] == 1  # what is counted, on both devices
    assert first[3] > 10  # sets of keys with kernels
    for order, other in zip(ORDERS[1:], others, strict=True):
        assert other == first, order
