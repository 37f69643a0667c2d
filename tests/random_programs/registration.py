"""Programs of registrations: groups define operators, register kernels, fallbacks and fallthrough, and are undone, in any order.

`Model` is what they should do, in plain Python: it keeps the registrations that stand, and works out each answer anew from them.
After every step each operator is called, on two devices, by its name and through handles that were taken earlier.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from random_programs.running import shrunk
from turnout.errors import ConflictError, NoKernelError, RegistrationError, StaleOperatorError, TurnoutError
from turnout.explanation import explain
from turnout.operators.kernels import BOXED, FALLTHROUGH, UNBOXED
from turnout.registry import REGISTRY, Registrations
from turnout.table import CHOSEN

OPERATORS = ("t::f", "t::g", "u::h")
DEVICES = ("Shelf", "Rack")
EXPLICIT, IMPLICIT, AUTOGRAD = "CompositeExplicitAutograd", "CompositeImplicitAutograd", "Autograd"
COMPOSITE = (EXPLICIT, IMPLICIT)
FROM_STATE = ("ADInplaceOrView", "BackendSelect")  # which are in every call
KEYS = ("Shelf", "Rack", "AutogradShelf", "AutogradRack", AUTOGRAD, *FROM_STATE, *COMPOSITE)
FALLBACKS = ("Shelf", "Rack", "AutogradShelf", "AutogradRack")
PASSES = "falls through"


class Step(NamedTuple):
    """One line of a program: what the group with this number does."""

    group: int
    what: str  # "define", "impl", "fallback" or "undo"
    operator: str = ""
    key: str = ""
    passes: bool = False
    boxed: bool = False
    override: bool = False


class Standing(NamedTuple):
    """A registration that stands."""

    step: Step
    tag: str


def drawn(seed: int) -> list[Step]:
    """A program."""
    draw = random.Random(seed)
    steps = []
    for _ in range(draw.randint(4, 24)):
        group = draw.randrange(3)
        what = draw.choice(("define", "impl", "impl", "impl", "impl", "fallback", "undo"))
        key = draw.choice(FALLBACKS if what == "fallback" else KEYS)
        steps.append(
            Step(group, what, draw.choice(OPERATORS), key, draw.random() < 0.2, draw.random() < 0.3, draw.random() < 0.3)
        )
    return steps


class Model:
    """The registrations that stand, and what follows from them."""

    def __init__(self) -> None:
        self.standing: list[Standing] = []

    def of(self, what: str, operator: str = "", key: str = "") -> list[Standing]:
        """The registrations of a kind at one place, the oldest first."""
        return [
            each
            for each in self.standing
            if each.step.what == what and (not operator or each.step.operator == operator) and (not key or each.step.key == key)
        ]

    def take(self, step: Step, tag: str) -> str:
        """Do a step; returns the name of the error that it raises, or ""."""
        if step.what == "undo":
            self.standing = [each for each in self.standing if each.step.group != step.group]
            return ""
        if step.what == "define" and self.of("define", step.operator):
            return ConflictError.__name__
        if step.what == "fallback" and self.of("fallback", key=step.key):
            return RegistrationError.__name__
        if step.what == "impl":
            if step.passes and step.key in COMPOSITE:
                return RegistrationError.__name__
            there = self.of("impl", step.operator, step.key)
            others = [each.step for each in there if each.step.group != step.group]
            if others and len({s.group for s in (*others, step) if s.override}) != 1:
                return ConflictError.__name__
        self.standing.append(Standing(step, tag))
        return ""

    def kernel(self, operator: str, key: str) -> str:
        """The tag of the kernel in a slot: that of the only group, or of the only one that overrides. "" for an empty slot."""
        there = self.of("impl", operator, key)
        if len({each.step.group for each in there}) < 2:
            return _shown(there[-1]) if there else ""
        overriding = [each for each in there if each.step.override]
        return _shown(overriding[-1]) if len({each.step.group for each in overriding}) == 1 else ConflictError.__name__

    def serving(self, operator: str, device: str, autograd: bool) -> str:
        """The tag of what serves a device's own key or its Autograd key; "" if nothing does."""
        key = f"Autograd{device}" if autograd else device
        direct = self.kernel(operator, key)
        if direct:
            return direct
        explicit, implicit = self.kernel(operator, EXPLICIT), self.kernel(operator, IMPLICIT)
        if explicit and not autograd:
            return explicit
        if implicit and not explicit and not (autograd and self.kernel(operator, device)):
            return implicit
        if autograd and self.kernel(operator, AUTOGRAD):
            return self.kernel(operator, AUTOGRAD)
        return "".join(_shown(each) for each in self.of("fallback", key=key))

    def call(self, operator: str, device: str) -> str:
        """The tag of the kernel that a call of a defined operator reaches, or the name of its error."""
        of_backend = [self.serving(operator, device, autograd) for autograd in (True, False)]
        for found in (of_backend[0], *(self.kernel(operator, key) for key in FROM_STATE), of_backend[1]):
            if found and found != PASSES:
                return found
        # Below the device's key there is Undefined, which a call reaches that falls through it; composites serve it.
        last = found and (self.kernel(operator, EXPLICIT) or self.kernel(operator, IMPLICIT))
        return last or NoKernelError.__name__


