"""Faults of gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import turnout
from faults.model import Spec, installed
from faults.mutators.facts import GRADIENTS, Facts, Rule, is_floating, mapped
from outcomes import flat
from turnout import Tensor

# ---- gradients

LINEAR = ("add_scaled", "weighted", "halves", "signs", "top", "total", "twice_served", "noisy")


def gradient_mutants(spec: Spec, facts: Facts) -> Rule:
    if spec.backward is None:
        return
    rule = spec.backward
    count = _gradient_count(spec)

    def changed(change: Callable[[Tensor], Any], at: int) -> Spec:
        @functools.wraps(rule)
        def backward(ctx: Any, *grads: Any) -> Any:
            found = rule(ctx, *grads)
            if not isinstance(found, tuple):
                return mapped(found, change)
            return tuple([mapped(g, change) if i == at else g for i, g in enumerate(found)])

        return spec.but(backward=backward)

    changes: dict[str, Callable[[Tensor], Any]] = {
        "doubled": lambda g: g * 2,
        "negated": lambda g: -g,
        "halved": lambda g: g * 0.5,
        "1% larger": lambda g: g * 1.01,
        "shifted": lambda g: g + 1,
        "zero": lambda g: g * 0,
        "one": lambda g: g * 0 + 1.5,
        "missing": lambda g: None,
        "of another shape": lambda g: turnout.cat([g.reshape((-1,)), g.reshape((-1,))[:1]]),
        "of one dim more": lambda g: turnout.stack([g, g]),
        "squared": lambda g: g * g * 3,
        "of its absolute value": lambda g: g.abs() * 1.2,
        "that fails": lambda g: g.no_such_method(),
        "a number": lambda g: 3.0,
        "without its first element": lambda g: g * (turnout.arange(g.numel()).reshape(tuple(g.shape)) > 0),
    }
    for at in range(count):
        for how, change in changes.items():
            yield f"gradient {at} {how}", GRADIENTS, changed(change, at)
        if spec.name not in LINEAR:
            yield f"gradient {at} detached", GRADIENTS, changed(lambda g: g.detach(), at)

    @functools.wraps(rule)
    def writes(ctx: Any, *grads: Any) -> Any:
        found = rule(ctx, *grads)
        for g in flat(list(grads)):
            if isinstance(g, Tensor) and is_floating(g):
                g.mul_(2)
        return found

    @functools.wraps(rule)
    def short(ctx: Any, *grads: Any) -> Any:
        found = rule(ctx, *grads)
        return (*found, found[0], found[0]) if isinstance(found, tuple) else (found, found, found)

    yield "backward writes the incoming gradient", GRADIENTS, spec.but(backward=writes)
    yield "backward returns too many", GRADIENTS, spec.but(backward=short)
    if spec.setup is not None:

        def forgetful(ctx: Any, *args: Any, **kwargs: Any) -> None:
            return None

        yield "nothing is saved", GRADIENTS, spec.but(setup=functools.wraps(spec.setup)(forgetful))
        if spec.name not in (*LINEAR, "normalised_rows"):
            yield "what is saved is detached", GRADIENTS, spec.but(setup=_detached_setup(spec.setup))
            yield "what is saved is that of the latest call", GRADIENTS, _latest(spec)


def _gradient_count(spec: Spec) -> int:
    """How many gradients the rule returns that are not None."""
    args, kwargs = spec.inputs()
    kinds: list[Any] = []
    rule = spec.backward
    assert rule is not None

    def counted(ctx: Any, *grads: Any) -> Any:
        found = rule(ctx, *grads)
        kinds.append(found)
        return found

    leaves = mapped(list(args), lambda t: t.clone().requires_grad_() if is_floating(t) else t)
    with installed(spec.but(backward=functools.wraps(rule)(counted))) as op:
        outputs = [o for o in flat(op(*leaves, **kwargs)) if isinstance(o, Tensor) and o.requires_grad]
        inputs = [t for t in flat(leaves) if isinstance(t, Tensor) and t.requires_grad]
        turnout.autograd.grad(outputs, inputs, [turnout.ones_like(o) for o in outputs], allow_unused=True)
    found = kinds[0]
    return sum(g is not None for g in found) if isinstance(found, tuple) else 1


def _detached_setup(setup: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(setup)
    def detached(ctx: Any, inputs: Any, *rest: Any, **kwargs: Any) -> None:
        setup(ctx, tuple([mapped(v, lambda t: t.detach().clone()) for v in inputs]), *rest, **kwargs)

    return detached


def _latest(spec: Spec) -> Spec:
    setup, rule = spec.setup, spec.backward
    assert setup is not None
    assert rule is not None
    latest: dict[str, Any] = {}

    @functools.wraps(setup)
    def noted(ctx: Any, *args: Any, **kwargs: Any) -> None:
        setup(ctx, *args, **kwargs)
        latest["ctx"] = ctx

    @functools.wraps(rule)
    def late(ctx: Any, *grads: Any) -> Any:
        return rule(latest["ctx"], *grads)

    return spec.but(setup=noted, backward=late)
