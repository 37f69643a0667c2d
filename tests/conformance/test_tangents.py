"""Tangent rules: every operator case's rule is the derivative that gradients imply, and what differences of the values say.

The judge is the pullback of the pullback: a gradient is linear in what comes in, and its own gradient along a tangent is the
derivative along that tangent. It uses no rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import turnout
from turnout import func
from turnout.registry import REGISTRY
from turnout_aten import trees
from turnout_conformance.cases import OperatorCase
from turnout_conformance.cases.differentiable import CONSTANTS, DIFFERENTIABLE, as_function, leaf, leaves, replaced
from turnout_conformance.cases.model import calls

PRECISE = ("float64", "complex128")


def rule_of(op: Any) -> Any:
    turnout.ones(1).requires_grad_()
    from turnout_autograd.tangents import rule

    return rule(op)


def random_like(tensors: list[turnout.Tensor], seed: int) -> list[turnout.Tensor]:
    draw = np.random.default_rng(seed)
    made = []
    for t in tensors:
        values = draw.uniform(-1, 1, t.shape) + (1j * draw.uniform(-1, 1, t.shape) if t.is_complex() else 0)
        made.append(turnout.from_numpy(np.asarray(values, t.dtype.name)))
    return made


def flat(found: Any) -> list[Any]:
    """The results of a call, or their tangents."""
    if isinstance(found, (list, tuple)):
        return [t for each in found for t in flat(each)]
    return [found]


class Sample(NamedTuple):
    """A call of one operator that has a gradient, with a tangent for each of its leaves."""

    case: OperatorCase
    op: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def inputs(self) -> list[turnout.Tensor]:
        return leaves((self.args, self.kwargs))

    def detached(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        found = {id(t): t.detach() for t in self.inputs}
        return replaced(self.args, found), replaced(self.kwargs, found)


def samples(case: OperatorCase) -> Iterator[Sample]:
    """Every call of a case, in both precise dtypes, whose results have gradients."""
    op = REGISTRY.find(f"aten::{case.op}")
    if rule_of(op) is None:
        return
    names = [a.name for a in op.schema.arguments]
    constant = CONSTANTS.get(case.op)
    for dtype in PRECISE:
        for args, kwargs in calls(case, dtype, leaf) if dtype in case.dtypes else ():
            given = tuple(a.detach() if n == constant and a is not None else a for n, a in zip(names, args, strict=False))
            sample = Sample(case, op, given, kwargs)
            if sample.inputs and leaves(flat(op(*given, **kwargs))):
                yield sample


CASES = [case for case in DIFFERENTIABLE if rule_of(REGISTRY.find(f"aten::{case.op}")) is not None]


def tangents_for(sample: Sample, tangents: list[turnout.Tensor | None]) -> tuple[Any, ...]:
    """What a rule is given: one for each argument that may hold tensors."""
    found = {id(p): t for p, t in zip(sample.inputs, tangents, strict=True)}
    given = []
    bound = sample.op.bind(sample.args, sample.kwargs)
    for argument, value in zip(sample.op.schema.arguments, bound, strict=True):
        if str(argument.type).startswith("Tensor"):
            many = isinstance(value, (list, tuple))
            each = tuple(found.get(id(t)) for t in value) if many else found.get(id(value))
            given.append(None if many and all(t is None for t in each) else each)
    return tuple(given)


def differentiable_places(sample: Sample, results: list[Any]) -> list[int]:
    """The results of a recorded call that have gradients."""
    return [i for i, t in enumerate(results) if isinstance(t, turnout.Tensor) and t.requires_grad]


def by_rule(rule: Any, sample: Sample, tangents: list[turnout.Tensor | None]) -> list[turnout.Tensor]:
    """The tangents that the rule says, of the results that have gradients; zeros for None."""
    args, kwargs = sample.detached()
    with turnout.no_grad():
        result = sample.op(*args, **kwargs)
        made = rule(args, kwargs, tangents_for(sample, tangents), result)
    recorded = flat(sample.op(*sample.args, **sample.kwargs))
    results = flat(result)
    made = flat(made)
    places = differentiable_places(sample, recorded)
    assert len(made) == len(places)
    return [turnout.zeros_like(results[i]) if t is None else t for i, t in zip(places, made, strict=True)]


def by_pullbacks(sample: Sample, tangents: list[turnout.Tensor | None]) -> list[turnout.Tensor]:
    """The pullback of the pullback."""
    call, given = as_function(sample.op, sample.args, sample.kwargs)
    inputs = [t.detach() for t in given]
    places = differentiable_places(sample, flat(call(*given)))

    def function(*tensors: turnout.Tensor) -> list[turnout.Tensor]:
        results = trees.flatten(call(*tensors))[0]
        return [results[i] for i in places]

    results, pull = func.vjp(function, *inputs)
    _, push = func.vjp(lambda *cotangents: pull(list(cotangents)), *[turnout.zeros_like(r) for r in results])
    return flat(push(tuple(turnout.zeros_like(x) if t is None else t for x, t in zip(inputs, tangents, strict=True))))


def same(found: list[Any], expected: list[Any], tolerance: float = 1e-8) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert a.dtype is b.dtype
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_rule_is_the_pullback_of_the_pullback(case: OperatorCase) -> None:
    rule = rule_of(REGISTRY.find(f"aten::{case.op}"))
    for sample in samples(case):
        tangents = random_like([t.detach() for t in sample.inputs], 5)
        same(by_rule(rule, sample, tangents), by_pullbacks(sample, tangents))
        for alone in range(len(tangents) if len(tangents) > 1 else 0):
            only = [t if i == alone else None for i, t in enumerate(tangents)]
            same(by_rule(rule, sample, only), by_pullbacks(sample, only))
