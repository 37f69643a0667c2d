"""Every operator case and random programs through `turnout.compile` with an engine, against the function itself.

Compiled calls must give the values, dtypes, strides, aliases and writes of the eager ones, on other values than those of the
first call, and the same random numbers. `--turnout-engine-close` allows numbers to differ by that much.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import turnout
from turnout import compiler
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.compiled import Outcome, SizedOutcome
from turnout_conformance.engine import Engine
from turnout_conformance.making import leaf, row_major, samples, samples_of_kinds
from turnout_conformance.replays import Way, call_of, check_replays, gradients_of

PROGRAMS = 25  # of a test
PARTS = 16


def way(turnout_engine: Engine) -> Way:
    """A compiled function that has been called once is called again where a trace would be replayed."""

    def first(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(args: Any, kwargs: Any) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", compiler.CompileWarning)
                compiled = turnout.compile(function, engine=turnout_engine.name)
                compiled(args, kwargs)
            return compiled

        return call

    return Way(first, turnout_engine.close)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_operator(turnout_engine: Engine, case: OperatorCase) -> None:
    device = turnout_engine.device
    check_replays(call_of(case), samples_of_kinds(case, device), row_major(device), (way(turnout_engine),))


DIFFERENTIABLE = [case for case in CASES if case.differentiable and "float32" in case.dtypes]


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_gradients_inside(turnout_engine: Engine, case: OperatorCase) -> None:
    device = turnout_engine.device
    check_replays(gradients_of(case), samples(case, device, ("float32",)), leaf(device), (way(turnout_engine),))


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_gradients_through(turnout_engine: Engine, case: OperatorCase) -> None:
    device = turnout_engine.device

    def first(_: Any) -> Callable[..., Any]:
        def call(args: Any, kwargs: Any) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", compiler.CompileWarning)
                gradients = gradients_of(case, turnout.compile(call_of(case), engine=turnout_engine.name))
                gradients(args, kwargs)
            return gradients

        return call

    check_replays(gradients_of(case), samples(case, device, ("float32",)), leaf(device), (Way(first, turnout_engine.close),))


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(turnout_engine: Engine, part: int) -> None:
    ran = 0
    for seed in range(part * PROGRAMS, (part + 1) * PROGRAMS):
        outcome = Outcome(seed, turnout_engine.name, turnout_engine.device, turnout_engine.close)
        assert not outcome.problem, f"{outcome.problem}\n{outcome.text}"
        ran += outcome.ran
    assert ran >= PROGRAMS, "most calls of these programs ran eagerly: the engine takes too few graphs"


@pytest.mark.parametrize("part", range(PARTS // 4))
def test_random_programs_of_several_sizes(turnout_engine: Engine, part: int) -> None:
    traced = 0
    for seed in range(part * PROGRAMS, (part + 1) * PROGRAMS):
        outcome = SizedOutcome(seed, turnout_engine.name, turnout_engine.device, turnout_engine.close)
        assert not outcome.problem, f"{outcome.problem}\n{outcome.text}"
        traced += outcome.traced
    assert traced >= PROGRAMS, "most sizes of these programs ran eagerly: the engine takes too few graphs"
