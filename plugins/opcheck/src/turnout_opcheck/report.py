"""What a check found, the report of all checks, and the error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import turnout
from turnout.errors import TurnoutError
from turnout.explanation.html import preformatted

SUCCESS = "SUCCESS"

# Remedies of several checks.
OPERATORS_ALONE = "compute with operators alone"
SIZES_AS_THEY_ARE = "compute with sizes as they are"


class OpCheckError(TurnoutError, AssertionError):
    """An operator does not do what it says. `report` is the whole report."""

    def __init__(self, report: Report) -> None:
        super().__init__(report.failures())
        self.report = report

    def __reduce__(self) -> tuple[Any, ...]:
        return (OpCheckError, (self.report,))


class NotTriedError(Exception):
    """A check has nothing to try on the operator; the reason is the text."""


class MissingPluginError(NotTriedError):
    """A check needs a plugin that is not installed."""


def need(provided: str, distribution: str) -> None:
    """Raise MissingPluginError if no installed plugin provides what a check needs, such as "device:meta"."""
    if not is_there(provided):
        raise MissingPluginError(f"{distribution} is not installed")


def is_there(provided: str) -> bool:
    """Whether an installed plugin provides what a check needs."""
    return any(provided in record.provides for record in turnout.plugins.all_plugins())


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    kind  what is wrong, in words that do not depend on the arguments: shrinking keeps it
    text  what is wrong, with the facts as seen
    fix   what to do
    """

    kind: str
    text: str
    fix: str


@dataclass(frozen=True)
class Failure:
    """A problem, and the smallest call that shows it."""

    check: str
    problem: Problem
    call: str

    def __str__(self) -> str:
        lines = [f"{self.check}: {self.problem.text}", f"  call    {self.call}", f"  to fix  {self.problem.fix}"]
        return "\n".join(lines)


class Report(dict[str, str]):
    """Check -> "SUCCESS", also where there was nothing to try; what failed; or "not tried: ..." where a plugin is missing.

    operator  the qualified name
    untried   check -> why it had nothing to try
    found     the failures
    tried     the arguments that were tried: the given ones, and the names of those derived from them
    refused   the derived arguments that the operator does not accept
    """

    def __init__(self, operator: str) -> None:
        super().__init__()
        self.operator = operator
        self.untried: dict[str, str] = {}
        self.found: list[Failure] = []
        self.tried: list[str] = []
        self.refused: list[str] = []

    def passed(self, check: str) -> None:
        """Note a check that found nothing."""
        self[check] = SUCCESS

    def not_tried(self, check: str, reason: NotTriedError) -> None:
        """Note a check that had nothing to try, or could not run."""
        self.untried[check] = str(reason)
        self[check] = f"not tried: {reason}" if isinstance(reason, MissingPluginError) else SUCCESS

    def failed(self, failure: Failure) -> None:
        """Note what a check found."""
        self.found.append(failure)
        self[failure.check] = str(failure)

    def failures(self) -> str:
        """The text of all failures."""
        count = len(self.found)
        head = f"{self.operator}: opcheck found {count} fault{'' if count == 1 else 's'}"
        return "\n".join([head, *map(str, self.found)])

    def _repr_html_(self) -> str:
        return preformatted(self)

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        rows = [f"  {check:{width}}  {self._row(check)}" for check in self]
        arguments = [("tried", self.tried), ("refused", self.refused)]
        heads = [f"  {word:{width}}  {', '.join(names)}" for word, names in arguments if names]
        return "\n".join([f"opcheck of {self.operator}", *heads, *rows, *map(str, self.found)])

    def _row(self, check: str) -> str:
        if check in self.untried:
            return f"not tried: {self.untried[check]}"
        return "passed" if self[check] == SUCCESS else "FAILED"
