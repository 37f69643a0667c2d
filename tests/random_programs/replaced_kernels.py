"""Kernels that somebody adds to each operator that another one is written in: every call of an operator case calls them as often
as the generated Python text does where the state of dispatch is never taken for granted.

A trace makes the calls in Python, so that it shows what the text calls.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import turnout
from turnout import state
from turnout.library import Library
from turnout.registry import find_operator
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.making import arguments, row_major, samples
from turnout_conformance.replays import call_of

KEYS = ("CPU", "BackendSelect", "ADInplaceOrView", "AutogradCPU")


@contextmanager
def counted(name: str, key: str = "CPU") -> Iterator[list[str]]:
    """A list to which a kernel at a key adds the name at each call. It does what CPU's does, and goes on below elsewhere."""
    called: list[str] = []
    op = find_operator(name)
    original = op.kernel("CPU") if key == "CPU" else None

    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Any:
        called.append(name)
        if original is not None:
            return original(*args, **kwargs)
        return op.redispatch(keys.remove(key.removesuffix("CPU")), *args, **kwargs)

    with warnings.catch_warnings(), Library("aten", "IMPL") as library:
        warnings.simplefilter("ignore")
        library.impl(name.removeprefix("aten::"), kernel, key, with_keyset=True, allow_override=True)
        yield called


SAMPLES = 1  # of a case
MOST = 12  # calls of a sample; what makes more is written in operators that have cases themselves


def calls_of(case: OperatorCase, dtype: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The calls of the samples of a case, each with a name."""
    make = row_major("cpu")
    for number, (sample, _) in enumerate(islice(samples(case, "cpu", (dtype,)), SAMPLES)):

        def call(sample: Any = sample) -> None:
            args, kwargs = arguments(sample, dtype, make)
            call_of(case)(args, kwargs)

        yield f"{case.op}, sample {number}, {dtype}", call


def operators_of(call: Callable[[], Any]) -> list[str]:
    """The operators that a call calls."""
    with turnout.trace_dispatch() as log:
        call()
    return sorted({each.op for each in log.walk()}) if len(log) <= MOST else []


def differences_of(shown: str, call: Callable[[], Any], names: list[str], key: str = "CPU") -> Iterator[str]:
    """What of these operators a call calls another number of times than the text does."""
    for name in names:
        found = _counts(call, name, key)
        if found is not None and found[0] != found[1]:
            yield f"{shown}: the text calls {name} at {key} {found[1]} times, the call {found[0]} times"


def _counts(call: Callable[[], Any], name: str, key: str) -> tuple[int, int] | None:
    """How often a kernel in place of another is called, and how often where the text makes the call."""
    try:
        with counted(name, key) as called:
            for _ in range(3):  # until all is compiled, chosen and kept
                called.clear()
                call()
            times = len(called)
            with turnout.trace_dispatch(), state.include(()):  # which is not the object that fresh contexts share
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


def statements() -> Iterator[tuple[str, Callable[[], Any]]]:
    """The calls of everyday statements."""
    m = turnout
    names = {
        "m": m, "F": m.nn.functional, "x": m.ones(4), "o": m.zeros(4), "a": m.ones(4, 4), "s": m.tensor(2.5),
        "i": m.tensor([0, 2, 1]), "k": m.tensor([True, False, True, False]), "n": m.tensor([3, 1, 0, 1]),
    }  # fmt: skip
    for statement in STATEMENTS:
        code = compile(statement, "<statement>", "exec")

        def call(code: Any = code) -> None:
            exec(code, names)

        yield statement, call


def drawn_call(choose: random.Random) -> tuple[str, Callable[[], Any], str]:
    """A statement, or a call of a case: its name, the call, and an operator that it calls."""
    while True:
        case = choose.choice(CASES)
        shown, call = choose.choice([*(statements() if choose.random() < 0.3 else calls_of(case, case.dtypes[0]))])
        if names := operators_of(call):
            return shown, call, choose.choice(names)


def drawn(seed: int) -> Iterator[str]:
    """What one operator in one call does otherwise at one key."""
    choose = random.Random(seed)
    shown, call, name = drawn_call(choose)
    yield from differences_of(shown, call, [name], choose.choice(KEYS))


def main(part: int, parts: int) -> None:
    """Print all differences of one part of the cases; those of the statements with the first one."""
    calls = [*statements()] if part == 0 else []
    for shown, call in [*calls, *(each for case in CASES[part::parts] for each in calls_of(case, case.dtypes[0]))]:
        for line in differences_of(shown, call, operators_of(call)):
            sys.stdout.write(line + "\n")
