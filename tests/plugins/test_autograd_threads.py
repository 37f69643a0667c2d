"""Several threads at once, sweeps inside of sweeps, and interrupts: no gradient is lost, no state is left behind."""

from __future__ import annotations

import signal
import sys
import threading

import pytest

import turnout
from outcomes import in_threads, refused
from turnout import autograd
from turnout.state import DISPATCH
from turnout_aten.tensor.levels import GRAD

THREADS = 8


def leaf(*values):
    return turnout.tensor(list(values), dtype=turnout.float64).requires_grad_()


@pytest.fixture(autouse=True)
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(work):
    """What `work(number)` gives in several threads that begin together."""
    gate = threading.Barrier(THREADS)
    return in_threads(*[lambda number=number: (gate.wait(30), work(number))[1] for number in range(THREADS)])


# ---- threads


def test_threads_sweep_one_graph_at_once_and_lose_nothing(x):
    y = x
    for _ in range(50):
        y = y * 1.0 + 0
    total = y.sum()
    at_once(lambda number: [total.backward(retain_graph=True) for _ in range(20)])
    assert x.grad.tolist() == [THREADS * 20.0] * 3


def test_threads_with_graphs_of_their_own_lose_nothing_at_shared_leaves(x):
    w = leaf(1.0, 1.0, 1.0)

    def work(number):
        for step in range(30):
            h = (x * w).exp().log()
            h[:1].mul_(2)
            (h * number + step).sum().backward()

    at_once(work)
    total = 30.0 * sum(range(THREADS))
    assert w.grad.tolist() == pytest.approx([2 * total, 2 * total, 3 * total])
    assert x.grad.tolist() == pytest.approx([2 * total, total, total])


def test_gradients_of_gradients_in_threads_are_those_of_one(x):
    def work(number):
        for _ in range(10):
            (first,) = autograd.grad((x**4).sum() * number, x, create_graph=True)
            (second,) = autograd.grad(first.sum(), x, create_graph=True)
            (third,) = autograd.grad(second.sum(), x)
        return third.tolist()

    assert at_once(work) == [[24.0 * n, 48.0 * n, 72.0 * n] for n in range(THREADS)]
    assert x.grad is None


def test_recorded_backward_in_threads_adds_up(x):
    at_once(lambda number: [(x * x * number).sum().backward(create_graph=True) for _ in range(5)])
    total = 2.0 * 5 * sum(range(THREADS))
    assert x.grad.tolist() == [total, 2 * total, 3 * total]
    (second,) = autograd.grad(x.grad.sum(), x)
    assert second.tolist() == [total] * 3


def test_hooks_run_once_for_each_sweep_in_its_own_thread(x):
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(threading.get_ident()))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(threading.get_ident()))
    total = y.sum()
    idents = []

    def work(number):
        idents.append(threading.get_ident())
        for _ in range(5):
            total.backward(retain_graph=True)

    at_once(work)
    assert sorted(seen) == sorted(ident for ident in idents for _ in range(10))


def test_a_graph_that_one_thread_frees_is_refused_in_the_others_or_swept_whole(x):
    """Values are freed node by node, so that a second sweep may meet freed ones anywhere; it never gives wrong gradients."""
    for _ in range(20):
        x.grad = None
        y = x
        for _ in range(10):
            y = y * x
        total = y.sum()

        def work(number, total=total):
            try:
                total.backward()
            except autograd.GradientError:
                return False
            return True

        done = sum(at_once(work))
        assert done
        assert x.grad.tolist() == [11 * v**10 * done for v in (1.0, 2.0, 3.0)]


# ---- sweeps inside of sweeps


class Inner(autograd.Function):
    """Its backward runs another backward, as checkpoints do."""

    @staticmethod
    def forward(ctx, x, depth):
        ctx.save_for_backward(x)
        ctx.depth = depth
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (saved,) = ctx.saved_tensors
        with turnout.enable_grad():
            again = saved.detach().requires_grad_()
            result = Inner.apply(again, ctx.depth - 1) if ctx.depth else again * 2
            result.backward(grad)
        return again.grad, None


@pytest.mark.parametrize("depth", [20, 1000])
def test_a_backward_may_run_others_of_any_depth(x, depth):
    Inner.apply(x, depth).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    assert turnout.is_grad_enabled()


def test_an_error_of_the_innermost_of_many_backwards_is_raised_by_the_outermost(x):
    ran = []

    class Failing(Inner):
        @staticmethod
        def backward(ctx, grad):
            ran.append(threading.current_thread())
            with turnout.enable_grad():
                if not ctx.depth:
                    raise KeyError("innermost")
                Failing.apply(ctx.saved_tensors[0].detach().requires_grad_(), ctx.depth - 1).backward(grad)

    assert "innermost" in refused(KeyError, lambda: Failing.apply(x, 100).sum().backward())
    assert (len(ran), len(set(ran))) == (101, 3)
    assert x.grad is None
    assert turnout.is_grad_enabled()


def test_backward_inside_of_a_hook_reaches_other_leaves_and_the_same_one(x):
    w = leaf(5.0)
    y = x * 2

    def hook(grad):
        assert not turnout.is_grad_enabled()
        with turnout.enable_grad():
            (w * 3).sum().backward()
            (x * 10).sum().backward()

    y.register_hook(hook)
    y.sum().backward()
    assert (w.grad.tolist(), x.grad.tolist()) == ([3.0], [12.0] * 3)
    assert turnout.is_grad_enabled()


def test_an_inner_sweep_that_fails_fails_the_outer_one_and_leaves_the_mode(x):
    y = x * 2
    y.register_hook(lambda g: leaf(1.0, 2.0).backward())
    before = (GRAD.get(), DISPATCH.get())
    refused(autograd.GradientError, lambda: y.sum().backward())
    assert (GRAD.get(), DISPATCH.get()) == before
    assert x.grad is None


# ---- interrupts


def interrupt(grad):
    raise KeyboardInterrupt


def test_an_interrupt_leaves_grads_and_state_as_they_were(x):
    y = x * x
    handle = y.register_hook(interrupt)
    total = (y * x).sum() + (x * 5).sum()
    before = (GRAD.get(), DISPATCH.get())
    refused(KeyboardInterrupt, total.backward)
    refused(KeyboardInterrupt, lambda: autograd.grad(((x * x + y) * 1).sum(), x))
    assert x.grad is None
    assert (GRAD.get(), DISPATCH.get()) == before
    handle.remove()
    (x**3 + x * 5).sum().backward()
    assert x.grad.tolist() == [8.0, 17.0, 32.0]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no interval timer on this system")
def test_interrupts_at_any_moment_leave_the_mode_and_the_next_backward_right(x):
    class Stop(BaseException):
        pass

    def stop(*_):
        raise Stop

    y = x
    for _ in range(300):
        y = y * 1.0 + 0.0 * x
    total = y.sum()
    before = (GRAD.get(), DISPATCH.get())
    stopped = 0
    old = signal.signal(signal.SIGALRM, stop)
    try:
        for moment in range(100):
            x.grad = None
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-5 + moment * 2e-5)
                total.backward(retain_graph=True)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Stop:
                stopped += 1
            assert (GRAD.get(), DISPATCH.get()) == before
            assert x.grad is None or x.grad.tolist() == [1.0] * 3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert stopped > 10
    x.grad = None
    total.backward()
    assert x.grad.tolist() == [1.0] * 3
