"""Registration of gradients: a rule or a composite gives results that require a gradient, and nothing below Autograd does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import turnout
from turnout import Tensor
from turnout.operators.values import flat
from turnout_opcheck import derived
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import run
from turnout_opcheck.report import NotTriedError, Problem
from turnout_opcheck.subject import Subject, fresh

OUTPUTS = "outputs that the caller gives take no gradient"


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    need_differentiable(subject)
    try:
        with turnout.enable_grad():
            run(subject.op, tracked(subject, subject.args))
    except Exception as error:  # noqa: BLE001 - a kernel may raise anything
        if subject.schema.out_arguments:
            raise NotTriedError(OUTPUTS) from None
        text = f"the operator raised {type(error).__name__} where its arguments require a gradient: {error}"
        yield Problem("tracked", text, "read values of x.detach(), and write gradients as a rule, with register_autograd")
        return
    with turnout.enable_grad():
        for value in flat(run(subject.op, fresh(subject.args))):
            if isinstance(value, Tensor) and value.requires_grad:
                text = "the kernel records a gradient below Autograd: the result requires one, and no argument does"
                yield Problem("below", text, "register_autograd with the gradient, and return detached results from the kernel")
        if not subject.has_rule("Autograd"):
            return
        results = [v for v in flat(run(subject.op, tracked(subject, subject.args))) if isinstance(v, Tensor)]
        floating = [v for v in results if v.is_floating_point() or v.is_complex()]
        if floating and not any(v.requires_grad for v in floating):
            text = "a kernel is registered for Autograd, and the result does not require a gradient where the arguments do"
            yield Problem(
                "untracked", text, "register_autograd with the gradient, or redispatch below Autograd in an autograd.Function"
            )
        if any(v.requires_grad for v in results if not (v.is_floating_point() or v.is_complex())):
            yield Problem("integers", "a result without floating values requires a gradient", "mark it as not differentiable")


def differentiable(subject: Subject) -> list[str]:
    """The names of the floating and complex tensors that the operator reads and does not write."""
    targets = derived.written(subject.op, subject.args)
    return [n for n, t in subject.tensors() if (t.is_floating_point() or t.is_complex()) and id(t) not in targets]


def need_differentiable(subject: Subject) -> list[str]:
    """The same; NotTriedError where there are none."""
    names = differentiable(subject)
    if not names:
        raise NotTriedError("no argument is a floating or complex tensor that the operator only reads")
    return names


def tracked(subject: Subject, args: Args, names: Any = None) -> Args:
    """Copies of arguments; those of `names`, by default all that are differentiable, require a gradient."""
    names = set(differentiable(subject) if names is None else names)
    wanted = {id(t) for n, t in derived.tensors(subject.op, args) if n in names}

    def change(tensor: Tensor) -> Tensor:
        made = derived.copy(tensor)
        return made.detach().requires_grad_() if id(tensor) in wanted else made

    return derived.mapped(args, change)
