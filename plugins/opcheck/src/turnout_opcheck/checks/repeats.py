"""The same call again, and with its defaults left out."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import turnout
from turnout import Tensor
from turnout.operators.values import flat
from turnout_aten.tensor.random import default_generator
from turnout_opcheck import derived
from turnout_opcheck.comparing import difference
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import left_by, run
from turnout_opcheck.report import NotTriedError, Problem
from turnout_opcheck.subject import SEEDED, Subject, fresh

UNINITIALISED = "empty"


def check_determinism(subject: Subject) -> Iterator[Problem]:
    """Two calls give the same bytes; a random operator does with the same seed, and has the tag that says so."""
    if subject.op.name.startswith(UNINITIALISED) or subject.op.name.startswith(f"new_{UNINITIALISED}"):
        raise NotTriedError("its results are not initialised")
    with turnout.no_grad():
        default_generator().reserve(1)  # so that whoever sets the state sets another one
        state = default_generator().get_state()
        given = _results(subject, subject.args)
        if not subject.is_random and default_generator().get_state() != state and not _takes_generator(subject):
            text = f"the operator changes the state of random numbers, and has no tag {SEEDED!r}"
            yield Problem("tag", text, f"set no seed; if it draws random numbers, define it with tags={SEEDED!r}")
            return
        _results(subject, subject.unlike())
        told = difference(_results(subject, subject.args), given, exact=True)
        if told and subject.is_random:
            text = f"two calls with the same seed give different results: {told}"
            yield Problem("seed", text, "draw from Turnout's generators alone")
        elif told:
            text = f"two calls with the same arguments give different results: {told}"
            yield Problem(
                "calls", text, f"keep no state between calls; if it draws random numbers, define it with tags={SEEDED!r}"
            )
        elif not subject.is_random:
            yield from _remembered(subject)


def _results(subject: Subject, args: Args) -> list[Any]:
    copies = fresh(args)
    value = subject.seeded(lambda: run(subject.op, copies)) if subject.is_random else run(subject.op, copies)
    return left_by(subject.op, value, copies)


def _takes_generator(subject: Subject) -> bool:
    return any(
        a.type.canonical.rstrip("?") == "Generator" and v is not None
        for a, v in zip(subject.schema.arguments, subject.args, strict=True)
    )


def _remembered(subject: Subject) -> Iterator[Problem]:
    """Whether a result of one shape is given again for other values of it.

    The operator is called with one element in tensors of 1, 2 and 3 dims, each of another value and then of a second one. If
    no second value matters while the results for the three shapes differ, then the first value was remembered.
    """
    floating = [t for _, t in subject.tensors() if t.is_floating_point()]
    if not floating or subject.schema.is_mutable:
        return
    firsts: list[Any] = []
    for ndim in (1, 2, 3):
        try:
            one, two = (_results(subject, derived.mapped(subject.args, _element(ndim, ndim * step))) for step in (0.37, 0.11))
        except Exception:  # noqa: BLE001 - the operator does not accept these shapes
            return
        count = len(flat(run(subject.op, fresh(derived.mapped(subject.args, _element(ndim, 0.5))))))
        first, second = (_plain(found[:count]) for found in (one, two))
        if first != second or not first:
            return
        firsts.append(first)
    if firsts[0] != firsts[1] and firsts[1] != firsts[2]:
        text = "the operator gives the result of an earlier call again, for other values of the same shape"
        yield Problem("cache", text, "keep no results between calls, or keep them by all that they depend on")


def _element(ndim: int, value: float) -> derived.Change:
    def change(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return derived.copy(tensor)
        return turnout.full((1,) * ndim, value, dtype=tensor.dtype, device=tensor.device)

    return change


def _plain(values: list[Any]) -> list[Any]:
    """The numbers of floating results."""
    return [v.reshape((-1,)).tolist() for v in values if isinstance(v, Tensor) and v.is_floating_point()]


def check_defaults(subject: Subject) -> Iterator[Problem]:
    """Leaving a default out gives what giving it gives, and no function has another default than the schema."""
    defaults = {a.name: a.default for a in subject.schema.arguments if a.has_default}
    if not defaults:
        raise NotTriedError("no argument has a default")
    yield from _functions(subject, defaults)
    given = {a.name: v for a, v in zip(subject.schema.arguments, subject.args, strict=True)}
    needed = {name: value for name, value in given.items() if name not in defaults}
    with turnout.no_grad():
        try:
            full = _call(subject, {**needed, **defaults})
        except Exception:  # noqa: BLE001 - the defaults do not fit these arguments
            return
        told = difference(_call(subject, needed), full)
        if told:
            yield Problem(
                "defaults", f"left out, the defaults give another result than given: {told}", "use the schema's defaults"
            )


def _call(subject: Subject, values: dict[str, Any]) -> list[Any]:
    names = list(values)
    copies = dict(zip(names, fresh(tuple(values.values())), strict=True))
    return flat(subject.seeded(lambda: subject.op.call(**copies)))


def _functions(subject: Subject, defaults: dict[str, Any]) -> Iterator[Problem]:
    """The defaults of the functions behind kernels and rules."""
    for key, stack in subject.op.kernels.items():
        for kernel in stack:
            try:
                parameters = inspect.signature(kernel.fn).parameters
            except (TypeError, ValueError):
                continue
            for name, value in defaults.items():
                there = parameters.get(name)
                if there is None or there.default is inspect.Parameter.empty or _same(there.default, value):
                    continue
                text = f"the function at {key} has the default {there.default!r} for {name}, and the schema {value!r}"
                yield Problem(f"default {name}", text, f"write {name}={value!r} in the function, or no default")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return list(a) == list(b)
    if isinstance(b, (list, tuple)):  # a number stands for a list of it
        return all(each == a for each in b)
    return bool(a == b) or str(a) == str(b)
