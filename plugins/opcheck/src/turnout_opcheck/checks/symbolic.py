"""Traces in which nothing is fixed: in functional form, and of a composite with sizes that are symbols, replayed on other sizes.

A composite that takes a size for a number, without deciding anything about it, computes with the number of the trace in each
replay. The trace of another operator is one call, and its sizes are a matter of its fake kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import turnout
from turnout import FakeMode, SymInt
from turnout_opcheck import derived
from turnout_opcheck.checks import functional
from turnout_opcheck.checks.replays import arguments, distinct, function_of, told, traced
from turnout_opcheck.report import SIZES_AS_THEY_ARE, NotTriedError, Problem, is_there
from turnout_opcheck.subject import Subject


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    yield from functional.check(subject)
    if subject.is_composite and not subject.gives_numbers and is_there("device:meta"):
        yield from _other_sizes(subject)


def _other_sizes(subject: Subject) -> Iterator[Problem]:
    """A replay on other sizes gives what the operator gives, or says which decision of the trace does not hold."""
    graph = _graph(subject)
    if graph is None:
        return
    lengths = dict.fromkeys(n for _, t in subject.tensors() for n in t.shape if n > 1)
    with turnout.no_grad():
        for length in lengths:
            given = derived.mapped(subject.args, derived.longer(length))
            if text := told(subject, given, function_of(subject), graph, (turnout.graphs.TraceError,)):
                fix = f"{SIZES_AS_THEY_ARE}: x.shape[0] need not be an int, and has no other value"
                yield Problem("sizes", f"a replay of its trace on other sizes differs: {text}", fix)


def _graph(subject: Subject) -> Callable[..., Any] | None:
    """The graph of a call whose sizes are symbols; None where it cannot be traced, or has no such size."""
    mode = FakeMode(dynamic=True, allow_non_fake_inputs=True)
    with turnout.enable_grad():
        given = [mode.from_tensor(t) for t in distinct(subject, arguments(subject))]
        if not any(isinstance(n, SymInt) for t in given for n in t.shape):
            return None
        try:
            return traced(subject, function_of(subject), given)
        except NotTriedError:
            return None
