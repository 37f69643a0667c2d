"""Rules that put one fault into a correct operator, wherever the fault shows.

A mutant that behaves like the operator would be no mutant, so each rule looks at a call first: a write is not dropped where
nothing is written, and a gradient is not doubled where it is zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from faults.correct import CORRECT
from faults.model import Spec
from faults.mutators.facts import Facts
from faults.mutators.fakes import fake_mutants
from faults.mutators.gradients import gradient_mutants
from faults.mutators.kernels import kernel_mutants
from faults.mutators.registrations import backend_mutants, batching_mutants, composite_mutants, schema_mutants

__all__ = ["Mutant", "mutants"]


@dataclass(frozen=True)
class Mutant:
    """A correct operator with one fault. `check` is the one that is expected to find it."""

    spec: Spec
    rule: str
    check: str

    def __str__(self) -> str:
        return f"{self.spec.name}: {self.rule}"


RULES = (
    kernel_mutants, fake_mutants, gradient_mutants, batching_mutants, backend_mutants, schema_mutants, composite_mutants,
)  # fmt: skip


def mutants() -> list[Mutant]:
    """All mutants of all correct operators, in a fixed order."""
    found = []
    for spec in CORRECT.values():
        facts = Facts(spec)
        for make in RULES:
            found += [Mutant(mutant, rule, check) for rule, check, mutant in make(spec, facts)]
    return found
