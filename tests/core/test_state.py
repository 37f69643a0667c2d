"""Guards: what they change, and that it is back afterwards, whatever happens and in whichever thread or task."""

from __future__ import annotations

import contextlib
import inspect
import sys
import threading
from contextvars import ContextVar, copy_context
from random import Random

import pytest

from guard_scenarios import SCENARIOS
from outcomes import refused
from turnout import config, guards
from turnout.explanation import tracing
from turnout.explanation.tracing import trace_dispatch
from turnout.keys import KEYS, KeySpace
from turnout.registry.modes import DispatchMode
from turnout.state import (
    BELOW_ADINPLACEORVIEW,
    BELOW_AUTOGRAD,
    DISPATCH,
    FRESH,
    MODES,
    below_adinplaceorview,
    exclude,
    include,
    only_backends,
)

GUARDS = [
    lambda: include("Tracer"),
    lambda: exclude("Autograd"),
    lambda: exclude(["Autograd", "AutogradOther"]),
    below_adinplaceorview,
]


@pytest.mark.parametrize("make", GUARDS)
def test_a_guard_restores_the_state_after_an_exception(make):
    before = DISPATCH.get()
    inside = []

    def fail():
        with make():
            inside.append(DISPATCH.get())
            raise KeyError

    refused(KeyError, fail)
    assert inside[0] != before
    assert DISPATCH.get() == before


def test_a_guard_object_can_be_entered_inside_its_own_block():
    before = DISPATCH.get()
    guard = include("Tracer")
    with guard:
        inside = DISPATCH.get()
        with guard:
            assert DISPATCH.get() == inside
        assert DISPATCH.get() is inside
    assert DISPATCH.get() is before


def test_a_block_that_the_collector_has_left_can_be_left_once_more_by_its_with_statement():
    """The collector finalizes a generator, and what its `with` statement calls at the end, in any order."""
    guard, before = exclude("Autograd"), DISPATCH.get()
    leave = guard.__exit__  # as a `with` statement looks it up
    guard.__enter__()
    assert DISPATCH.get() != before
    for _ in range(2):
        leave.__del__()
        leave(None, None, None)
        assert tuple(DISPATCH.get()) == tuple(before)
    with guard:
        guard.__enter__()
        guard.__exit__(None, None, None)  # by its name: the innermost entering
        assert DISPATCH.get() != before
    assert DISPATCH.get() == before


def test_excluding_autograd_excludes_it_for_backends_that_do_not_exist_yet():
    with exclude("Autograd"):
        _, keep = DISPATCH.get()
        assert not keep & KEYS.bit("Autograd")


def test_threads_do_not_see_each_others_guards():
    seen = []
    with exclude("Autograd"):
        thread = threading.Thread(target=lambda: seen.append(DISPATCH.get()))
        thread.start()
        thread.join()
    assert seen[0][1] & KEYS.bit("Autograd")


class Passing(DispatchMode):
    def dispatch(self, op, ks, args):
        return op.redispatch(ks, *args)


def is_included():
    return bool(DISPATCH.get()[0] & KEYS.bit("Tracer"))


EVERY = {
    "include": (lambda: include("Tracer"), is_included),
    "exclude": (lambda: exclude("Tracer"), lambda: not DISPATCH.get()[1] & KEYS.bit("Tracer")),
    "only backends": (only_backends, lambda: not DISPATCH.get()[1] & KEYS.bit("Tracer")),
    "mode": (Passing, lambda: bool(DISPATCH.get()[0] & KEYS.bit("Python")) and bool(MODES.get())),
    "override": (lambda: config.override(strict=True), lambda: config.get("strict")),
    "trace": (trace_dispatch, lambda: bool(tracing._OPEN_HERE.get()[0])),
}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
@pytest.mark.parametrize("name", EVERY)
def test_a_guard_can_be_left_anywhere(name, scenario):
    make, is_on = EVERY[name]
    state = DISPATCH.get()
    scenario(make, is_on)
    assert tuple(DISPATCH.get()) == tuple(state)
    while tracing._TRACES:  # a trace that was entered by hand and forgotten
        assert scenario.__name__ == "entered_by_hand_inside_a_block_and_forgotten"
        ((traces, _undo),) = tracing._TRACES.values()
        traces.pop().left()


def test_guards_of_several_kinds_that_are_left_by_turns_put_back_what_each_has_set():
    def steps(guard):
        with guard:
            yield

    before = tuple(DISPATCH.get())
    random = Random(0)
    for _ in range(200):
        running = []
        for _ in range(random.randint(1, 5)):
            make, _is_on = EVERY[random.choice(list(EVERY))]
            running.append(steps(make()))
            next(running[-1])
        random.shuffle(running)
        for each in running:
            if random.random() < 0.3:
                copy_context().run(each.close)
            else:
                each.close()
        assert tuple(DISPATCH.get()) == before
        assert (tuple(MODES.get()), tuple(tracing._OPEN_HERE.get()), config.get("strict")) == ((), ((), False), False)
    assert not tracing._TRACES


def test_blocks_that_are_left_elsewhere_inside_a_long_one_keep_no_memory():
    def steps():
        with exclude("Tracer"):
            yield

    def round_trip():
        running = steps()
        next(running)
        copy_context().run(running.close)

    with include("Tracer"):
        block = guards._INNERMOST.get()
        for _ in range(100):
            copy_context().run(round_trip)
        assert len(block.inside) < 5


def test_blocks_that_are_left_elsewhere_one_after_another_keep_no_memory():
    def steps():
        with exclude("Tracer"):
            yield

    def long_block():
        with include("Tracer"):
            yield

    outer = long_block()
    next(outer)
    block = guards._INNERMOST.get()
    for _ in range(100):
        running = steps()
        next(running)
        copy_context().run(running.close)
        assert is_included()
        assert DISPATCH.get()[1] == -1
    assert len(block.inside) < 5
    copy_context().run(outer.close)
    assert not is_included()
    with exclude("Tracer"):
        pass
    assert tuple(DISPATCH.get()) == FRESH


def test_a_guard_without_a_method_says_what_to_define():
    with pytest.raises(NotImplementedError) as caught, guards.Guard():
        pass
    assert str(caught.value) == "Guard must define sets(self)"


def _at_depth(levels, call):
    if levels:
        _at_depth(levels - 1, call)
    else:
        call()


LEAST = ContextVar("least", default=0)


class Least(guards.Guard):
    """A guard that calls nothing where it is entered."""

    def sets(self):
        return ((LEAST, [1]),)


@pytest.mark.parametrize("make", [*GUARDS, lambda: config.override(strict=True), Least])
def test_a_block_that_is_entered_near_the_recursion_limit_is_left(make):
    entered = []

    def block():
        with make():
            entered.append(1)

    block()
    before, deepest = (DISPATCH.get(), config.get("strict"), LEAST.get()), sys.getrecursionlimit() - len(inspect.stack(0))
    for levels in range(deepest - 40, deepest + 1):
        with contextlib.suppress(RecursionError):
            _at_depth(levels, block)
        assert (DISPATCH.get(), config.get("strict"), LEAST.get()) == before, levels
    assert 5 < len(entered) < 41


def test_what_is_below_autograd_is_what_the_rows_say():
    guards = {row.name: row.bit for row in KeySpace().functionalities if row.guards_below}
    assert sum(guards.values()) == ~BELOW_ADINPLACEORVIEW
    assert sum(bit for name, bit in guards.items() if name != "ADInplaceOrView") == ~BELOW_AUTOGRAD
