"""explain, traces, modes and subclasses where gradients are recorded: the layers of a call as they really are."""

from __future__ import annotations

import pytest

import turnout
from turnout import Tensor


@pytest.fixture
def x():
    return turnout.tensor([1.0, 2.0, 3.0]).requires_grad_()


def path(log):
    """The calls of a trace as (depth, key, operator)."""

    def below(calls, depth):
        for call in calls:
            yield depth, call.key, call.op
            yield from below(call.calls, depth + 1)

    return list(below(log.calls, 0))


# A call -> its layers, where x requires a gradient, y is made of it, and z is plain.
PATHS = {
    "x * x": [(0, "AutogradCPU", "aten::mul.Tensor"), (1, "CPU", "aten::mul.Tensor")],
    "z * z": [(0, "CPU", "aten::mul.Tensor")],
    "y.add_(x)": [
        (0, "AutogradCPU", "aten::add_.Tensor"),
        (1, "ADInplaceOrView", "aten::add_.Tensor"),
        (2, "CPU", "aten::add_.Tensor"),
    ],
}


@pytest.mark.parametrize("call", PATHS)
def test_a_call_goes_from_autograd_by_the_count_of_writes_to_the_backend_and_a_plain_one_there_at_once(call, x):
    names = {"x": x, "y": x * 1, "z": turnout.ones(3)}
    with turnout.trace_dispatch() as log:
        eval(call, names)
    assert path(log) == PATHS[call]


def test_explain_foretells_the_path_that_the_trace_records(x):
    foretold = [step.key for step in turnout.explain(turnout.mul, x, x).path]
    with turnout.trace_dispatch() as log:
        turnout.mul(x, x)
    assert foretold == [key for _, key, _ in path(log)]


def test_explain_follows_a_factory_to_the_backend_of_its_device():
    for options, backend in (({}, "CPU"), ({"device": "meta"}, "Meta")):
        assert [s.key for s in turnout.explain(turnout.zeros, 2, 3, **options).path] == ["BackendSelect", backend]


def test_the_work_of_backward_is_traced_too(x):
    y = x.sin().sum()
    with turnout.trace_dispatch() as log:
        y.backward()
    assert any(key == "CPU" and kernel.startswith("cos") for key, kernel in log.counts())
    assert x.grad.tolist() == x.cos().tolist()


def test_tracing_changes_no_result_and_no_later_call(x):
    before = (x * x).tolist()
    with turnout.trace_dispatch():
        during = (x * x).tolist()
    assert before == during == (x * x).tolist()


class Log(turnout.DispatchMode):
    def __init__(self):
        self.names = []

    def dispatch(self, op, ks, args):
        self.names.append(op.qualified_name)
        return op.redispatch(ks, *args)


def test_what_a_mode_passes_on_is_differentiated(x):
    mode = Log()
    with mode:
        y = (x * x).sum()
    assert mode.names == ["aten::mul.Tensor", "aten::sum"]
    y.backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_a_mode_stands_below_autograd_and_sees_no_recording(x):
    seen = []

    class Keys(turnout.DispatchMode):
        def dispatch(self, op, ks, args):
            seen.append(turnout.DispatchKeySet(ks).highest_priority())
            return op.redispatch(ks, *args)

    with Keys():
        x * x
    assert seen == ["ADInplaceOrView"]


def test_a_mode_sees_factories_and_writes():
    mode = Log()
    with mode:
        turnout.zeros(2).add_(1)
    assert mode.names[0] == "aten::zeros"
    assert mode.names[-1] in ("aten::add_.Scalar", "aten::add_.Tensor")


class Wrapped(Tensor):
    seen: list[str] = []

    @classmethod
    def __turnout_dispatch__(cls, op, ks, args):
        cls.seen.append(op.qualified_name)
        result = op.redispatch(ks, *args)
        return turnout.as_subclass(result, cls) if isinstance(result, Tensor) else result


def test_gradients_flow_through_a_subclass_made_of_a_tracked_tensor(x):
    Wrapped.seen.clear()
    y = turnout.as_subclass(x, Wrapped) * x
    assert type(y) is Wrapped
    assert Wrapped.seen == ["aten::mul.Tensor"]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_a_subclass_is_a_leaf_of_its_own():
    leaf = turnout.as_subclass(turnout.ones(2), Wrapped).requires_grad_()
    (leaf * 3).sum().backward()
    assert leaf.grad.tolist() == [3.0, 3.0]


def test_writing_to_a_subclass_is_seen_by_the_tensor_it_was_made_of():
    plain = turnout.ones(3)
    wrapped = turnout.as_subclass(plain, Wrapped)
    wrapped[1:].mul_(5)
    assert plain.tolist() == [1.0, 5.0, 5.0]
    assert plain._version == wrapped._version == 1


def test_a_view_of_a_subclass_is_one_and_knows_its_base():
    base = turnout.as_subclass(turnout.ones(3), Wrapped)
    view = base[1:]
    assert type(view) is Wrapped
    assert view._base is base
