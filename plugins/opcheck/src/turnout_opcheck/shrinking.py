"""The smallest arguments at which a check still finds the same kind of problem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from turnout import Tensor
from turnout_opcheck import derived
from turnout_opcheck.derived import Args
from turnout_opcheck.report import NotTriedError, Problem
from turnout_opcheck.subject import Subject

STEPS = 12  # calls of a check at most


def smallest(check: Any, subject: Subject, problem: Problem) -> tuple[Subject, Problem]:
    """The subject with the fewest elements that was found, and the problem there."""
    steps = STEPS
    progress = True
    while progress and steps:
        progress = False
        for args in _smaller(subject):
            steps -= 1
            found = _same(check, Subject(subject.op, args), problem)
            if found is not None:
                subject, problem, progress = *found, True
                break
            if not steps:
                break
    return subject, problem


def _same(check: Any, subject: Subject, problem: Problem) -> tuple[Subject, Problem] | None:
    try:
        for each in check(subject):
            if each.kind == problem.kind:
                return subject, each
    except NotTriedError:
        pass
    except Exception:  # noqa: BLE001 - smaller arguments that do not fit together may raise anything
        pass
    return None


def _smaller(subject: Subject) -> Iterator[Args]:
    """The arguments with all dims of one length shortened to 1, 2 or half."""
    lengths = sorted({n for _, t in subject.tensors() for n in t.shape if n > 1}, reverse=True)
    for length in lengths:
        for target in dict.fromkeys((1, 2, length // 2)):
            if 0 < target < length:
                yield derived.mapped(subject.args, _shortened(length, target))


def _shortened(length: int, target: int) -> derived.Change:
    def change(tensor: Tensor) -> Tensor:
        plain = derived.copy(tensor)
        for dim, n in enumerate(plain.shape):
            if n == length:
                plain = plain.narrow(dim, 0, target)
        made = plain.clone()
        return made.requires_grad_() if tensor.requires_grad else made

    return change


def shown(subject: Subject) -> str:
    """A call in short: `mylib::f(float64[2, 3], 4, out=float64[2])`."""
    parts = []
    for argument, value in zip(subject.schema.arguments, subject.args, strict=True):
        text = _value(value)
        parts.append(f"{argument.name}={text}" if argument.kwarg_only else text)
    return f"{subject.op.qualified_name}({', '.join(parts)})"


def _value(value: Any) -> str:
    if isinstance(value, Tensor):
        text = f"{value.dtype.name}{list(value.shape)}"
        if 0 < value.numel() <= 4:
            text += f" {_numbers(value.detach().cpu().tolist())}"
        return text
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_value, value))
        return f"[{inside}]"
    return _numbers(value)


def _numbers(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_numbers, value))}]"
    return f"{value:.4g}" if isinstance(value, (float, complex)) else repr(value)
