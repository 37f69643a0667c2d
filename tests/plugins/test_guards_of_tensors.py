"""Guards of tensors: left in another context than they were entered in, and interrupted at random moments."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable
from typing import Any

import pytest

import turnout
from guard_scenarios import SCENARIOS, closed_by_another_thread, steps_of_a_pool_in_copies
from random_programs import interrupts
from turnout import state
from turnout.errors import TurnoutError
from turnout_aten.tensor.levels import GRAD


def _packs() -> bool:
    seen: list[Any] = []
    x = turnout.ones(2, requires_grad=True)
    with turnout.autograd.graph.saved_tensors_hooks(seen.append, lambda _: x):
        pass  # the plugin is active, and this block is over
    assert not seen
    from turnout_autograd.hooks.packing import HOOKS

    return bool(HOOKS.get())


def _hooks_are_refused() -> bool:
    try:
        with turnout.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return False
    except TurnoutError:
        return True


def _as(mode: bool) -> Callable[[], bool]:
    return lambda: turnout.is_grad_enabled() is mode


GUARDS: dict[str, tuple[Callable[[], Any], Callable[[], bool]]] = {
    "no_grad": (turnout.no_grad, _as(False)),
    "set_grad_enabled": (lambda: turnout.set_grad_enabled(False), _as(False)),
    "inference_mode": (turnout.inference_mode, turnout.is_inference_mode_enabled),
    "autocast": (lambda: turnout.autocast("cpu"), lambda: turnout.amp.is_autocast_enabled("cpu")),
    "saved_tensors_hooks": (lambda: turnout.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t), _packs),
    "disable_saved_tensors_hooks": (lambda: turnout.autograd.graph.disable_saved_tensors_hooks("none here"), _hooks_are_refused),
}
FRESH = (*state.FRESH,), (1, 1)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
@pytest.mark.parametrize("name", GUARDS)
def test_a_guard_can_be_left_anywhere(name: str, scenario: Callable[..., None]) -> None:
    make, is_on = GUARDS[name]
    scenario(make, is_on)
    assert ((*state.DISPATCH.get(),), (*GRAD.get(),)) == FRESH


# The others ask a new thread, which records.
@pytest.mark.parametrize(
    "scenario", [s for s in SCENARIOS if s not in (closed_by_another_thread, steps_of_a_pool_in_copies)], ids=lambda s: s.__name__
)
def test_recording_can_be_resumed_inside_a_mode_and_left_anywhere(scenario: Callable[..., None]) -> None:
    with turnout.no_grad():
        scenario(turnout.enable_grad, _as(True))
        assert not turnout.is_grad_enabled()
    assert turnout.is_grad_enabled()


def test_a_mode_set_inside_a_block_ends_with_the_block() -> None:
    with turnout.no_grad():
        turnout.set_grad_enabled(True)
        assert turnout.is_grad_enabled()
    assert turnout.is_grad_enabled()
    with contextlib.suppress(KeyError), turnout.no_grad():
        turnout.set_grad_enabled(True)
        raise KeyError
    assert tuple(GRAD.get()) == (1, 1)


def test_the_loop_variable_of_an_async_generator_that_was_left_by_break_records_again() -> None:
    import asyncio
    from collections.abc import AsyncIterator

    async def rows() -> AsyncIterator[turnout.Tensor]:
        with turnout.no_grad():
            yield turnout.ones(2)

    async def main() -> bool:
        weight = turnout.ones(2, requires_grad=True)
        async for row in rows():
            assert not (weight * row).requires_grad
            break
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return bool((weight * row).requires_grad)

    assert asyncio.run(main())


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_an_interrupt_at_a_random_moment_leaves_no_state_changed(seeds: Callable[[int], range]) -> None:
    wrong = [line for seed in seeds(40) for line in interrupts.broken_by(seed, rounds=5)]
    assert wrong == []
