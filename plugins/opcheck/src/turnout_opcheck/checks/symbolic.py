"""Functional and symbolic replays, where the plugins that they need are installed."""

from __future__ import annotations

from collections.abc import Iterator

import turnout
from turnout_opcheck import derived
from turnout_opcheck.checks.replays import distinct, function_of
from turnout_opcheck.comparing import difference
from turnout_opcheck.report import NotTriedError, Problem, need
from turnout_opcheck.subject import Subject, fresh


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    need("functionality:Functionalize", "turnout-functionalize")
    if not subject.tensors():
        raise NotTriedError("the operator takes no tensor")
    with turnout.no_grad():
        yield from _functional(subject)


def _functional(subject: Subject) -> Iterator[Problem]:
    """Functionalised, the operator gives the same results and leaves the same in what it writes."""
    first, second = (distinct(subject, derived.mapped(fresh(subject.args), derived.other_values)) for _ in range(2))
    try:
        expected = subject.seeded(lambda: function_of(subject)(second))
    except Exception:  # noqa: BLE001 - the operator does not accept these values
        return
    try:
        found = subject.seeded(lambda: turnout.func.functionalize(function_of(subject))(first))
    except Exception as error:  # noqa: BLE001 - what a kernel raises
        told = f"it raised {type(error).__name__}: {error}"
    else:
        told = difference([found, first], [expected, second])
    if told:
        yield Problem(
            "functional", f"functionalised, the operator differs: {told}", "declare in the schema what is written and shared"
        )
