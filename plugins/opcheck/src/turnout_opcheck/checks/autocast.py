"""Autocast: inside it, an operator with a rule must give what it gives for arguments in lower precision."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import turnout
from turnout import Tensor
from turnout.dtypes import DType
from turnout.operators.values import flat
from turnout_opcheck import derived
from turnout_opcheck.comparing import difference
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import run
from turnout_opcheck.report import NotTriedError, Problem, need
from turnout_opcheck.subject import Subject, fresh

PRECISIONS = (turnout.bfloat16, turnout.float16, turnout.float32)


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    need("functionality:Autocast", "turnout-autocast")
    if not subject.has_rule("Autocast"):
        raise NotTriedError("it has no rule for autocast")
    if not any(t.is_floating_point() for _, t in subject.tensors()):
        raise NotTriedError("no argument is a floating tensor")
    device = subject.tensors()[0][1].device.type
    # A rule casts no float64 tensor.
    args = derived.mapped(subject.args, derived.cast(turnout.float64, turnout.float32))
    with turnout.no_grad():
        try:
            with turnout.autocast(device, dtype=turnout.bfloat16):
                found = flat(subject.seeded(lambda: run(subject.op, fresh(args))))
        except Exception as error:  # noqa: BLE001 - a rule may raise anything
            text = f"inside autocast the operator raised {type(error).__name__}: {error}"
            yield Problem("raised", text, "register_autocast with a dtype that the kernels accept, for all floating inputs")
            return
        told = ""
        for precision in PRECISIONS:
            try:
                expected = flat(_at(subject, args, precision))
            except Exception:  # noqa: BLE001 - the operator has no kernel for it
                continue
            differs = difference(found, expected)
            if not differs:
                return
            told = told or differs
        text = f"inside autocast the result is not that of arguments cast to one lower precision: {told}"
        yield Problem(
            "autocast", text, "register_autocast, which casts all floating inputs and calls the operator without autocast"
        )


def _at(subject: Subject, args: Args, precision: DType) -> Any:
    """The call with floating tensors of another precision."""
    cast = derived.mapped(fresh(args), lambda t: t.to(precision) if _is_cast(t) else t)
    return subject.seeded(lambda: run(subject.op, cast))


def _is_cast(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype is not turnout.float64
