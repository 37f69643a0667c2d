"""Compiled functions in many threads, over many signatures, and interrupted at any moment."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from functools import partial
from inspect import CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import turnout
from outcomes import in_threads
from turnout import compiler
from turnout.state import is_fresh

STATM = Path("/proc/self/statm")
SHIFT = turnout.tensor([2.0, 3.0, 4.0])


def vector(i: int) -> turnout.Tensor:
    return turnout.tensor([1.0 + i, -2.0, 3.0])


def step(w: Any, x: Any, n: int) -> Any:
    loss = ((w * x + SHIFT) ** 2).sum() * n
    loss.backward()
    with turnout.no_grad():
        w.sub_(w.grad, alpha=1e-4)
    w.grad = None
    return loss.detach()


@pytest.mark.parametrize("dynamic", [False, True])
def test_some_threads_call_what_is_compiled_while_others_compile(dynamic: bool) -> None:
    compiled = turnout.compile(step, engine="eager", strict=True, dynamic=dynamic)
    compiled(vector(0).requires_grad_(), vector(1), 1)
    wrong: list[Any] = []

    def work(i: int) -> None:
        ours, theirs = vector(i).requires_grad_(), vector(i).requires_grad_()
        for n in range(20):
            number = 1 if i < 4 else 2 + (i - 4) * 14 + n % 14  # mostly a signature of its own
            found, expected = compiled(ours, vector(n), number), step(theirs, vector(n), number)
            if found.item() != expected.item() or ours.tolist() != theirs.tolist() or ours.grad is not None:
                wrong.append((i, n))

    in_threads(*[partial(work, i) for i in range(8)])
    assert not wrong
    assert sum(signature.calls for signature in compiler.signatures(compiled)) >= 60


def chain(x: Any, n: int) -> Any:
    x = turnout.tanh(x * n + 1)
    return x, x.sum()


@pytest.mark.skipif(not STATM.exists(), reason="the memory of the process is not told here")
def test_a_thousand_signatures_take_little_memory() -> None:
    compiled = turnout.compile(chain, engine="eager", strict=True)
    x = turnout.ones(50_000)  # 200 kB, which no signature keeps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", compiler.CompileWarning)
        for n in range(20):
            compiled(x, n)
        gc.collect()
        before = int(STATM.read_text().split()[1])
        for n in range(1000):
            compiled(x, n)
    gc.collect()
    assert len(compiler.signatures(compiled)) == 64
    assert (int(STATM.read_text().split()[1]) - before) * 4096 < 150e6


class Interrupt:
    """Raises KeyboardInterrupt at the nth call of a function of the compiler; generators are called when they are let go, too."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or frame.f_code.co_flags & CO_GENERATOR:
            return
        if frame.f_globals.get("__name__", "").startswith("turnout_tracer.compiling"):
            self.left -= 1
            if not self.left:
                sys.setprofile(None)
                raise KeyboardInterrupt


class Model:
    def __init__(self) -> None:
        self.state, self.weight = turnout.zeros(3), turnout.ones(3, requires_grad=True)

    def update(self, x: Any) -> Any:
        (self.weight * x).sum().backward()
        with turnout.no_grad():
            self.weight.sub_(self.weight.grad, alpha=0.1)
        self.weight.grad = None
        self.state = self.state * 0.5 + x
        return self.state + turnout.rand(3)


def pure(x: Any) -> Any:
    return turnout.tanh(x) * x.shape[0] + SHIFT.sum(), x.add_(1)


def interrupted(compiled: Callable[[], Any], at: int) -> bool:
    """Whether a call was interrupted at that moment."""
    sys.setprofile(Interrupt(at))
    try:
        compiled()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.parametrize("dynamic", [False, True])
def test_an_interrupt_at_any_moment_leaves_nothing_half_kept(dynamic: bool) -> None:
    at, moments = 1, 0
    while True:
        ours, theirs = Model(), Model()
        update = turnout.compile(ours.update, engine="eager", strict=True, dynamic=dynamic)
        of_sizes = turnout.compile(pure, engine="eager", strict=True, dynamic=dynamic)
        first, second = interrupted(partial(update, vector(0)), at), interrupted(partial(of_sizes, vector(0)), at)
        moments += first + second
        assert is_fresh()
        assert ours.state.fake_mode is None
        theirs.state, theirs.weight = ours.state.clone(), ours.weight.detach().clone().requires_grad_()
        ours.weight.grad = None  # the call may have ended before it was let go
        for i in range(3):
            turnout.manual_seed(i)
            found = update(vector(i))
            turnout.manual_seed(i)
            assert found.tolist() == theirs.update(vector(i)).tolist(), at
            x, y = vector(i), vector(i)
            assert [each.tolist() for each in of_sizes(x)] == [each.tolist() for each in pure(y)], at
            assert x.tolist() == y.tolist(), at
        assert (ours.state.tolist(), ours.weight.tolist()) == (theirs.state.tolist(), theirs.weight.tolist()), at
        assert sum(signature.calls for signature in compiler.signatures(update)) >= 1
        if not (first or second):
            break
        at += 1 + at // 8
    assert moments > 20
