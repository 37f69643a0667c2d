"""What gradients keep alive: nothing after backward, after an error or after the result is gone, with the cyclic collector off."""

from __future__ import annotations

import gc
import tracemalloc
import weakref

import pytest

import turnout
from turnout import autograd, library
from turnout.tensors import Tensor

STEPS = 1_000
WARM_UP = 5


@pytest.fixture
def no_collector():
    """Reference counts alone free what is freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def tensors_alive():
    return sum(isinstance(each, Tensor) for each in gc.get_objects())


def nodes_alive():
    """Nodes of the tape, and what stands for one of their outputs."""
    return sum(type(each).__module__.startswith("turnout_autograd") for each in gc.get_objects())


class Network:
    """Two layers, their data, and what a step ends with."""

    def __init__(self):
        self.w = turnout.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]).requires_grad_()
        self.b = turnout.zeros(2).requires_grad_()
        self.data = turnout.tensor([[1.0, 2.0, 3.0], [2.0, 0.0, 1.0], [0.5, 0.5, 0.5]])
        self.target = turnout.tensor([0, 1, 1])

    def hidden(self):
        return turnout.addmm(self.b, self.data, self.w.t()).tanh()

    def loss(self, h):
        return turnout.nn.functional.cross_entropy(h, self.target)

    def update(self):
        with turnout.no_grad():
            for p in (self.w, self.b):
                p.sub_(p.grad * 0.1)
                p.grad = None


class Double(autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        out = x * y
        ctx.save_for_backward(x, y, out)
        return out, x + y

    @staticmethod
    def backward(ctx, grad, other):
        x, y, _out = ctx.saved_tensors
        return grad * y + other, grad * x + other


class WriteDouble(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


# ---- one step of each kind


def plain(net):
    h = net.hidden()
    net.loss(h.exp().sigmoid() + h.relu().sqrt() * 0.1).backward()
    net.update()


def hooks(net):
    h = net.hidden()
    seen = []
    h.register_hook(lambda g: g * 2)
    h.grad_fn.register_prehook(lambda gs: None)
    h.grad_fn.register_hook(lambda gs, outs: None)
    handle = net.w.register_hook(lambda g: seen.append(g))
    with net.b.register_post_accumulate_grad_hook(lambda t: seen.append(t)):
        net.loss(h).backward()
    handle.remove()
    net.update()


def functions(net):
    h = net.hidden()
    a, b = Double.apply(h, h * 2)
    net.loss(a + b).backward()
    net.update()


def functions_that_write(net):
    h = net.hidden() * 1
    WriteDouble.apply(h)
    WriteDouble.apply(h[0])
    net.loss(h).backward()
    net.update()


def writes_into_views(net):
    v = net.hidden() * 1
    v[0].mul_(2)
    v.t()[1].add_(v[:, 0] * 3)
    v.exp_()
    net.loss(v).backward()
    net.update()


def retained(net):
    h = net.hidden()
    h.retain_grad()
    net.loss(h).backward(retain_graph=True)
    net.loss(h).backward()
    assert h.grad is not None
    net.update()


def gradients_of_gradients(net):
    h = net.hidden()
    (first,) = autograd.grad(net.loss(h), net.w, create_graph=True)
    (first * first).sum().backward()
    net.update()


def recorded_backward(net):
    net.loss(net.hidden()).backward(create_graph=True)
    (net.w.grad * net.w.grad).sum().backward()
    net.update()


def anomaly(net):
    with autograd.detect_anomaly():
        net.loss(net.hidden()).backward()
    net.update()


def result_dropped(net):
    a, _b = Double.apply(net.hidden(), net.hidden())
    loss = net.loss(a[1:].clone().mul_(a[:2]).exp()[[0, 1, 0]])
    del loss


def backward_that_raises(net):
    h = net.hidden()
    a, _b = Double.apply(h, h)

    def fail(grad):
        raise KeyError("stop")

    h.register_hook(fail)
    with pytest.raises(KeyError):
        net.loss(a).backward()


def functional(net):
    turnout.func.grad(lambda w: net.loss(net.data @ w.t()))(net.w.detach())


def custom_operator(net):
    h = net.hidden()
    net.loss(turnout.ops.remembered.twice(h)).backward()
    dropped = turnout.ops.remembered.twice(h)
    del dropped
    net.update()


def checkpointed(net):
    h = net.hidden()

    class Again(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, grad):
            with turnout.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                x.exp().backward(grad)
            return x.grad

    net.loss(Again.apply(h)).backward()
    net.update()


EVERY_STEP = [
    plain, hooks, functions, functions_that_write, writes_into_views, retained, gradients_of_gradients, recorded_backward,
    result_dropped, functional, custom_operator,
]  # fmt: skip
# Slow, or making objects that only the collector frees (classes, what pytest keeps of an exception): fewer steps.
SOME_STEPS = [anomaly, backward_that_raises, checkpointed]


@pytest.fixture(autouse=True)
def operators():
    with library.Library("remembered", "DEF") as group:
        group.define("twice(Tensor x) -> Tensor")
        group.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        library.register_autograd(
            "remembered::twice",
            lambda ctx, grad: grad * 2 * ctx.saved_tensors[0] / ctx.saved_tensors[0],
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
            lib=group,
        )
        yield


def growth(step, steps, count):
    net = Network()
    for _ in range(WARM_UP):
        step(net)
    before = count()
    for _ in range(steps):
        step(net)
    return count() - before


@pytest.mark.parametrize("step", EVERY_STEP, ids=lambda s: s.__name__)
def test_a_thousand_steps_leave_as_many_tensors_and_nodes_as_there_were(step, no_collector):
    assert growth(step, STEPS, lambda: (tensors_alive() + nodes_alive())) == 0


@pytest.mark.parametrize("step", SOME_STEPS, ids=lambda s: s.__name__)
def test_fifty_steps_leave_as_many_tensors_as_there_were(step, no_collector):
    assert growth(step, 50, tensors_alive) == 0
