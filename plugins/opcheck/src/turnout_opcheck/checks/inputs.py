"""Inputs that nobody sampled: other layouts must give the same values, and arguments that are not accepted must be refused."""

from __future__ import annotations

from collections.abc import Iterator

import turnout
from turnout.operators.values import flat
from turnout_opcheck import derived
from turnout_opcheck.comparing import difference, float32_only
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import left_by, run
from turnout_opcheck.report import Problem
from turnout_opcheck.subject import EMPTY, FASTEST, GAPS, REPEATED, SCALARS, Subject, Variant, fails_by_accident, fresh

# Variant -> what it is, in messages.
PLACES = {
    **{layout: f"another layout of the same values ({layout})" for layout in (GAPS, FASTEST)},
    EMPTY: "empty tensors",
    SCALARS: "tensors of 0 dims",
}


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    with turnout.no_grad():
        given = outcome(subject, subject.args)
        for variant in subject.variants():
            if variant.error is not None and fails_by_accident(variant.error, not variant.layout):
                yield _accident(variant)
            elif variant.error is None and variant.layout:
                yield from _layout(subject, variant, given)
            elif variant.name == REPEATED and variant.error is None:
                dense = derived.mapped(variant.args, derived.contiguous)
                yield from _layout(subject, variant, outcome(subject, dense))
        yield from check_precision(subject)


def outcome(subject: Subject, args: Args) -> list[object]:
    """The results of a call and what became of its tensors."""
    copies = fresh(args)
    value = subject.seeded(lambda: run(subject.op, copies))
    return left_by(subject.op, value, copies)


def _accident(variant: Variant) -> Problem:
    kind = type(variant.error).__name__
    where = PLACES.get(variant.name, variant.name)
    text = f"the operator raised {kind} for {where}: {variant.error}"
    return Problem(f"raised for {variant.name}", text, "compute it, or refuse it with a ValueError that says what is expected")


def _layout(subject: Subject, variant: Variant, given: list[object]) -> Iterator[Problem]:
    told = difference(outcome(subject, variant.args), given)
    if told:
        text = f"another layout of the same values ({variant.name}) gives another result: {told}"
        yield Problem("layout", text, "read elements by shape and strides, or make the input contiguous first")


def check_precision(subject: Subject) -> Iterator[Problem]:
    """Whether float64 arguments are computed in float32."""
    tensors = [t for _, t in subject.tensors() if t.dtype is turnout.float64 and t.numel() > 1]
    if not tensors or any(float32_only(t) for t in tensors) or _names_dtype(subject):
        return
    for value in flat(subject.run(fresh(subject.args))):
        if isinstance(value, turnout.Tensor) and float32_only(value):
            text = "the result for float64 arguments has the precision of float32"
            yield Problem("precision", text, "compute in the dtype of the arguments")


def _names_dtype(subject: Subject) -> bool:
    return any(a.type.canonical.rstrip("?") == "ScalarType" for a in subject.schema.arguments)
