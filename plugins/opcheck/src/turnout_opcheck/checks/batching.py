"""Batches: `turnout.vmap` of the operator must give what a loop over the examples gives, whichever arguments are batched."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import turnout
from turnout import Tensor
from turnout.operators.values import flat
from turnout_opcheck import derived
from turnout_opcheck.checks.replays import distinct
from turnout_opcheck.comparing import difference
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import run
from turnout_opcheck.report import NotTriedError, Problem, need
from turnout_opcheck.subject import DYNAMIC, Subject, fresh

FIX = "register_vmap with a rule that computes the batch as the examples, and returns the batch dim of each result"


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    need("functionality:Batched", "turnout-batched")
    subject.need_tensor_results("differs between examples")
    if subject.is_random or subject.schema.is_mutable or subject.schema.is_view or any(t in subject.op.tags for t in DYNAMIC):
        raise NotTriedError("its examples are not independent: it draws, writes, returns views or sizes that depend on data")
    if not subject.has_rule("Batched"):
        raise NotTriedError("it has no batching rule: each example is a call of its own")
    examples = _examples(subject)
    with turnout.no_grad():
        for dims in _choices(subject):
            yield from _one(subject, examples, dims)


def _examples(subject: Subject) -> list[Args]:
    """The given call and two of other values."""
    found = [subject.args]
    for change in (derived.other_values, derived.negated):
        args = derived.mapped(subject.args, change)
        try:
            with turnout.no_grad():
                run(subject.op, fresh(args))
        except Exception:  # noqa: BLE001 - not accepted
            args = subject.args
        found.append(args)
    return found


def _choices(subject: Subject) -> Iterator[list[int | None]]:
    """The batch dim of each distinct tensor, None where it is shared."""
    tensors = distinct(subject, subject.args)
    yield [0] * len(tensors)
    if any(t.ndim for t in tensors):
        yield [t.ndim for t in tensors]
        yield [min(1, t.ndim) for t in tensors]
    if len(tensors) > 1:
        for i in range(len(tensors)):
            yield [0 if k == i else None for k in range(len(tensors))]
        yield [0 if k % 2 else t.ndim for k, t in enumerate(tensors)]


def _one(subject: Subject, examples: list[Args], dims: list[int | None]) -> Iterator[Problem]:
    rows = [distinct(subject, fresh(args)) for args in examples]
    batch = [rows[0][i] if dim is None else turnout.stack([row[i] for row in rows], dim) for i, dim in enumerate(dims)]
    calls = [[rows[0][i] if dim is None else row[i] for i, dim in enumerate(dims)] for row in rows]
    expected = [flat(_call(subject, call)) for call in calls]
    where = "" if all(dim == 0 for dim in dims) else f" with in_dims {dims}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = turnout.vmap(lambda *tensors: tuple(flat(_call(subject, list(tensors)))), in_dims=tuple(dims))(*batch)
    except Exception as error:  # noqa: BLE001 - a rule may raise anything
        yield Problem("raised", f"vmap{where} raised {type(error).__name__}: {error}", FIX)
        return
    for i, value in enumerate(flat(found)):
        together = turnout.stack([row[i] for row in expected], 0)
        told = difference(value, together)
        if told:
            yield Problem("vmap", f"vmap{where} gives another result than a loop over the examples: {told}", FIX)
            return


def _call(subject: Subject, tensors: list[Tensor]) -> Any:
    ids = list(dict.fromkeys(id(t) for _, t in subject.tensors()))
    at = dict(zip(ids, tensors, strict=True))
    return run(subject.op, derived.mapped(subject.args, lambda t: at[id(t)]))
