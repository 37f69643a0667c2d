"""Which tests of the kit a run takes: all of them, a quick choice, or a sample."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

LEVELS = ("quick", "full")

# What `--turnout-level=quick` keeps of the tests of an operator.
QUICK = {"test_operator_gives_what_cpu_gives", "test_an_operator_passes_and_gives_what_it_gives_without"}


class Choice(NamedTuple):
    """What the command line asks for: a level of `LEVELS`, and the share of an operator's tests, from 0 to 1."""

    level: str = "full"
    share: float = 1.0

    @property
    def is_whole(self) -> bool:
        """Whether it leaves nothing out."""
        return self == Choice()

    def __str__(self) -> str:
        parts = [f"level {self.level}"] if self.level != "full" else []
        parts += [f"a sample of {self.share:g}"] if self.share < 1 else []
        return ", ".join(parts) or "whole"


class Candidate(NamedTuple):
    """What is chosen by.

    name      with the parameters
    subject   the device or key
    op        the operator, "" for a test that is about none or about a family
    function  the name without parameters
    params    the names of the parameters, and those values of them that are text
    """

    name: str
    subject: str
    op: str
    function: str
    params: frozenset[str]


def chosen(tests: Iterable[Candidate], choice: Choice) -> set[str]:
    """The names of the tests that a run takes.

    Tests that are about no operator are always taken. Of the tests of an operator, a sample has those whose hash is in the lower
    part of all hashes, and at least the one with the lowest. So it depends on nothing but the names.
    """
    kept: set[str] = set()
    lowest: dict[tuple[str, str], tuple[float, str]] = {}
    for test in tests:
        if choice.level == "quick" and not _is_quick(test):
            continue
        place = position(test.name) if test.op else 0.0
        if place < choice.share:
            kept.add(test.name)
        group = test.subject, test.op
        lowest[group] = min(lowest.get(group, (place, test.name)), (place, test.name))
    return kept | {name for _, name in lowest.values()}


def position(name: str) -> float:
    """The place of a name among all names, from 0 to 1, by a hash."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") / 2**64


def _is_quick(test: Candidate) -> bool:
    if not test.op:
        return "family" not in test.params
    return test.function in QUICK and test.params.isdisjoint({"column-major", "spread"})
