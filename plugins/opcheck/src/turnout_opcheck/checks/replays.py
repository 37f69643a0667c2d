"""Traces: the recorded graph, replayed on other values, must give what the operator gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import turnout
from turnout import Tensor
from turnout.operators.values import flat
from turnout_opcheck import derived
from turnout_opcheck.checks.registration import tracked
from turnout_opcheck.comparing import difference
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import run
from turnout_opcheck.report import OPERATORS_ALONE, NotTriedError, Problem, need
from turnout_opcheck.subject import Subject, fresh


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    need("functionality:Tracer", "turnout-tracer")
    subject.need_tensor_results("a graph cannot compute")
    with turnout.enable_grad():
        graph = traced(subject, function_of(subject))
    with turnout.no_grad():
        for change in (derived.other_values, derived.negated):
            if text := told(subject, derived.mapped(subject.args, change), function_of(subject), graph):
                fix = f"{OPERATORS_ALONE}: a number that is read, item(), becomes a constant of the graph"
                yield Problem("replay", f"a replay of its trace on other values differs: {text}", fix)


def function_of(subject: Subject) -> Callable[[list[Tensor]], list[Any]]:
    """The operator as a function of its distinct tensors."""
    ids = list(dict.fromkeys(id(t) for _, t in subject.tensors()))

    def function(tensors: list[Tensor]) -> list[Any]:
        at = dict(zip(ids, tensors, strict=True))
        return flat(run(subject.op, derived.mapped(subject.args, lambda t: at[id(t)])))

    return function


def distinct(subject: Subject, args: Args) -> list[Tensor]:
    """The tensors of a call, each once."""
    return list({id(t): t for _, t in derived.tensors(subject.op, args)}.values())


def traced(
    subject: Subject, function: Callable[[list[Tensor]], list[Any]], given: list[Tensor] | None = None
) -> Callable[..., Any]:
    """The graph of a call on tensors, by default the given ones. Raises NotTriedError where there can be none."""
    inputs = distinct(subject, arguments(subject)) if given is None else given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            graph: Callable[..., Any] = subject.seeded(lambda: turnout.trace(function)(inputs))
        except Exception as error:  # noqa: BLE001 - what a trace refuses is its own matter
            raise NotTriedError(f"it cannot be traced: {str(error).partition(chr(10))[0]}") from None
    return graph


def arguments(subject: Subject) -> Args:
    """Arguments that require gradients: of a composite, the operators that it consists of are then recorded."""
    return tracked(subject, subject.args) if subject.is_composite and not subject.schema.is_mutable else fresh(subject.args)


def told(
    subject: Subject, args: Args, function: Callable[..., Any], other: Callable[..., Any],
    gives_up: tuple[type[Exception], ...] = (),
) -> str:  # fmt: skip
    """What another function does otherwise on the tensors of a call; "" for nothing, and where one does not take them.

    `gives_up` are the errors with which the other one says so.
    """
    first, second = (distinct(subject, fresh(args)) for _ in range(2))
    try:
        expected = subject.seeded(lambda: function(second))
    except Exception:  # noqa: BLE001 - the operator does not accept these values
        return ""
    try:
        found = subject.seeded(lambda: other(first))
    except gives_up:
        return ""
    except Exception as error:  # noqa: BLE001 - a replay may raise what a kernel raises
        return f"it raised {type(error).__name__}: {error}"
    return difference([found, first], [expected, second])
