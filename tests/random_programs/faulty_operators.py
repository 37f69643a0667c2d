"""Mutants of correct operators, drawn by seed: what `opcheck` finds of each."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Iterator

import turnout
from faults.model import installed
from faults.mutators import Mutant, mutants
from turnout import library

_all = functools.cache(mutants)


def drawn(seeds: Iterable[int]) -> Iterator[tuple[int, Mutant]]:
    """A mutant for each seed: in a fixed order that mixes operators and rules, until all have been drawn."""
    found = list(_all())
    random.Random(0).shuffle(found)
    for seed in seeds:
        yield seed, found[seed % len(found)]


def found_by(mutant: Mutant) -> str:
    """The check that finds a mutant, "refused" where it cannot be defined or called, "" where nothing does.

    The check that is expected to find it runs first, the others where that finds nothing.
    """
    state = turnout.is_grad_enabled(), turnout.get_default_dtype()
    try:
        with installed(mutant.spec) as op:
            args, kwargs = mutant.spec.inputs()
            for more in ({"test_utils": mutant.check}, {}):
                report = library.opcheck(op, args, kwargs, raise_exception=False, **more)
                if report.found:
                    return report.found[0].check
            return ""
    except Exception:  # noqa: BLE001 - a faulty kernel may raise anything
        return "refused"
    finally:
        turnout.set_grad_enabled(state[0])
        turnout.set_default_dtype(state[1])
