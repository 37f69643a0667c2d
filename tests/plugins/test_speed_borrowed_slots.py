"""Collections in the middle of compiled calls, whose finalisers replace what the slots of tensors, records and nodes hold.

CPython 3.11 collects where C allocates, later versions only where Python runs. So what C asks of a device's backend replaces too.
Freed memory is overwritten (PYTHONMALLOC=debug): what is read of it crashes or is wrong.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

# Every place that uses what it read of a slot after something that may run a finaliser: file and functions -> a call that goes
# there. `t`, `u`, `one` are tensors, `v` a view, `p` requires a gradient; `mask`, `at` are indices; `parts`, `order`, `every`
# are lists, `f` is a custom operator.
PLACES = {
    "facts.h shape_get": "t.shape",
    "facts.h dtype_get": "[x.dtype for x in every]",
    "wrapping.h wrap": "t + u",
    "arrays.h array_run, compute_array": "turnout.nn.functional.softplus(t), t.exp_()",
    "arrays.h write_many": "large.sub_(large2, alpha=0.5)",
    "outputs.h into_run": "turnout.exp(t, out=turnout.empty(4, 4))",
    "call.h as_ints": "t.permute(order)",
    "call.h kind_of": "turnout.ops.aten.sum(t, [Odd()])",
    "plans.h look_at_arguments, follow_plan, convert_arguments": "turnout.cat(parts), turnout.where(mask, t, 1.0), t.sum(0)",
    "views.h geometry_of, remembered_of, view_run": "t[0], t.unsqueeze(0)",
    "views.h storage_of": "leaf().detach(), leaf()[0], turnout.ones(4, 4).split(2)",
    "views.h record_view, chain_of, viewed_by": "v[0], v.t()",
    "views.h views_by": "v.split(1)",
    "views.h write_run, count_write": "v.copy_(u)",
    "records.h record_run, fill_node, edges_to, version_of": "p * t, p @ u, p.sum(1), p.clone()",
    "records.h shape_of": "p.sum()",
    "records.h saved_geometry": "p @ p",
    "composites.h is_other_dtype": "t.to(turnout.float64)",
    "composites.h inferred_sizes, run_ending": "t.reshape(2, -1), turnout.nn.functional.linear(t, u)",
    "conversions.h converted": "turnout.cat([t, t.double()])",
    "custom.h custom_run": "f(t)",
    "elements.h alias_run": "t.detach(), v.detach(), p.detach(), turnout.ops.aten.alias(t)",
    "elements.h copy_into_run": "t.copy_(u)",
    "elements.h number_run": "one.item()",
    "elements.h fill_where_run": "t.masked_fill(mask, 0.0)",
    "factories.h copy_run": "t.clone()",
    "factories.h factory_run": "turnout.zeros_like(t), t.new_zeros(3), turnout.rand(3)",
    "factories.h fill_run": "t.fill_(1.0), t.zero_()",
    "indexing.h get_views": "t[1:, None, 0]",
    "indexing.h index_list, set_items, number_like": "t[at], t.__setitem__(mask, 1.0), t.__setitem__(0, u[0])",
    "moves.h pick, put": "t[mask], t.index_put((at,), u[at])",
    "sweeps.h plain_root, spread, gather_gradients, take_turn": "((p + t) * p).sum().backward()",
    "sweeps.h sum_to": "(t + row).backward(u)",
    "sweeps.h transposed, turned, product_gradient": "(p @ u @ p).sum().backward()",
    "sweeps.h read_saved": "(p.exp() * p.sigmoid()).sum().backward()",
    "sweeps.h keep_first": "leaf().sum().backward()",
    "guards.h guard_run": "turnout.nn.functional.linear(p, u)",
    "handles.h call_or_method, call_of_operator": "turnout.ops.aten.add(t, u), f(u)",
    "_rules.c peel, rule_run, apply, wrap, shape_without": "vmap(lambda x: (x * t).sum() + x[0])(u), vmap(vmap(turnout.sin))(t)",
    "_rules.c push_at, innermost_level, tangent_of, attach_to, tangents_in": "jvp(lambda x: (x * x).sin().sum(), (t,), (u,))",
    "_rules.c tangent_of with columns": "jacfwd(lambda x: x * x.sum())(row), jacfwd(jacfwd(turnout.sin))(one)",
}
PROGRAM = """
import copy, faulthandler, gc, json, sys, numpy, turnout
from turnout.func import jacfwd, jvp, vmap

faulthandler.enable()
places = json.loads(sys.argv[1])

@turnout.library.custom_op("borrowed::f", mutates_args=())
def f(x: turnout.Tensor) -> turnout.Tensor:
    return x.clone()

class Meta(type):
    def __hash__(cls):
        replace()
        return 1

class Odd(metaclass=Meta):
    pass

def leaf():
    return turnout.ones(3, 4).mul(2.0).requires_grad_()

class Cycle:
    def __init__(self):
        self.me = self
    def __del__(self):
        if during:
            replace()
            Cycle()  # for the next collection

