"""Every operator case under vmap: what the loop over the examples gives, whichever arguments are batched along whichever dim."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import turnout
from turnout.errors import ShapeError
from turnout.operators.values import flat
from turnout.registry import REGISTRY
from turnout_conformance.batches import SHARED, SIZE, Call, Mix, calls, check, is_refused, levels, raised, tried
from turnout_conformance.cases import CASES, OperatorCase


@pytest.mark.parametrize("case", CASES, ids=str)
def test_vmap_gives_what_the_loop_gives(case: OperatorCase) -> None:
    for call in calls(case):
        for mix in tried(case, call):
            check(call, mix, "cpu")


def wrong_for(op: Any, condition: Callable[..., bool]) -> turnout.library.Library:
    """The operator's own rule, which adds 1 to the result where the arguments are so."""
    from turnout_batched.kernels import decide

    turnout.vmap(turnout.sin)(turnout.ones(2))
    right = decide(op)[0]
    library = turnout.library.Library("aten", "IMPL")
    library.impl(
        op.qualified_name.removeprefix("aten::"),
        lambda *args: right(0, *args) + 1 if condition(*args) else right(0, *args),
        "Batched",
    )
    return library


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("sin", lambda x: x.array.bdim == x.ndim > 0),
        ("mv", lambda m, v: not hasattr(v.array, "bdim")),
        ("mv", lambda m, v: not hasattr(m.array, "bdim")),
        ("index_select", lambda x, dim, index: not hasattr(index.array, "bdim")),
        ("where.self", lambda c, x, y: hasattr(c.array, "bdim") and c.array.bdim == 1 and not hasattr(y.array, "bdim")),
        ("mul.Tensor", lambda x, y: y.ndim == 0 and hasattr(y.array, "bdim")),
    ],
)  # fmt: skip
def test_the_suite_notices_a_rule_that_is_wrong_for_one_mix(name: str, condition: Any) -> None:
    case = next(c for c in CASES if c.op == name)
    with wrong_for(REGISTRY.find(f"aten::{name}"), condition), pytest.raises(AssertionError):
        test_vmap_gives_what_the_loop_gives(case)
    test_vmap_gives_what_the_loop_gives(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_two_levels_give_what_two_loops_give(case: OperatorCase) -> None:
    for number, call in enumerate(itertools.islice(calls(case), 2)):
        if is_refused(call.op, any(t.dtype == "bool" for t in call.tensors)):
            continue
        for outer, inner in levels(case.op, call.tensors)[number :: 1 + 3 * number]:  # a quarter for the second call
            given = [nested(*each) for each in zip(call.examples, outer, inner, strict=True)]
            mapped = turnout.vmap(turnout.vmap(call, inner, randomness="same"), outer, randomness="same")
            try:
                loop = call.once((outer, inner), (2, SIZE), lambda: two_loops(call, given, outer, inner))  # noqa: B023
            except ShapeError:
                assert isinstance(raised(lambda: mapped(*given)), ShapeError)  # noqa: B023
                continue
            call.compare(mapped(*given), loop)


def two_loops(call: Call, given: list[turnout.Tensor], outer: Mix, inner: Mix) -> list[Any]:
    rows = [call.example(given, outer, i) for i in range(2)]
    return [call(*call.example(row, inner, j)) for row in rows for j in range(SIZE)]


def nested(examples: list[np.ndarray], outer: int | None, inner: int | None) -> turnout.Tensor:
    """Two levels of batch: the inner one put into the example, the outer one into that."""
    made = [examples[i] if inner is None else np.stack(np.roll(examples, i, 0), inner) for i in range(2)]
    return turnout.from_numpy(np.array(made[0] if outer is None else np.stack(made, outer)))


def test_every_row_of_the_tables_names_an_operator() -> None:
    from turnout_batched.rules import DECOMPOSED, REFUSED, RULES

    rows = [*RULES, *DECOMPOSED, *REFUSED]
    assert [row for row in rows if not REGISTRY.find(f"aten::{row}").is_defined] == []
    assert len(rows) == len(set(rows))


def test_no_case_warned_of_a_loop() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert turnout.vmap(turnout.cumsum, (0, None))(turnout.ones(2, 3), 0).shape == (2, 3)


@pytest.mark.parametrize("case", [c for c in CASES if "float32" in c.dtypes], ids=str)
def test_under_autocast_vmap_computes_in_the_dtypes_of_the_loop(case: OperatorCase) -> None:
    for sample in case.samples:
        call = Call(case, sample, "float32")
        if not call.tensors or case.op == "one_hot" or is_refused(call.op, any(t.dtype == "bool" for t in call.tensors)):
            continue
        mix = tuple(None if case.op in SHARED and t is call.tensors[-1] else 0 for t in call.tensors)
        batches = call.batches(mix)
        with turnout.autocast("cpu", dtype=turnout.bfloat16):
            expected = [t.dtype for t in flat(call(*call.example(batches, mix, 0)))]
            found = turnout.vmap(call, mix, randomness=call.randomness)(*batches)
        assert [t.dtype for t in flat(found)] == expected
