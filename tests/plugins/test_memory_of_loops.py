"""Loops that run with the collector of cycles off: after some rounds nothing is added any more."""

from __future__ import annotations

import contextvars
import copy
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import turnout
from collector import collect_new, collector_off, new_objects
from own_functions import Square
from turnout import state
from turnout_autocast.contexts import SETTINGS

WEIGHT = turnout.ones(4, 4, requires_grad=True)
X = turnout.ones(3, 4)


def backward() -> None:
    (X @ WEIGHT).exp().sum().backward()
    WEIGHT.grad = None


def autocast() -> None:
    with turnout.autocast("cpu", dtype=turnout.bfloat16):
        loss = (X @ WEIGHT).float().sum()
        loss.backward()
    WEIGHT.grad = None


def autocast_with_a_new_weight() -> None:
    weight = turnout.ones(4, 4, requires_grad=True)
    with turnout.autocast("cpu"):
        (X @ weight).float().sum().backward()


def in_place() -> None:
    y = WEIGHT * 2
    y[0].mul_(3)
    y.view(-1)[1:3].add_(1)
    y.sum().backward()
    WEIGHT.grad = None


def hooks() -> None:
    y = WEIGHT * 2
    handle = y.register_hook(lambda g: g * 2)
    joint = turnout.autograd.graph.register_multi_grad_hook((WEIGHT, y), lambda _: None)
    y.sum().backward()
    handle.remove()
    joint.remove()
    WEIGHT.grad = None


def saved_hooks() -> None:
    with turnout.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        WEIGHT.exp().sum().backward()
    WEIGHT.grad = None


def library() -> None:
    lib = turnout.library.Library("looped", "DEF")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "CompositeImplicitAutograd")
    turnout.ops.looped.f(X)
    lib.undo()


def generator_left_elsewhere() -> None:
    def steps() -> Any:
        with turnout.no_grad(), state.exclude("Tracer"):
            yield 1

    running = steps()
    next(running)
    contextvars.copy_context().run(running.close)


class _Passing(turnout.DispatchMode):
    def dispatch(self, op: Any, ks: int, args: Any) -> Any:
        return op.redispatch(ks, *args)


_PASSING = _Passing()


def mode() -> None:
    with _PASSING:
        X * 2


def _in(guard: Callable[[], Any]) -> Callable[[], None]:
    def loop() -> None:
        with guard():
            X @ WEIGHT

    return loop


# fmt: off
LOOPS: dict[str, Callable[[], Any]] = {
    "forward": lambda: (X @ X.T).relu().softmax(0),
    "recorded": lambda: (X @ WEIGHT).sin(),
    "backward": backward,
    "double backward": lambda: turnout.autograd.grad(
        turnout.autograd.grad((WEIGHT**3).sum(), WEIGHT, create_graph=True)[0].sum(), WEIGHT),
    "autograd.Function": lambda: turnout.autograd.grad(Square.apply(WEIGHT).sum(), WEIGHT),
    "in place and views": in_place,
    "hooks": hooks,
    "saved tensors hooks": saved_hooks,
    "vmap": lambda: turnout.vmap(lambda r: r.sin() * 2)(X),
    "grad": lambda: turnout.func.grad(lambda x: (x * x).sum())(X),
    "jvp": lambda: turnout.func.jvp(lambda x: x.exp(), (X,), (X,)),
    "jacrev": lambda: turnout.func.jacrev(lambda x: x * 2)(turnout.ones(2)),
    "hessian": lambda: turnout.func.hessian(lambda x: (x**3).sum())(turnout.ones(2)),
    "vmap of grad": lambda: turnout.vmap(turnout.func.grad(lambda x: x.sin().sum()))(X),
    "autocast": autocast,
    "autocast with a new weight": autocast_with_a_new_weight,
    "no_grad": _in(turnout.no_grad),
    "inference_mode": _in(turnout.inference_mode),
    "set_grad_enabled": lambda: (turnout.set_grad_enabled(False), turnout.set_grad_enabled(True)),
    "guards": _in(lambda: state.exclude("Tracer")),
    "override": _in(lambda: turnout.config.override(default_device="cpu")),
    "mode": mode,
    "generator left elsewhere": generator_left_elsewhere,
    "config.set": lambda: (turnout.config.set(strict=True), turnout.config.unset("strict")),
    "explain": lambda: str(turnout.explain("aten::sin", X)),
    "trace_dispatch": _in(turnout.trace_dispatch),
    "indexing": lambda: (X[0], X[:, 1:3], X[X > 0], X[[0, 1]], X[None, ..., 0]),
    "deepcopy": lambda: copy.deepcopy(X),
    "pickle": lambda: pickle.loads(pickle.dumps(X)),
    "random": lambda: turnout.randn(3).normal_(),
    "numpy": lambda: turnout.from_numpy(X.numpy()),
    "library": library,
    "repr": lambda: repr(X),
    "meta": lambda: turnout.ones(2, device="meta") * 2,
}
# fmt: on


# An operator, a traced table and a meta array refer to themselves: the collector finds them.
COLLECTED = ("library", "trace_dispatch", "meta")


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_adds_no_objects(name: str) -> None:
    loop = LOOPS[name]
    for _ in range(30):
        loop()
    with collector_off():
        counts = []
        for _ in range(3):
            for _ in range(20):
                loop()
            if name in COLLECTED:
                collect_new()
            counts.append(len(new_objects()))
        added = min(counts[1] - counts[0], counts[2] - counts[1])
    assert added <= 3, f"{added} objects in 20 rounds"  # a few of the interpreter's own


def test_the_cache_of_casts_is_dropped_with_the_outermost_context() -> None:
    weight = turnout.ones(4, 4, requires_grad=True)
    with collector_off():
        with turnout.autocast("cpu"):
            X @ weight
            cache: Any = SETTINGS.get()[0].cache
            assert len(cache._casts) == 1
            alive = weakref.ref(cache)
            cast = weakref.ref(next(iter(cache._casts.values()))[2])
            del cache
        assert (alive(), cast()) == (None, None)
        gone = weakref.ref(weight)
        del weight
        assert gone() is None