def other(value):
    if type(value) in (numpy.ndarray, dict):
        return value.copy()
    if type(value) is tuple and value:
        return tuple(list(value))
    if type(value) is int:
        return int(str(value))
    if type(value).__module__.startswith("turnout") and slots_of(value):
        made = object.__new__(type(value))
        for name in slots_of(value):
            if hasattr(value, name):
                object.__setattr__(made, name, getattr(value, name))
        return made
    return value

def slots_of(value):
    return [name for cls in type(value).__mro__ for name in cls.__dict__.get("__slots__", ()) if not name.startswith("__")]

def replace():
    global during, replaced
    if during and replaced - before < 1000:  # Python code of a call may bring a collection with each object
        during, replaced = False, replaced + 1
        held = []  # freed at the end: nothing made here may lie where it was
        for value in gc.get_objects():
            if type(value).__module__.startswith("turnout"):
                for name in slots_of(value):
                    try:
                        held.append(getattr(value, name))
                        object.__setattr__(value, name, other(held[-1]))
                    except Exception:
                        pass
        for each in lists:
            each.clear()
        during = True

def asked(owner, name):
    value = getattr(owner, name)
    setattr(type(owner), name, property(lambda self: (replace(), value)[1]))

during, replaced, before, lists, missed = False, 0, 0, [], []
backend = turnout.ones(1).device.backend
dtypes = [getattr(turnout, f"{kind}{size}") for kind in ("int", "uint", "float") for size in (16, 32, 64)]
for name in ("new_array", "view_array", "keys", "native", "indexed", "place"):
    asked(backend, name)
gc.disable()
for place, call in places.items():
    run = eval(f"lambda: ({call})")  # its frame allocates nothing that is collected
    for threshold in (0, 1, 2):  # 0: once without collections
        gc.freeze()
        t, u, one, v = turnout.ones(4, 4), turnout.ones(4, 4).mul(3.0), turnout.ones(1), turnout.ones(5, 4)[1:]
        row, p = turnout.ones(4, requires_grad=True), turnout.ones(4, 4, requires_grad=True)
        mask, at, large, large2 = t > 0, turnout.tensor([1, 0]), turnout.ones(100, 100), turnout.ones(100, 100)
        every = [turnout.ones(2, dtype=dtype) for dtype in dtypes]  # more than are kept
        parts, order, results, during = [t, u], [1, 0], [], threshold > 0
        replace()  # what only slots hold
        lists, before = [parts, order], replaced
        Cycle()
        print(place, threshold, flush=True)
        if threshold:
            gc.set_threshold(threshold)
            gc.enable()
        for _ in range(5 if threshold else 1):
            try:
                results.append(run())  # kept: what is freed again brings no collection nearer
            except Exception:
                pass  # as far as Python knows, the call has lost its arguments
        during = False
        gc.disable()
        if threshold and replaced == before:
            missed.append((place, threshold))
print("missed", missed)
"""


def test_what_compiled_calls_have_read_of_slots_stays_while_finalisers_replace_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(PLACES)],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONMALLOC": "debug", "TURNOUT_SPEED": "on"},
    )  # fmt: skip
    lines = ran.stdout.splitlines()
    assert (ran.returncode, lines[-1]) == (0, "missed []"), (lines[-1], ran.stderr)


# Every kernel that these calls have made, with too few and too many arguments: memory behind the last one is no object's.
COUNTS = """
import faulthandler, gc, turnout

faulthandler.enable()

x, p = turnout.ones(3), turnout.ones(3, 3, requires_grad=True)
for call in (
    "turnout.eye(3), turnout.eye(3, 2), turnout.arange(3), turnout.linspace(0, 1, 3), turnout.zeros(3), turnout.rand(2)",
    "x.clone(), x.double(), x.copy_(x), x.fill_(1.0), x.masked_fill(x > 0, 1.0), x[0].item(), x.detach(), turnout.zeros_like(x)",
    "p.t(), p[0], p.split(1), p.reshape(9), turnout.cat([p, p]), x[turnout.tensor([0])], x.index_put((x.long(),), x)",
    "(p @ p + 1).exp().sum().backward(), x.add_(1), turnout.exp(x, out=turnout.empty(3)), p.max(1), x.sort(), x.topk(2)",
    "turnout.nn.functional.linear(p, p), turnout.nn.functional.softplus(x), turnout.where(x > 0, x, 1.0)",
):
    eval(call)
kernels = [o for o in gc.get_objects() if "turnout_speed" in (name := type.__repr__(type(o))) and "Kernel" in name]
refused = 0
for kernel in kernels:
    for value in (x, None, 3):
        for count in range(12):
            try:
                kernel(x.keys, *[value] * count)
            except Exception:
                refused += 1
print(len(kernels), refused)
"""


def test_a_kernel_that_gets_another_number_of_arguments_refuses_the_call():
    ran = subprocess.run(
        [sys.executable, "-c", COUNTS],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONMALLOC": "debug", "TURNOUT_SPEED": "on"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    kernels, refused = map(int, ran.stdout.split())
    assert kernels > 50, "the program finds the kernels"
    assert refused > 20 * kernels
