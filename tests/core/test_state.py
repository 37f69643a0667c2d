"""Guards: what they change, and that it is back afterwards, whatever happens and in whichever thread or task."""

from __future__ import annotations

import asyncio
import threading

import pytest

from turnout.keys import KEYS
from turnout.state import DISPATCH, below_adinplaceorview, exclude, include

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

    with pytest.raises(KeyError):
        fail()
    assert inside[0] != before
    assert DISPATCH.get() == before


def test_guards_nest_and_restore_inside_out():
    before = DISPATCH.get()
    with include("Tracer"):
        middle = DISPATCH.get()
        with exclude("Tracer"):
            inc, keep = DISPATCH.get()
            assert inc & keep & KEYS.bit("Tracer") == 0
        assert DISPATCH.get() == middle
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


def test_asyncio_tasks_do_not_see_each_others_guards():
    async def guarded(rounds):
        for _ in range(rounds):
            with exclude("Tracer"):
                await asyncio.sleep(0)
                assert not DISPATCH.get()[1] & KEYS.bit("Tracer")

    async def plain(rounds):
        for _ in range(rounds):
            await asyncio.sleep(0)
            assert DISPATCH.get()[1] & KEYS.bit("Tracer")

    async def both():
        await asyncio.gather(guarded(20), plain(20), guarded(20))

    asyncio.run(both())
