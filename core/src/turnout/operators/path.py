"""The path of a call: its plan, the plan of each redispatch below, and in a few words what comes next (`Operator.next`)."""

from __future__ import annotations

from turnout.keys import IMPLICIT, IMPLICIT_NESTED, TRACKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from turnout.operators.operator import Operator
    from turnout.table import Plan


class Next:
    """What a redispatch runs, as a functionality asks before it goes on below.

    key          the runtime key that serves it
    reason       the word of the computed table, as in `explain`; "missing" where nothing serves it
    label        the kernel's name
    composite    whether the call comes to a kernel that is written in other operators, which have all keys of the program again.
                 Functionalities in between, which go on with the same tensors, do not count
    may_decline  whether the kernel may leave a call, by its arguments, to what is below it
    composes     for which arguments it is composite, if that is not the same for all
    otherwise    what runs for all others
    """

    __slots__ = ("composes", "composite", "key", "label", "may_decline", "otherwise", "reason")

    def __init__(self, plan: Plan, last: Plan, otherwise: Next | None) -> None:
        kernel = plan.entry.kernel if plan.entry is not None else None
        self.key = plan.key
        self.reason = plan.entry.reason if plan.entry is not None else "missing"
        self.label = "missing" if kernel is None else kernel.name
        end = last.entry.kernel if last.entry is not None else None
        self.composes: Callable[[tuple[Any, ...]], bool] | None = None if end is None else end.composes
        self.composite = self.composes is not None or (end is not None and is_composite(last))
        self.may_decline = self.composes is not None or (end is not None and end.may_decline)
        self.otherwise = self if otherwise is None else otherwise

    def __repr__(self) -> str:
        kind = "composite" if self.composite else "may decline" if self.may_decline else ""
        return f"<Next {self.key}: {self.label} [{self.reason}]{kind and ' ' + kind}>"


def is_composite(plan: Plan) -> bool:
    """Whether a plan ends at a kernel that is written in other operators, as all backends share it."""
    return plan.entry is not None and plan.entry.key in (IMPLICIT, IMPLICIT_NESTED)


def path(op: Operator, ks: int, selected: Callable[[], int] = int) -> Iterator[Plan]:
    """The plan of a key set, then that of each redispatch below, down to a composite or a backend.

    `selected` has the bits of the backend of a call without tensors, which BackendSelect adds.
    """
    keys = op.registry.keys
    while True:
        plan = op.plan(ks)
        yield plan
        functionality, entry = plan.functionality, plan.entry
        if functionality is None or functionality.backend_key or entry is None or entry.kernel is None or is_composite(plan):
            return
        ks &= ~sum(f.bit for f in keys.functionalities[keys.functionalities.index(functionality) :])
        if ks & keys.backend_mask == 0:
            ks |= selected()


def following(op: Operator, ks: int) -> Next:
    """The answer of `Operator.next` for a key set."""
    first = None
    for plan in path(op, ks):
        first = first or plan
        last, functionality = plan, plan.functionality
        kernel = plan.entry.kernel if plan.entry is not None else None
        # What holds values of its own calls operators on other tensors than these.
        if kernel is None or kernel.composes is not None or (functionality is not None and functionality.holds_values):
            break
    assert first is not None
    composes = kernel is not None and kernel.composes is not None
    return Next(first, last, following(op, ks & ~TRACKED) if composes else None)
