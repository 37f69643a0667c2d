"""Functional form: without writes, and without views, the operator and a trace of it must give what it gives.

It gets views, which functionalize makes copies. So a write that the schema does not tell is lost, and seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import turnout
from turnout import Tensor, plugins
from turnout_opcheck import derived
from turnout_opcheck.checks.replays import function_of, told, traced
from turnout_opcheck.report import Problem, need
from turnout_opcheck.subject import Subject


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    need("functionality:Functionalize", "turnout-functionalize")
    need("functionality:Tracer", "turnout-tracer")
    subject.need_tensors()
    with turnout.no_grad():
        yield from _functional(subject)


def _functional(subject: Subject) -> Iterator[Problem]:
    """Functionalised, the operator gives the same results and leaves the same in what it writes."""
    function, args = _on_views(subject), derived.mapped(subject.args, derived.other_values)
    fix = "declare in the schema what is written and shared"
    for remove in plugins.service("Functionalize").REMOVE:
        functional = turnout.func.functionalize(function, remove=remove)
        if text := told(subject, args, function, functional):
            yield Problem("functional", f"functionalised, the operator differs: {text}", fix)
        if subject.gives_numbers:
            continue
        if text := told(subject, args, function, traced(subject, functional)):
            yield Problem("functional", f"a replay of its functionalised trace differs: {text}", fix)


def _on_views(subject: Subject) -> Callable[[list[Tensor]], list[Any]]:
    """The operator on views of copies, and then the copies: a write that the schema does not tell is lost in them."""
    function = function_of(subject)

    def call(tensors: list[Tensor]) -> list[Any]:
        bases = [derived.copy(t) for t in tensors]
        return [function([b.view(b.shape) for b in bases]), bases]

    return call
