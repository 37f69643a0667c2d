"""The sweep of a backward pass in C: what it takes, what it leaves to the sweep's own text, and that nobody can tell."""

from __future__ import annotations

import gc
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest
from compiled_calls import blocks_left_by, taken, watched

import turnout
from outcomes import in_threads, refused
from turnout import autograd
from turnout.registry import REGISTRY
from turnout_autograd.engine import accumulation
from turnout_autograd.engine import sweep as engine
from turnout_autograd.errors import GradientError
from turnout_autograd.generation import kernel_source
from turnout_autograd.passes import roots
from turnout_conformance.cases import OperatorCase
from turnout_conformance.cases.differentiable import DIFFERENTIABLE, RANDOM, as_function, sample_calls
from turnout_conformance.cases.differentiable import leaves as leaves_in

_calls = pytest.importorskip("turnout_speed._calls", reason="turnout-speed was installed without a C compiler")


pytestmark = pytest.mark.usefixtures("compiled_path")


def test_the_functions_that_are_written_as_data_are_those_of_the_extension_module() -> None:
    assert {*kernel_source.FUNCTIONS, "scaled back"} == {*_calls.FORMULA_WORDS}


def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sweep and its roots in Python alone."""
    monkeypatch.setattr(engine, "running_ahead", lambda *_: None)
    monkeypatch.setattr(roots, "plain_root", lambda: None)
    monkeypatch.setattr(accumulation, "keeping_first", lambda _: None)


def leaves() -> tuple[turnout.Tensor, turnout.Tensor]:
    """Two leaves of one shape."""
    return turnout.tensor([0.5, -1.25, 2.0], requires_grad=True), turnout.tensor([1.5, 0.75, -0.5], requires_grad=True)


PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "a chain": (lambda x, y: (x * y).sum(), 2),
    "a saved result": (lambda x, y: x.exp().tanh().sum(), 3),
    "two ways from one tensor": (lambda x, y: ((x * 2) * (x + y)).sum(), 4),
    "two ways from a node": (lambda x, y: ((x * y).exp() - (x * y).sin()).sum(), 6),
    "a node with two edges to one": (lambda x, y: ((x * y) * 1.0 + x).sum(), 4),
    "one leaf twice": (lambda x, y: (x * x).sum(), 2),
    "a number in front": (lambda x, y: (2.0 - x / y).sum(), 3),
    "what is scaled": (lambda x, y: turnout.sub(x, y, alpha=-1).sum(), 2),
    "a factor that is not 1": (lambda x, y: turnout.sub(x, y, alpha=3).sum(), 1),
    "a broadcast of a node": (lambda x, y: (x * 2 + (y * 2).sum()).sum(), 4),
    "a leaf that is broadcast": (lambda x, y: (x * 2 * turnout.ones(2, 3)).sum(), 2),
    "a leaf of another dtype": (lambda x, y: (x.double() * 2).sum(), 2),
    "a formula that is more than calls": (lambda x, y: (x.pow(3) * y).sum(), 2),
    "several outputs": (lambda x, y: x.unbind()[0] * 2, 0),
    "a view": (lambda x, y: (x[1:] * 2).sum(), 2),
    "an empty tensor": (lambda x, y: (x[:0] * 2).sum(), 2),
    "a matrix product": (lambda x, y: (x.view(1, 3) @ y.view(3, 1)).sum(), 4),
    "a product with a transposed matrix": (lambda x, y: (x.view(1, 3) @ y.view(1, 3).t()).sum(), 5),
    "products and a sum for each row": (lambda x, y: turnout.addmm(y, x.view(3, 1), y.view(1, 3)).sum(), 4),
    "a product that is scaled": (lambda x, y: turnout.addmm(y, x.view(3, 1), y.view(1, 3), alpha=2).sum(), 3),
    "a layer": (lambda x, y: turnout.nn.functional.linear(x.view(1, 3), turnout.outer(y, y), y).sum(), 5),
    "what is expanded": (lambda x, y: (x.expand(2, 3) * y.view(3, 1).expand(3, 2).t()).sum(), 6),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_nodes_whose_formulas_are_calls_are_taken_and_others_left(name: str, monkeypatch: pytest.MonkeyPatch):
    function, count = PROGRAMS[name]
    x, y = leaves()

    def run() -> list[Any]:
        x.grad = y.grad = None
        function(x, y).backward()
        return [None if t.grad is None else (t.grad.dtype, t.grad.tolist(), t.grad.stride()) for t in (x, y)]

    assert taken(_calls.swept, run) == count
    ours = run()
    without(monkeypatch)
    assert run() == ours


@pytest.mark.parametrize("case", [case for case in DIFFERENTIABLE if case.op not in RANDOM], ids=str)
def test_the_gradients_of_each_operator_have_the_same_bits_without(case: OperatorCase, monkeypatch: pytest.MonkeyPatch):
    op = REGISTRY.find(f"aten::{case.op}")
    for args, kwargs in sample_calls(case):
        function, given = as_function(op, args, kwargs)
        if not given or not leaves_in(function(*given)):
            continue

        def run(function: Any = function, given: Any = given) -> list[Any]:
            inputs = [t.detach().requires_grad_() for t in given]
            made = function(*inputs)
            outs = [t for t in (made if isinstance(made, (tuple, list)) else [made]) if t.requires_grad]
            autograd.backward(outs, [turnout.full_like(t, 0.75) for t in outs])
            return [None if t.grad is None else (t.grad.dtype, t.grad.stride(), t.grad.numpy().tobytes()) for t in inputs]

        run()
        ours = run()
        with monkeypatch.context() as patch:
            without(patch)
            assert run() == ours


def hooked(x: Any, y: Any) -> Any:
    """A product whose node has a hook."""
    z = x * y
    z.grad_fn.register_hook(lambda *grads: None)
    return z


def packed(x: Any, y: Any) -> Any:
    with autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        return x * y


def retained(x: Any, y: Any) -> None:
    z = x * y
    z.retain_grad()
    z.sum().backward()
    assert z.grad.tolist() == [1.0, 1.0, 1.0]


def listened_to(x: Any, y: Any) -> None:
    z, seen = x * y, []
    z.register_hook(seen.append)
    z.sum().backward()
    assert len(seen) == 1


def anomalous(x: Any, y: Any) -> None:
    with autograd.detect_anomaly():
        (x * y).sum().backward()


# A pass, and how many nodes of it are taken.
PASSES: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "a hook on a node": (lambda x, y: hooked(x, y).sum().backward(), 1),
    "a hook on a tensor": (listened_to, 1),
    "a gradient that is retained": (retained, 1),
    "saved tensors that are packed": (lambda x, y: packed(x, y).sum().backward(), 1),
    "anomalies that are detected": (anomalous, 0),
    "a debugger": (lambda x, y: watched((x * y).sum().backward), 0),
    "a graph of the gradient": (lambda x, y: (x * y).sum().backward(create_graph=True), 0),
    "only what leads to x": (lambda x, y: autograd.grad((x * y).sum(), x), 0),
    "only some inputs": (lambda x, y: (x * y).sum().backward(inputs=[x]), 0),
    "a function's gradient": (lambda x, y: turnout.func.grad(lambda t: (t * t).sum())(x.detach()), 0),
    "two roots": (lambda x, y: autograd.backward([(x * y).sum(), (x * 2).sum()]), 4),
    "a gradient that is given": (lambda x, y: (x * y).backward(turnout.ones(3)), 1),
    "a tensor that is detached": (lambda x, y: (x * x.detach()).sum().backward(), 2),
}


@pytest.mark.parametrize("name", PASSES)
def test_what_is_special_about_a_node_or_a_pass_is_left_to_the_text(name: str):
    run, count = PASSES[name]
    x, y = leaves()
    assert taken(_calls.swept, lambda: run(x, y)) == count


def test_a_gradient_that_is_there_is_added_to_and_others_keep_theirs():
    x, y = leaves()
    (x * y).sum().backward()
    first = x.grad
    (x * y).sum().backward()
    assert x.grad is first
    assert first.tolist() == [3.0, 1.5, -1.0]
    assert y.grad.tolist() == [1.0, -2.5, 4.0]


def test_a_subclass_as_a_leaf_is_left_to_the_text():
    class Marked(turnout.Tensor):
        pass

    x, y = leaves()
    leaf = turnout.as_subclass(x.detach(), Marked).requires_grad_()
    assert taken(_calls.swept, lambda: (x * y).sum().backward()) == 2

    def run() -> None:
        leaf.grad = None
        (leaf * y).sum().backward()

    assert taken(_calls.swept, run) <= 1
    assert leaf.grad.tolist() == [1.5, 0.75, -0.5]


def test_a_freed_graph_and_a_saved_tensor_that_was_written_raise_from_the_text():
    x, y = leaves()
    w = y.detach().clone()
    for _ in range(2):
        z = (x * w).sum()
        z.backward()
        with turnout.config.override(traceback="full"), pytest.raises(GradientError) as freed:
            z.backward()
        assert [frame.name for frame in traceback.extract_tb(freed.value.__traceback__)][-3:] == ["sweep", "backward", "spoiled"]
        z, before = (x * w).sum(), x.grad.tolist()
        w.add_(1)
        refused(turnout.errors.AliasError, z.backward)
        assert x.grad.tolist() == before
        z = x.exp()
        with turnout.no_grad():
            z.mul_(2)
        refused(turnout.errors.AliasError, z.sum().backward)
    z = (x * w).sum()
    z.backward(retain_graph=True)
    z.backward()
    refused(GradientError, z.backward)


def test_saved_tensors_are_released_unless_the_graph_is_retained():
    x, y = leaves()
    for retain in (True, False):
        z = x * y
        node = z.grad_fn
        before = _calls.swept()
        z.sum().backward(retain_graph=retain)
        assert _calls.swept() > before
        assert (node.other is engine.FREED, node.self is engine.FREED) == (not retain, not retain)
        z = x.exp()
        z.sum().backward(retain_graph=retain)
        assert (z.grad_fn.result is engine.FREED_OUTPUT) == (not retain)


def test_a_kernel_of_the_user_runs_once_for_each_gradient():
    ran: list[int] = []

    def times(a: numpy.ndarray, b: numpy.ndarray) -> numpy.ndarray:
        ran.append(1)
        return numpy.multiply(a, b)

    x, y = leaves()
    assert taken(_calls.swept, lambda: (x * y).sum().backward()) == 2
    with turnout.library.Library("aten", "IMPL") as library:
        library.impl("mul.Tensor", times, "CPU", arrays=True, allow_override=True)
        z = (x * y).sum()
        z.backward(retain_graph=True)
        ran.clear()
        before = _calls.swept()
        z.backward()
        assert (len(ran), _calls.swept() - before) == (2, 1)
    assert taken(_calls.swept, lambda: (x * y).sum().backward()) == 2


def test_a_gradient_that_overflows_warns_no_more_than_the_text(monkeypatch: pytest.MonkeyPatch):
    def run() -> list[Any]:
        x = turnout.full((300,), 1e38, requires_grad=True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ((x * 1e-38).exp() * 1e38 * 10.0).sum().backward()
        return [x.grad.tolist(), [(str(w.message), w.filename) for w in caught]]

    assert taken(_calls.swept, run) == 5
    ours = run()
    without(monkeypatch)
    assert run() == ours


def test_a_long_chain_is_taken_in_parts_and_can_be_interrupted():
    x, _ = leaves()

    def chain(length: int) -> turnout.Tensor:
        z = x
        for _ in range(length):
            z = z * 1.0
        return z.sum()

    assert taken(_calls.swept, lambda: chain(250).backward()) == 249  # one in 101 is run by the text

    z, before = chain(300), x.grad.tolist()
    released: list[int] = []

    def stop(*_: Any) -> None:
        released.append(1)
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, stop)
    try:
        z.grad_fn.edges[0].register_hook(lambda *_: signal.raise_signal(signal.SIGINT))
        refused(KeyboardInterrupt, z.backward)
    finally:
        signal.signal(signal.SIGINT, previous)
    assert (x.grad.tolist(), released) == (before, [1])


def test_threads_that_sweep_into_one_leaf_add_all_their_gradients():
    x, y = leaves()

    def run() -> None:
        for _ in range(200):
            ((x * y).exp() * 0.0 + x * 2).sum().backward()

    in_threads(*[run] * 4)
    assert x.grad.tolist() == [1600.0] * 3


def test_passes_good_and_bad_leave_no_memory():
    x, y = leaves()

    def run() -> None:
        z = ((x * y).exp() + x * x - 2 * x).sum()
        z.backward()
        refused(GradientError, z.backward)
        turnout.sub(x, y, alpha=3).sum().backward()
        (x * 2 * turnout.ones(2, 3)).sum().backward()
        (x.double() * x).sum().backward()

    run()
    gc.collect()
    before = sys.getrefcount(x), sys.getrefcount(engine.FREED)
    assert blocks_left_by(run) < 250  # one object lost in each round would be 300
    assert (sys.getrefcount(x), sys.getrefcount(engine.FREED)) == before


def test_a_root_is_made_in_c_only_at_one_number_of_a_plain_tensor():
    make: Any = roots.plain_root()
    x, y = leaves()
    z = (x * y).sum()
    edge, one = make(z, 1)
    assert edge is z.grad_fn
    assert (one.tolist(), one.dtype, one.shape, one.requires_grad) == (1.0, turnout.float32, (), False)
    edge, one = make(leaf := turnout.tensor([[2.0]], dtype=turnout.float64, requires_grad=True), 1)
    assert edge is leaf
    assert (one.tolist(), one.dtype) == ([[1.0]], turnout.float64)
    half = turnout.tensor(2.0, dtype=turnout.float16, requires_grad=True)
    assert make(half, 1) is None or make(half, 1)[1].tolist() == 1.0
    complex_one = turnout.ones((), dtype=turnout.complex64, requires_grad=True)
    no_root = [x, z.detach(), x[0], complex_one, turnout.ones((), device="meta")]
    assert [make(t, 1) for t in no_root] == [None] * len(no_root)
    assert make(z, 2) is None
    half.backward()
    assert half.grad.tolist() == 1.0


def test_a_first_gradient_is_kept_in_c_only_where_it_is_plain_and_nobody_else_has_it():
    keep: Any = accumulation.keeping_first(accumulation.LEAF_LOCK)

    def kept(leaf: turnout.Tensor, *gradient: turnout.Tensor) -> bool:
        sink = [leaf, *gradient] if gradient else [leaf, turnout.ones(leaf.shape)]
        return bool(keep(leaf, sink))

    x, y = leaves()
    assert kept(x)
    assert x.grad.tolist() == [1.0] * 3
    assert not kept(x)  # it has one
    x.grad = None
    assert kept(x)  # its table of extras is there
    x.grad = None
    held = turnout.ones(3)
    assert not kept(x, held)
    for other in (turnout.ones(2), turnout.ones(3, dtype=turnout.float64), turnout.ones(2, 3)[0], y * 2):
        assert not kept(x, other)
    assert not kept(turnout.ones(2, 3).t().requires_grad_(), turnout.ones(3, 2))
    square = turnout.ones(2, 3, requires_grad=True)
    assert kept(square)
    assert x.grad is None
    refused(AttributeError, _calls.keeper(None), y, [y, turnout.ones(3)])


def test_the_maker_refuses_formulas_that_it_cannot_read():
    class Other(engine.Node):
        __slots__ = ("self", "self_version")

    bad: list[Any] = [
        ((("tensor", "other", 1),), (), (), (0,), False),
        ((("tensors", "self", 1),), (), (), (0,), False),
        ((), (), (), (1,), False),
        ((), (), (("method", "neg", 1, ()),), (0,), False),
        ((), (), (("method", "neg", 1, (1,)),), (0,), False),
        ((), (), (("conjugate", "neg", 1, (0,)),), (0,), False),
        ((), (), (("expand", None, 1, (0,)),), (0,), False),
        ((), (1,) * 24, (), (0,), False),
        ((), (), (), (0,), True),
    ]
    for arguments in bad:
        refused((ValueError, TypeError, AttributeError), _calls.add_formula, Other, *arguments)
    refused(TypeError, engine.running_ahead(engine.Node, engine.FREED, engine.FREED_OUTPUT), None, None)
