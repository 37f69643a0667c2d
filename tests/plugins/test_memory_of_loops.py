"""Loops that run with the collector of cycles off: after some rounds nothing is added any more."""

from __future__ import annotations

import contextvars
import copy
import pickle
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import turnout
from collector import collect_new, collector_off, new_objects
from own_functions import Doubled, Square
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
    y.grad_fn.register_prehook(lambda gs: None)
    y.grad_fn.register_hook(lambda gs, outs: None)
    handle = y.register_hook(lambda g: g * 2)
    joint = turnout.autograd.graph.register_multi_grad_hook((WEIGHT, y), lambda _: None)
    with WEIGHT.register_post_accumulate_grad_hook(lambda t: None):
        y.sum().backward()
    handle.remove()
    joint.remove()
    WEIGHT.grad = None


def step() -> None:
    (X @ WEIGHT).exp().sum().backward()
    with turnout.no_grad():
        WEIGHT.sub_(WEIGHT.grad * 0.0)
        WEIGHT.grad = None


def functions_that_write() -> None:
    y = WEIGHT * 1
    Doubled.apply(y)
    Doubled.apply(y[0])
    y.sum().backward()
    WEIGHT.grad = None


def retained() -> None:
    y = WEIGHT * 2
    y.retain_grad()
    total = y.sin().sum()
    total.backward(retain_graph=True)
    total.backward()
    WEIGHT.grad = None


def recorded_backward() -> None:
    WEIGHT.exp().sum().backward(create_graph=True)
    (WEIGHT.grad * WEIGHT.grad).sum().backward()
    WEIGHT.grad = None


def anomaly() -> None:
    with turnout.autograd.detect_anomaly():
        backward()


def fail(grad: turnout.Tensor) -> None:
    raise KeyError("stop")


def backward_that_raises() -> None:
    y = Square.apply(WEIGHT)
    y.register_hook(fail)
    with suppress(KeyError):
        y.exp().sum().backward()


def forward_that_raises() -> None:
    with suppress(IndexError):
        (WEIGHT * 1).exp_().log()[7]


def backward_inside_of_backward() -> None:
    y = WEIGHT * 2
    again = turnout.enable_grad()(backward)
    y.register_hook(lambda g: (again(), g)[1])
    y.sum().backward()
    WEIGHT.grad = None


def saved_hooks() -> None:
    with turnout.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        WEIGHT.exp().sum().backward()
    WEIGHT.grad = None


def library() -> None:
    with turnout.library.Library("looped", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x * 2, "CompositeExplicitAutograd")
        save: Any = lambda ctx, inputs, output: ctx.save_for_backward(output)  # noqa: E731
        turnout.library.register_autograd(
            "looped::f", lambda ctx, g: g * ctx.saved_tensors[0] / ctx.saved_tensors[0], setup_context=save, lib=lib
        )
        turnout.ops.looped.f(WEIGHT).sum().backward()
        turnout.ops.looped.f(WEIGHT)
    WEIGHT.grad = None


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
    "step": step,
    "functions that write": functions_that_write,
    "retained": retained,
    "recorded backward": recorded_backward,
    "anomaly": anomaly,
    "backward that raises": backward_that_raises,
    "forward that raises": forward_that_raises,
    "backward inside of backward": backward_inside_of_backward,
    "vmap of autograd.Function": lambda: turnout.autograd.grad(turnout.vmap(Square.apply)(WEIGHT).sum(), WEIGHT),
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


# An operator, a traced table, a meta array, the lines of a call and the class of a function inside vmap refer to themselves: the
# collector finds them.
COLLECTED = ("library", "trace_dispatch", "meta", "anomaly", "vmap of autograd.Function")


def added(loop: Callable[[], Any], collected: bool = False) -> tuple[int, int]:
    """The objects that 20 rounds add to those of 20 rounds before, and the tensors among them before the collector runs."""
    for _ in range(30):
        loop()
    with collector_off():
        counts, tensors = [], []
        for _ in range(3):
            for _ in range(20):
                loop()
            tensors.append(sum(issubclass(type(each), turnout.Tensor) for each in new_objects()))
            if collected:
                collect_new()
            counts.append(len(new_objects()))
        return min(counts[1] - counts[0], counts[2] - counts[1]), min(tensors[1] - tensors[0], tensors[2] - tensors[1])


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_adds_no_objects(name: str) -> None:
    objects, tensors = added(LOOPS[name], name in COLLECTED)
    assert objects <= 3, f"{objects} objects in 20 rounds"  # a few of the interpreter's own
    assert tensors == 0 or name == "library"


def test_that_count_notices_what_is_kept() -> None:
    kept: list[Any] = []
    objects, tensors = added(lambda: kept.append(WEIGHT * 2))
    assert (objects >= 40, tensors) == (True, 20)  # a tensor and a node each


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
