"""Composites: a CompositeImplicitAutograd kernel is made of operators, so that gradients, batches and traces see all of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import turnout
from turnout import DispatchMode, Tensor
from turnout.operators import Operator
from turnout.operators.values import flat
from turnout_opcheck import derived
from turnout_opcheck.checks.registration import differentiable, tracked
from turnout_opcheck.comparing import array
from turnout_opcheck.observing import run, share
from turnout_opcheck.report import OPERATORS_ALONE, NotTriedError, Problem
from turnout_opcheck.subject import Subject, fresh

FIX = f"{OPERATORS_ALONE}, or register the kernel for CompositeExplicitAutograd and give it a gradient"
STEP = 1e-6


class _Recorder(DispatchMode):
    """Keeps what every operator returns."""

    def __init__(self) -> None:
        self.made: list[Tensor] = []

    def dispatch(self, op: Operator, ks: int, args: tuple[Any, ...]) -> Any:
        """Run the operator, and keep its results."""
        result = op.redispatch(ks, *args)
        self.made += [t for t in flat(result) if isinstance(t, Tensor)]
        return result


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    if not subject.is_composite:
        raise NotTriedError("no CompositeImplicitAutograd kernel serves it")
    recorder = _Recorder()
    with turnout.no_grad():
        args = fresh(subject.args)
        with recorder:
            found = run(subject.op, args)
        known = [*recorder.made, *(t for _, t in derived.tensors(subject.op, args))]
        for value in flat(found):
            if isinstance(value, Tensor) and value.numel() and not any(value is t or share(value, t) for t in known):
                text = "a result was made outside of operators: gradients, batches and traces do not see how"
                yield Problem("outside", text, FIX)
                return
    yield from _drops_gradient(subject)


def _drops_gradient(subject: Subject) -> Iterator[Problem]:
    """Whether a result that depends on the arguments does not require a gradient."""
    if not differentiable(subject) or subject.schema.is_mutable or subject.is_random or subject.op.name.startswith("detach"):
        return
    args = derived.mapped(subject.args, derived.in_double)
    try:
        with turnout.enable_grad():
            values = flat(run(subject.op, tracked(subject, args)))
        with turnout.no_grad():
            near = flat(run(subject.op, derived.mapped(args, lambda t: t + STEP if t.is_floating_point() else derived.copy(t))))
    except Exception:  # noqa: BLE001 - not accepted in double precision
        return
    floating = [v for v in values if isinstance(v, Tensor) and v.is_floating_point()]
    if any(v.requires_grad for v in floating):  # of several results some may be declared constant
        return
    for value, moved in zip(values, near, strict=True):
        if not isinstance(value, Tensor) or value.requires_grad or not value.is_floating_point() or value.shape != moved.shape:
            continue
        with np.errstate(all="ignore"):
            slope = np.abs(array(moved) - array(value)) / STEP
        if np.any((slope > 1e-3) & (slope < 1e3)):
            text = "a result that depends on the arguments does not require a gradient where they do"
            yield Problem("dropped", text, FIX)
            return
