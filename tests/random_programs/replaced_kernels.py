"""Kernels that somebody replaces, of each operator that another one is written in: every call of an operator case calls them as
often as the generated Python text does.

A trace makes the calls in Python, so that it shows what the text calls.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import turnout
from turnout.library import Library
from turnout.registry import find_operator
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.making import arguments, row_major, samples
from turnout_conformance.replays import call_of


@contextmanager
def counted(name: str) -> Iterator[list[str]]:
    """A list to which a kernel in place of the CPU's adds the name at each call, and does what that one does."""
    called: list[str] = []
    original = find_operator(name).kernel("CPU")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        called.append(name)
        return original(*args, **kwargs)

    with warnings.catch_warnings(), Library("aten", "IMPL") as library:
        warnings.simplefilter("ignore")
        library.impl(name.removeprefix("aten::"), kernel, "CPU", allow_override=True)
        yield called


SAMPLES = 1  # of a case
MOST = 12  # calls of a sample; what makes more is written in operators that have cases themselves


def differences(case: OperatorCase, dtype: str) -> Iterator[str]:
    """What is called another number of times than the text calls it, with the samples of a case."""
    make = row_major("cpu")
    for number, (sample, _) in enumerate(islice(samples(case, "cpu", (dtype,)), SAMPLES)):

        def call(sample: Any = sample) -> None:
            args, kwargs = arguments(sample, dtype, make)
            call_of(case)(args, kwargs)

        yield from differences_of(call, f"{case.op}, sample {number}, {dtype}")


def differences_of(call: Callable[[], Any], shown: str) -> Iterator[str]:
    """What a call calls another number of times than the text does."""
    with turnout.trace_dispatch() as log:
        call()
    for name in sorted({each.op for each in log.walk()}) if len(log) <= MOST else ():
        found = _counts(call, name)
        if found is not None and found[0] != found[1]:
            yield f"{shown}: the text calls {name} {found[1]} times, the call {found[0]} times"


def _counts(call: Callable[[], Any], name: str) -> tuple[int, int] | None:
    """How often a kernel in place of another is called, and how often where the text makes the call."""
    try:
        with counted(name) as called:
            for _ in range(3):  # until all is compiled, chosen and kept
                called.clear()
                call()
            times = len(called)
            with turnout.trace_dispatch():
                called.clear()
                call()
            return times, len(called)
    except turnout.errors.TurnoutError:
        return None  # it has no kernel there, or works for other arguments only


# Calls that are no operators.
STATEMENTS = (
    "x[0]", "a[1:, 2]", "a[i]", "x[k]", "a[i, i]", "x[None]", "o[0] = 1.0", "o[1:3] = 2.0", "o[i] = 1.0", "o[k] = 0.0",
    "o[:] = x", "o[k] = s", "s.item()", "float(s)", "x.shape", "m.eye(3)", "m.eye(3, 2)", "m.arange(1, 7, 2)",
    "m.linspace(0.0, 1.0, 4)", "m.rand(4)", "m.randn(4)", "m.full((3,), 2.0)", "m.zeros(2, 3)", "m.ones(2)", "m.empty(4)",
    "m.zeros_like(a)", "x.new_ones(3)", "o.fill_(1.0)", "o.zero_()", "o.copy_(x)", "a.clone()", "x.to(m.float64)", "x.double()",
    "a.t().contiguous()", "x.masked_fill(k, 0.0)", "a.flatten()", "a.reshape(2, -1)", "m.stack([x, x])", "a.chunk(2)", "a @ a",
    "F.linear(a, a)", "F.linear(a, a, x)", "F.cross_entropy(a, n)", "F.nll_loss(a, n)", "F.softmax(a, -1)", "m.equal(x, o)",
    "F.layer_norm(a, (4,), x, x)", "m.add(x, x, out=o)", "m.add(x, x, alpha=2)", "F.dropout(x, 0.5, False)", "F.mse_loss(x, o)",
)  # fmt: skip


def of_statements() -> Iterator[str]:
    """What everyday statements call another number of times than their text does."""
    m = turnout
    names = {
        "m": m, "F": m.nn.functional, "x": m.ones(4), "o": m.zeros(4), "a": m.ones(4, 4), "s": m.tensor(2.5),
        "i": m.tensor([0, 2, 1]), "k": m.tensor([True, False, True, False]), "n": m.tensor([3, 1, 0, 1]),
    }  # fmt: skip
    for statement in STATEMENTS:
        code = compile(statement, "<statement>", "exec")

        def call(code: Any = code) -> None:
            exec(code, names)

        yield from differences_of(call, statement)


def main(part: int, parts: int) -> None:
    """Print all differences of one part of the cases; those of the statements with the first one."""
    for line in of_statements() if part == 0 else ():
        sys.stdout.write(line + "\n")
    for case in CASES[part::parts]:
        for line in differences(case, case.dtypes[0]):
            sys.stdout.write(line + "\n")