def _shown(each: Standing) -> str:
    return PASSES if each.step.passes else each.tag


class Real:
    """The same with real registrations."""

    def __init__(self) -> None:
        self.groups: dict[int, Registrations] = {}

    def take(self, step: Step, tag: str) -> str:
        if step.what == "undo":
            group = self.groups.pop(step.group, None)
            if group is not None:
                group.undo()
            return ""
        group = self.groups.setdefault(step.group, Registrations(f"group {step.group}"))
        try:
            if step.what == "define":
                group.define(f"{step.operator}(Tensor x) -> str")
            elif step.what == "fallback":
                group.fallback(step.key, FALLTHROUGH if step.passes else lambda op, ks, args: tag, form=BOXED, label=tag)
            else:
                form = BOXED if step.boxed else UNBOXED
                fn: Any = (lambda op, ks, args: tag) if step.boxed else (lambda x: tag)
                fn = FALLTHROUGH if step.passes else fn
                group.impl(step.operator, step.key, fn, form=form, allow_override=step.override, label=tag)
        except TurnoutError as error:
            return type(error).__name__
        return ""

    def undo(self) -> None:
        for group in self.groups.values():
            group.undo()


def first_difference(steps: list[Step], box: Callable[[str], Any]) -> str:
    """What a program does otherwise than the model says, or "". `box(device)` is a tensor there."""
    model, real = Model(), Real()
    handles: dict[str, Any] = {}  # of the definition that stands, and of those that are gone
    stale: list[Any] = []
    try:
        for i, step in enumerate(steps):
            tag = f"kernel {i}"
            gone = {each.step.operator for each in model.of("define")}
            expected, found = model.take(step, tag), real.take(step, tag)
            if expected != found:
                return f"step {i} raised {found or 'nothing'}, not {expected or 'nothing'}"
            defined = {each.step.operator for each in model.of("define")}
            stale += [handles.pop(name) for name in gone - defined]
            for name in defined - handles.keys():
                handles[name] = REGISTRY.find(name)
            for name in sorted(defined):
                for device in DEVICES:
                    said, did = model.call(name, device), _called(handles[name], box(device.lower()))
                    if said != did:
                        return f"after step {i} {name} on {device} gave {did}, not {said}"
                told = explain(handles[name], box("rack")).chosen
                if told.verdict == CHOSEN and told.kernel.replace("conflict", "ConflictError") != did:
                    return f"after step {i} {name} gave {did}, but explain says {told.kernel}"
            for old in stale:
                did = _called(old, box("shelf"))
                current = handles.get(old.qualified_name)
                said = StaleOperatorError.__name__ if current is not old else model.call(old.qualified_name, "Shelf")
                if did != said:
                    return f"after step {i} an old handle of {old.qualified_name} gave {did}, not {said}"
    finally:
        real.undo()
    return ""


def _called(op: Any, x: Any) -> str:
    try:
        return str(op(x))
    except TurnoutError as error:
        return type(error).__name__


def problem(seed: int, box: Callable[[str], Any]) -> str:
    """A report on the program of a seed, or ""."""
    steps = drawn(seed)
    if not first_difference(steps, box):
        return ""
    steps = shrunk(steps, lambda fewer: first_difference(fewer, box))
    lines = [f"    {step!r}," for step in steps]
    return "\n".join([f"seed {seed}: {first_difference(steps, box)}", "steps = [", *lines, "]"])
