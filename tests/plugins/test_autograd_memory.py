"""What gradients keep alive with the cyclic collector off: nothing after backward, an error, or the end of the result."""

from __future__ import annotations

import tracemalloc
import weakref

import pytest

import turnout
from collector import collector_off, new_objects
from turnout import autograd
from turnout_aten.tensor.tensor import Tensor


@pytest.fixture(autouse=True)
def reference_counts_alone():
    with collector_off():
        yield


def tensors_alive():
    return sum(issubclass(type(each), Tensor) for each in new_objects())


def nodes_alive():
    """Nodes of the tape, and what stands for one of their outputs."""
    return sum(str(type(each).__module__).startswith(("turnout_autograd", "turnout.autograd")) for each in new_objects())


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


def fail(grad):
    raise KeyError("stop")


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


# ---- long chains


CHAIN = 100_000


def chain(x, length, step):
    y = x * 1
    for _ in range(length):
        y = step(y)
    return y


def memory_left(work):
    """Bytes more than before that are held after the work; of its second run, when the free lists of Python are filled."""
    tracemalloc.start()
    try:
        work()
        before = tracemalloc.get_traced_memory()[0]
        work()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def test_a_chain_of_a_hundred_thousand_additions_runs_backward_and_gives_its_memory_back():
    x = turnout.tensor([1.0], dtype=turnout.float64).requires_grad_()

    def work(length=10_000):
        chain(x, length, lambda y: y + 1).backward()
        found, x.grad = x.grad.tolist(), None
        assert found == [1.0]

    work(CHAIN)
    assert memory_left(work) < 2_000


def test_that_measure_notices_what_is_kept():
    x = turnout.tensor([1.0], dtype=turnout.float64).requires_grad_()
    kept = []
    assert memory_left(lambda: kept.append(chain(x, 100, lambda y: y * x))) > 10_000


@pytest.mark.parametrize("retain", [False, True], ids=["freed", "retained"])
def test_what_a_long_chain_saved_is_freed_by_backward_although_its_result_lives(retain):
    x = turnout.tensor([1.0], dtype=turnout.float64).requires_grad_()
    y = chain(x, 10_000, lambda y: y * x)
    alive = tensors_alive()
    y.backward(retain_graph=retain)
    freed = alive + 1 - tensors_alive()  # .grad is new
    assert freed == (0 if retain else 10_000)


def rows_of(x):
    y = x.expand(2).clone()
    for _ in range(20_000):
        y[:1].mul_(x)
    return y


DEEP = {
    "additions": lambda x: chain(x, CHAIN, lambda y: y + 1),
    "products": lambda x: chain(x, CHAIN, lambda y: y * x),
    "views": lambda x: chain(x, 10_000, lambda y: y.view(1)),
    "one of several results": lambda x: chain(x, 50_000, lambda y: y.max(0, keepdim=True)[0]),
    "functions": lambda x: chain(x, 50_000, lambda y: Double.apply(y, x)[0]),
    "writes": lambda x: chain(x, 50_000, lambda y: y.mul_(x)),
    "writes into views": rows_of,
}


@pytest.mark.parametrize("kind", DEEP)
def test_a_deep_graph_that_nobody_swept_is_freed_without_recursion(kind):
    x = turnout.tensor([1.0], dtype=turnout.float64).requires_grad_()
    before = tensors_alive() + nodes_alive()
    y = DEEP[kind](x)
    assert nodes_alive() > 5_000
    del y
    assert tensors_alive() + nodes_alive() == before


def test_a_deep_graph_is_freed_without_recursion_when_its_backward_is_broken_off():
    x = turnout.tensor([1.0], dtype=turnout.float64).requires_grad_()
    before = tensors_alive() + nodes_alive()
    middle = chain(x, 50_000, lambda y: y * x)
    middle.register_hook(fail)
    y = chain(middle, 50_000, lambda y: y * x)
    try:
        y.backward()
    except KeyError:
        pass
    del y, middle
    assert tensors_alive() + nodes_alive() == before


def test_a_graph_dies_with_its_result_although_outputs_are_saved():
    x = turnout.tensor([1.0]).requires_grad_()
    for function in (turnout.exp, Again.apply, lambda t: Double.apply(t, t)[0]):
        y = function(x)
        reference = weakref.ref(y)
        del y
        assert reference() is None


# ---- the most memory at once


@pytest.mark.parametrize(("loss", "operands"), [
    (lambda a, b: (a * a).sum(), 2), (lambda a, b: (a * b).sum(), 2), (lambda a, b: a.mul(2).square().mul(b).sum(), 5),
    (lambda a, b: turnout.func.grad(lambda c: (c * c).sum())(a), 3),
])  # fmt: skip
def test_gradients_add_up_in_memory_that_is_there(loss, operands):
    a, b = (turnout.ones(1 << 16, requires_grad=True) for _ in "ab")
    for _ in range(2):  # the first time makes more
        a.grad = b.grad = None
        tracemalloc.start()
        result = loss(a, b)
        if result.dim() == 0:
            result.backward()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < (operands + 0.2) * a.nbytes


@pytest.mark.parametrize("n", [4, 1 << 15])
@pytest.mark.parametrize("keep", [
    lambda g: g, lambda g: g.detach(), lambda g: g.numpy(), lambda g: memoryview(g.numpy()), lambda g: g[1:],
    lambda g: g.view(2, -1)[0],
])  # fmt: skip
def test_a_gradient_that_a_program_keeps_is_not_added_to(keep, n):
    a, root, kept = turnout.ones(n, requires_grad=True), turnout.ones(n), []
    y = a.clone()
    y.register_hook(lambda g: kept.append(keep(g)))
    for result, of_a, of_y in ((y + a * 3, 4.0, 1.0), (y + a, 2.0, 1.0), (y * 1 + y, 2.0, 2.0), (a + y, 2.0, 1.0)):
        a.grad = None
        result.backward(root, retain_graph=True)
        assert set(turnout.asarray(kept.pop()).tolist()) == {of_y}
        assert (a.grad.tolist(), root.tolist()) == ([of_a] * n, [1.0] * n)
