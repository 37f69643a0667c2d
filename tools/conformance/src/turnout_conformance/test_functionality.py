"""Every operator case through the functionality: the operator reaches it, and gives what it gives without it.

With it on, results, views, written tensors, errors, gradients, vmap, autocast and trace must be what they are without it.
Operators whose results it changes are named with `--turnout-key-changes`: these must still reach it, and give results of the same
kinds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import turnout
from turnout.keys import KEYS
from turnout.operators import Operator
from turnout.operators.values import flat
from turnout.state import DISPATCH
from turnout_conformance import batches
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.comparing import Raised, check, facts, find, form, gradients, outcome, shown, tensors
from turnout_conformance.functionality import Functionality
from turnout_conformance.lifecycle import check_names_and_options, check_needs, life
from turnout_conformance.making import arguments, leaf, row_major, samples
from turnout_conformance.replays import call_of, check_replays

each_case = pytest.mark.parametrize("case", CASES, ids=str)
differentiable = [case for case in CASES if case.differentiable and "float64" in case.dtypes]


def compare(found: Any, expected: Any, changes: bool = False, *, layouts: bool = True) -> None:
    """The outcome with the functionality is the one without it; where it changes results, their number and kinds are."""
    if changes and not isinstance(found, Raised) and not isinstance(expected, Raised):
        assert [type(value) for value in found] == [type(value) for value in expected]
        return
    check(found, expected, "cpu", 0, layouts=layouts, names=("the call with it", "the call without it"))


def drawn(before: tuple[int, int], after: tuple[int, int]) -> tuple[int, int]:
    """By how much the seed and the offset of the random numbers have changed."""
    return after[0] - before[0], after[1] - before[1]


def aliases(results: Any, args: list[Any]) -> list[bool]:
    """Whether each result shares memory with the first argument."""
    return [t.is_alias_of(args[0]) for t in tensors(results) if isinstance(args[0], turnout.Tensor)]


def without(turnout_key: Functionality, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The outcome of a call with the functionality off, which must then see nothing."""
    before = sum(turnout_key.watch.calls.values())
    found = outcome(call, *args, **kwargs)
    assert sum(turnout_key.watch.calls.values()) == before, f"{turnout_key.key} took part without being asked"
    return found


def through(turnout_key: Functionality, op: Operator, args: Any, kwargs: Any) -> list[Any] | Raised:
    """The outcome of a call with the functionality on; the call must reach it, and leave the state as it was."""
    state = DISPATCH.get()
    with turnout_key.on():
        inside, before = DISPATCH.get(), turnout_key.passes(op)
        found = outcome(op, *args, **kwargs)
        assert DISPATCH.get() == inside, f"{op.qualified_name} changed the state of dispatch"
        assert turnout_key.passes(op) > before, f"{op.qualified_name} did not reach {turnout_key.key}"
    assert DISPATCH.get() == state
    return found


@each_case
def test_an_operator_passes_and_gives_what_it_gives_without(case: OperatorCase, turnout_key: Functionality) -> None:
    op = find(case.op)
    changes = turnout_key.may_change(op)
    for sample, dtype in samples(case, "cpu"):
        args, kwargs = arguments(sample, dtype, row_major("cpu"))
        first = turnout.get_rng_state()
        expected = without(turnout_key, op, *args, **kwargs)
        again, named = arguments(sample, dtype, row_major("cpu"))
        before, second = shown([*again, *named.values()]), turnout.get_rng_state()
        found = through(turnout_key, op, again, named)
        compare(found, expected, changes)
        if not changes:
            assert drawn(second, turnout.get_rng_state()) == drawn(first, second), "it drew random numbers, or seeded them anew"
        assert before == shown([*again, *named.values()]), "it changed an input"
        if not changes and args:
            assert aliases(found, again) == aliases(expected, args), "a view is no view any more, or a copy is one"


@each_case
def test_the_written_forms_pass_and_write_what_they_write_without(case: OperatorCase, turnout_key: Functionality) -> None:
    functional = find(case.op)
    inplace, out = form(functional, "inplace"), form(functional, "out")
    for sample, dtype in list(samples(case, "cpu"))[:2]:
        if inplace is not None:
            args, kwargs = arguments(sample, dtype, row_major("cpu"))
            again, _ = arguments(sample, dtype, row_major("cpu"))
            expected = outcome(inplace, *args, **kwargs)
            found = through(turnout_key, inplace, again, kwargs)
            compare(found, expected, turnout_key.may_change(inplace))
            if not isinstance(found, Raised):
                assert found[0] is again[0], "an in-place operator gives self"
                assert again[0].version() == args[0].version(), "the version is stale"
        if out is not None:
            args, kwargs = arguments(sample, dtype, row_major("cpu"))
            expected = outcome(functional, *args, **kwargs)
            if isinstance(expected, Raised):
                continue
            given = [turnout.empty(0, dtype=t.dtype, device="cpu") for t in expected]
            names = [a.name for a in out.schema.out_arguments]
            found = through(turnout_key, out, args, {**kwargs, **dict(zip(names, given, strict=True))})
            assert not isinstance(found, Raised), found
            assert all(r is g for r, g in zip(found, given, strict=True)), "it gives other outputs"
            compare(given, expected, turnout_key.may_change(out), layouts=False)  # an output keeps its own


