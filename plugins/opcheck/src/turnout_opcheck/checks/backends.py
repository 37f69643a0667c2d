"""Kernels of one operator must agree: those of devices with each other, and with the one for all devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import turnout
from turnout.keys import EXPLICIT, IMPLICIT
from turnout.operators.kernels import Kernel, bind
from turnout.operators.values import flat
from turnout.registry import REGISTRY
from turnout_opcheck import derived
from turnout_opcheck.checks import inputs, schema
from turnout_opcheck.comparing import difference
from turnout_opcheck.derived import Args
from turnout_opcheck.observing import run
from turnout_opcheck.report import NotTriedError, Problem
from turnout_opcheck.subject import Subject, Variant, fresh

FIX = "make both kernels compute the same, with the same shape, dtype and strides"


def check(subject: Subject) -> Iterator[Problem]:
    """Yield what differs."""
    own = subject.backend_key
    if not subject.op.kernels.get(own):
        raise NotTriedError(f"it has no kernel of its own for {own}")
    general = [key for key in (EXPLICIT, IMPLICIT) if subject.op.kernels.get(key)]
    devices = _devices(subject, own)
    if not general and not devices:
        raise NotTriedError(f"it has a kernel for {own} only")
    for key in general:
        kernel = subject.through(_general(subject, key, own))
        for problem in chain(schema.check(kernel), inputs.check_precision(kernel)):
            yield Problem(problem.kind, f"the kernel for {key}: {problem.text}", problem.fix)
    with turnout.no_grad():
        for variant in subject.accepted():
            for key in general:
                yield from _compare(subject, variant, own, key, _general(subject, key, own))
            for key, device in devices:
                yield from _compare(subject, variant, own, key, _elsewhere(subject, device))


def _general(subject: Subject, key: str, own: str) -> Callable[[Args], Any]:
    """A call of the kernel for all devices."""
    call = bind(subject.op.kernels[key][-1], subject.op, own)
    return lambda args: call(subject.op.key_set(args), *args)


def _elsewhere(subject: Subject, device: str) -> Callable[[Args], Any]:
    """A call on another device."""
    return lambda args: run(subject.op, _moved(args, device))


def _devices(subject: Subject, own: str) -> list[tuple[str, str]]:
    """The other backends in use that have a kernel of their own, and data."""
    dataless = REGISTRY.keys.dataless_backends
    found = [(key, backend.device_type) for key, backend in REGISTRY.backends.items() if key != own and key not in dataless]
    return [(key, device) for key, device in found if _has_kernel(subject, key)]


def _has_kernel(subject: Subject, key: str) -> bool:
    stack: list[Kernel] = subject.op.kernels.get(key, [])
    return any(not kernel.is_fallthrough for kernel in stack)


def _moved(args: Args, device: str) -> Args:
    return derived.mapped(args, lambda t: t.to(device))


def _compare(subject: Subject, variant: Variant, own: str, other: str, call: Callable[[Args], Any]) -> Iterator[Problem]:
    first, second = fresh(variant.args), fresh(variant.args)
    expected = [*flat(subject.seeded(lambda: run(subject.op, first))), *(t for _, t in derived.tensors(subject.op, first))]
    try:
        found = [*flat(subject.seeded(lambda: call(second))), *(t for _, t in derived.tensors(subject.op, second))]
    except Exception as error:  # noqa: BLE001 - a kernel may raise anything
        told = f"it raised {type(error).__name__}: {error}"
    else:
        if any(isinstance(t, turnout.Tensor) and t.device.backend.name != own for t in found[: len(flat(found))]):
            found = [t.to(expected[0].device) if isinstance(t, turnout.Tensor) else t for t in found]
        told = difference(found[: _results(expected, first)], expected[: _results(expected, first)])
    if told:
        text = f"the kernel for {other} differs from the one for {own}, for {variant.name}: {told}"
        yield Problem(f"kernel {other}", text, FIX)


def _results(values: list[Any], args: Args) -> int:
    return len(values) - sum(isinstance(v, turnout.Tensor) for v in flat(list(args)))
