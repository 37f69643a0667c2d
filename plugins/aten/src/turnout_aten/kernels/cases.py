"""The cases of a wrapper: which of a row's functions serves a call. They are one tuple, in the order in which they are tried.

Texts of calls are written from it (`choice`), the general path asks it (`chooser`), and a compiled call path walks it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turnout_aten.kernels.rows import Row

    Call = Callable[..., Any]

SIMPLE, FEW, KERNEL = "simple", "few", "kernel"  # what texts call the functions of a row
PREPARED = "prepared"  # the word for what a plan calls in their place


class Case(NamedTuple):
    """A function, and which calls it serves. The first case that serves a call is taken; the last one serves all.

    name    one of the words above
    run     the function
    upto    the most elements (0: any number)
    halves  the same for two-byte elements
    brief   it serves calls whose other arguments have their defaults, and gets the required ones only
    """

    name: str
    run: Call
    upto: int = 0
    halves: int = 0
    brief: bool = False


def cases_of(row: Row, *, makes: bool = False, around: Callable[[Call], Call] = lambda fn: fn) -> tuple[Case, ...]:
    """The cases of a row: where it makes the result, or where it is given its outputs. `around` wraps its functions."""
    sizes, few = row.sizes, row.sizes.fewest
    cases = []
    if makes and sizes.simple is not None:
        cases.append(Case(SIMPLE, around(sizes.simple), sizes.upto, few, brief=True))
    if sizes.fn is not None:
        cases.append(Case(FEW, around(sizes.fn), few, few))
    return (*cases, Case(KERNEL, around(row.fn)))


def choice(cases: Sequence[Case], calls: Mapping[str, str], sized: Sequence[str], standard: Sequence[str] = ()) -> str:
    """The cases as an expression: what is written for each, tests of the arrays `sized`, tests that other arguments have their
    defaults."""
    *first, last = cases
    text = calls[last.name]
    for case in reversed(first):
        tests = [*(standard if case.brief else ()), *(_within(case, array) for array in sized if case.upto)]
        text = f"{calls[case.name]} if {' and '.join(tests)} else {text}" if tests else calls[case.name]
    return text


def _within(case: Case, array: str) -> str:
    size = f"{array}.size"
    if case.halves == case.upto:
        return f"{size} <= {case.upto}"
    # The smaller limit first: for few elements it is read once.
    return f"({size} <= {case.halves} or {size} <= {case.upto} and {array}.dtype.itemsize != 2)"


def chooser(cases: Sequence[Case], at: int, array_type: type | None) -> Callable[[Sequence[Any], Any], Call]:
    """A function of a kernel's arguments and its first output: what serves them. The elements of the argument at `at` are
    counted; where it is a number, the last case serves the call."""
    *first, last = cases

    def choose(given: Sequence[Any], written: Any) -> Call:
        sized = given[at]
        for case in first if sized.__class__ is array_type else ():
            if max(sized.size, written.size) <= case.halves:
                return case.run
        return last.run

    return choose
