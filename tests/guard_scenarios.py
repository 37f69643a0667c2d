"""Ways in which a guard's block ends where it did not begin. Each takes a function that makes the guard and one that says whether
it is on, and checks that nothing is raised and that the guard is off afterwards, wherever it had been on.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from outcomes import in_threads

Make = Callable[[], Any]
IsOn = Callable[[], bool]


def _generator(make: Make) -> Iterator[int]:
    with make():
        yield 1
        yield 2


async def _async_generator(make: Make) -> AsyncIterator[int]:
    with make():
        yield 1
        yield 2


def begun_in_a_copy_and_closed_here(make: Make, is_on: IsOn) -> None:
    steps = _generator(make)
    contextvars.copy_context().run(next, steps)
    assert not is_on()
    steps.close()
    assert not is_on()


def begun_here_and_closed_in_a_copy(make: Make, is_on: IsOn) -> None:
    steps = _generator(make)
    next(steps)
    assert is_on()
    inside: list[bool] = []
    contextvars.copy_context().run(lambda: (steps.close(), inside.append(is_on())))
    assert (inside, is_on()) == ([False], False)


def each_step_in_another_copy(make: Make, is_on: IsOn) -> None:
    steps = _generator(make)
    found = [contextvars.copy_context().run(lambda: (next(steps, 0), is_on())) for _ in range(3)]
    assert [made for made, _ in found] == [1, 2, 0]
    assert [on for _, on in found] == [True, False, False]
    assert not is_on()


def closed_by_another_thread(make: Make, is_on: IsOn) -> None:
    steps = _generator(make)
    next(steps)
    inside: list[bool] = []
    thread = threading.Thread(target=lambda: (steps.close(), inside.append(is_on())))
    thread.start()
    thread.join()
    assert (inside, is_on()) == ([False], False)


def collected_in_another_thread(make: Make, is_on: IsOn) -> None:
    steps: list[Any] = [_generator(make)]
    next(steps[0])
    steps.append(steps)  # a cycle: only the collector finds it
    gc.collect()
    assert is_on()
    del steps
    in_threads(gc.collect)
    assert not is_on()


def steps_of_a_pool_in_copies(make: Make, is_on: IsOn) -> None:
    """As frameworks run the `yield` dependencies of a request: each half in a thread, in a copy of the context."""
    steps = _generator(make)
    with ThreadPoolExecutor(2) as pool:
        pool.submit(contextvars.copy_context().run, next, steps).result()
        pool.submit(contextvars.copy_context().run, steps.close).result()
        assert not pool.submit(is_on).result()
    assert not is_on()


def generators_by_turns(make: Make, is_on: IsOn) -> None:
    """The first that began ends first."""
    first, second, third = _generator(make), _generator(make), _generator(make)
    for steps in (first, second, third):
        next(steps)
    for steps in (second, first):
        steps.close()
        assert is_on()
    third.close()
    assert not is_on()


def two_blocks_of_one_generator_closed_in_a_copy(make: Make, is_on: IsOn) -> None:
    def nested() -> Iterator[int]:
        with make(), make():
            yield 1

    steps = nested()
    next(steps)
    contextvars.copy_context().run(steps.close)
    assert not is_on()


def inside_a_block_that_is_left_later(make: Make, is_on: IsOn) -> None:
    with make():
        steps = _generator(make)
        next(steps)
        contextvars.copy_context().run(steps.close)
        assert is_on()
    assert not is_on()


def left_by_hand_in_a_copy(make: Make, is_on: IsOn) -> None:
    guard = make()
    guard.__enter__()
    assert is_on()
    contextvars.copy_context().run(guard.__exit__, None, None, None)
    assert not is_on()


def a_stack_closed_in_a_copy(make: Make, is_on: IsOn) -> None:
    stack = contextlib.ExitStack()
    stack.enter_context(make())
    stack.enter_context(make())
    assert is_on()
    contextvars.copy_context().run(stack.close)
    assert not is_on()


def entered_by_hand_inside_a_block_and_forgotten(make: Make, is_on: IsOn) -> None:
    with make():
        make().__enter__()
    assert not is_on()


def an_async_generator_left_by_break(make: Make, is_on: IsOn) -> None:
    async def main() -> tuple[bool, bool, list[Any]]:
        problems: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
        async for _ in _async_generator(make):
            inside = is_on()
            break
        for _ in range(5):
            await asyncio.sleep(0)
        gc.collect()
        return inside, is_on(), problems

    assert asyncio.run(main()) == (True, False, [])


def an_async_generator_closed_by_another_task(make: Make, is_on: IsOn) -> None:
    async def main() -> tuple[bool, bool]:
        steps = _async_generator(make)
        await steps.__anext__()
        inside = is_on()
        await asyncio.create_task(steps.aclose())  # type: ignore[attr-defined]
        return inside, is_on()

    assert asyncio.run(main()) == (True, False)


def a_fixture_whose_halves_are_tasks(make: Make, is_on: IsOn) -> None:
    """As plugins for asyncio run fixtures: set-up, test and teardown are tasks of their own."""

    async def main() -> list[bool]:
        steps = _async_generator(make)

        async def half() -> bool:
            await anext(steps, 0)
            return is_on()

        async def test() -> bool:
            return is_on()

        return [await asyncio.create_task(each) for each in (half(), test(), half(), half(), test())]

    assert asyncio.run(main()) == [True, False, False, False, False]


def tasks_by_turns(make: Make, is_on: IsOn) -> None:
    async def main() -> None:
        async def task(guarded: bool) -> None:
            for _ in range(5):
                with make() if guarded else contextlib.nullcontext():
                    await asyncio.sleep(0)
                    assert is_on() is guarded
                assert not is_on()

        await asyncio.gather(task(True), task(False), task(True))

    asyncio.run(main())


def a_task_keeps_what_it_was_started_with(make: Make, is_on: IsOn) -> None:
    async def main() -> tuple[bool, bool]:
        async def late() -> bool:
            await asyncio.sleep(0.001)
            return is_on()

        with make():
            task = asyncio.create_task(late())
        return is_on(), await task

    assert asyncio.run(main()) == (False, True)


def a_block_that_is_interrupted(make: Make, is_on: IsOn) -> None:
    try:
        with make():
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        assert not is_on()


SCENARIOS = [
    begun_in_a_copy_and_closed_here, begun_here_and_closed_in_a_copy, each_step_in_another_copy, closed_by_another_thread,
    collected_in_another_thread, steps_of_a_pool_in_copies, generators_by_turns, two_blocks_of_one_generator_closed_in_a_copy,
    inside_a_block_that_is_left_later, left_by_hand_in_a_copy, a_stack_closed_in_a_copy,
    entered_by_hand_inside_a_block_and_forgotten, an_async_generator_left_by_break, an_async_generator_closed_by_another_task,
    a_fixture_whose_halves_are_tasks, tasks_by_turns, a_task_keeps_what_it_was_started_with, a_block_that_is_interrupted,
]  # fmt: skip