# ---- with the layers above and below


@pytest.mark.parametrize("case", differentiable, ids=str)
def test_gradients_are_those_without(case: OperatorCase, turnout_key: Functionality) -> None:
    op = find(case.op)
    if turnout_key.may_change(op):
        return
    for sample, dtype in list(samples(case, "cpu", ("float64",)))[:1]:
        expected = outcome(gradients, op, *arguments(sample, dtype, leaf("cpu")))
        with turnout_key.on():
            found = outcome(gradients, op, *arguments(sample, dtype, leaf("cpu")))
        compare(found, expected, layouts=False)


@each_case
def test_vmap_gives_what_it_gives_without(case: OperatorCase, turnout_key: Functionality) -> None:
    for call in [call for call in batches.calls(case) if not turnout_key.may_change(call.op)][:1]:
        mix = batches.mixes(case.op, call.tensors)[0]
        given = call.batches(mix)
        mapped = turnout.vmap(call, mix, randomness=call.randomness)
        expected = outcome(mapped, *given)
        with turnout_key.on():
            found = outcome(mapped, *given)
        compare(found, expected)


@each_case
def test_a_trace_replays_what_the_operator_gives(case: OperatorCase, turnout_key: Functionality) -> None:
    if turnout_key.may_change(find(case.op)):
        return
    chosen = list(samples(case, "cpu"))[:1]
    with turnout_key.on():
        check_replays(call_of(case), chosen, row_major("cpu"))


@pytest.mark.parametrize("case", [case for case in CASES if "float32" in case.dtypes], ids=str)
def test_autocast_computes_in_the_dtypes_that_it_has_without(case: OperatorCase, turnout_key: Functionality) -> None:
    op = find(case.op)
    for sample, dtype in list(samples(case, "cpu", ("float32",)))[:1]:
        args, kwargs = arguments(sample, dtype, row_major("cpu"))
        with turnout.autocast("cpu", dtype=turnout.bfloat16):
            expected = outcome(op, *args, **kwargs)
            with turnout_key.on():
                found = outcome(op, *args, **kwargs)
        assert isinstance(found, Raised) == isinstance(expected, Raised), f"{found}, and without {expected}"
        if not isinstance(found, Raised):
            assert facts(found) == facts(expected)


# ---- its state


def test_an_error_leaves_the_state_as_it_was(turnout_key: Functionality) -> None:
    x = turnout.ones(2, 3, device="cpu")
    op = find("mm")
    expected = outcome(op, x, x)
    assert isinstance(expected, Raised)
    outside = DISPATCH.get()
    for _ in range(2):
        found = through(turnout_key, op, [x, x], {})
        assert isinstance(found, Raised)
        assert found.kind is expected.kind, f"{found}, and without {expected}"
        assert DISPATCH.get() == outside
    with pytest.raises(ZeroDivisionError), turnout_key.on():
        raise ZeroDivisionError
    assert DISPATCH.get() == outside
    without(turnout_key, find("exp"), x)


def test_it_can_be_entered_inside_itself(turnout_key: Functionality) -> None:
    x, op = turnout.ones(2, device="cpu"), find("exp")
    with turnout_key.on():
        through(turnout_key, op, [x], {})
        before = turnout_key.passes(op)
        op(x)
        assert turnout_key.passes(op) > before, "leaving the inner context left the outer one"


def test_it_is_on_in_its_own_thread_only(turnout_key: Functionality) -> None:
    x, op = turnout.ones(2, device="cpu"), find("exp")
    counts = []

    def run() -> None:
        before = turnout_key.passes(op)
        op(x)
        counts.append(turnout_key.passes(op) - before)

    with turnout_key.on():
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert counts == [0]


def test_explain_shows_it(turnout_key: Functionality) -> None:
    x = turnout.ones(2, device="cpu")
    with turnout_key.on():
        assert f"-> {turnout_key.key}" in str(turnout.explain("aten::exp", x))
    assert f"-> {turnout_key.key}" not in str(turnout.explain("aten::exp", x))


def test_it_has_a_place_in_the_order_of_keys(turnout_key: Functionality) -> None:
    assert turnout_key.key in KEYS.universe.runtime_keys
    assert len(flat(list(KEYS.universe.runtime_keys))) == len(set(KEYS.universe.runtime_keys))


def test_deactivation_takes_everything_back_and_the_next_use_brings_it_again(turnout_key: Functionality) -> None:
    facts = life("functionality", turnout_key.key, "")
    assert turnout_key.key in facts["keys"]
    check_needs(facts)
    check_names_and_options(facts)
    assert facts["registered"]
    assert facts["left"] == []
    assert facts["after deactivation"] == "discovered"
    assert facts["again"] == "as before"
