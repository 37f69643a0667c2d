"""`explain`, the call, and the call without turnout-speed say the same of kernels at every key, while these come and go."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial

import pytest
from compiled_calls import watched

import turnout
from random_programs import kernels_at_keys as programs
from random_programs import replaced_kernels
from turnout import state
from turnout.library import Library
from turnout.state import FRESH


def differences(seed: int) -> list[str]:
    """What of a program's calls is not as it is explained: the kernels in its path, as far as each goes on."""
    steps, found = programs.drawn(seed), []
    for number, call, passed, operator, given in programs.calls(programs.OURS, steps, f"program{seed}"):
        ends = {
            step.key: step.how == "ends" for step in steps[: number + 1] if (step.operator, step.what) == (operator.name, "impl")
        }
        chosen = turnout.explain(operator, *given[0], **given[1]).path
        path = [step.at for step in chosen if step.at and step.reason != "backend fallback"]
        last = next((i for i, key in enumerate(path) if ends[key]), None)
        explained = [*path, "an error"] if last is None else path[: last + 1]
        run = partial(programs.run, operator, given, passed)
        found += [f"{seed}, {number}: {call} passes {did}, not {explained}" for did in (run(), watched(run)) if did != explained]
    return found


@pytest.mark.parametrize("part", range(4))
def test_calls_pass_the_kernels_that_explain_names(part: int, seeds: Callable[..., range]) -> None:
    assert [each for seed in [*seeds(32, many=5000)][part::4] for each in differences(seed)] == []


@pytest.mark.parametrize("part", range(4))
def test_what_an_operator_is_written_in_passes_a_kernel_at_any_key(part: int, seeds: Callable[..., range]) -> None:
    assert [each for seed in [*seeds(16, many=4000)][part::4] for each in replaced_kernels.drawn(seed)] == []


def test_a_kernel_at_backend_select_switches_what_all_threads_read_and_its_end_switches_back() -> None:
    x, seen, turns = turnout.ones(2), [], threading.Barrier(2, timeout=60)

    def calls() -> None:
        for _ in range(3):
            turns.wait()
            seen.append((state.current() is FRESH, (x + x).tolist()))
            turns.wait()

    thread = threading.Thread(target=calls)
    thread.start()
    turns.wait(), turns.wait()
    with Library("aten", "IMPL") as library:
        library.impl("add.Tensor", lambda self, other, *, alpha=1: turnout.zeros(1), "BackendSelect")
        turns.wait(), turns.wait()
    turns.wait(), turns.wait()
    thread.join()
    assert seen == [(True, [2.0, 2.0]), (False, [0.0]), (True, [2.0, 2.0])]


@pytest.mark.parametrize("schema", ["f(int n) -> Tensor", "f(Tensor x) -> Tensor"])
@pytest.mark.parametrize("key", ["CPU", "AutogradCPU", "ADInplaceOrView", "BackendSelect"])
def test_only_a_kernel_at_backend_select_of_an_operator_with_tensors_slows_calls(key: str, schema: str) -> None:
    turnout.ones(1) + 1
    with Library("slows", "FRAGMENT") as library, Library("slows", "FRAGMENT") as definition:
        library.impl("f", lambda x: x, key)
        assert state.current() is FRESH
        definition.define(schema)
        assert (state.current() is FRESH) == (key != "BackendSelect" or "Tensor x" not in schema)
        definition.undo()
        assert state.current() is FRESH
