"""Random programs of views and writes beside the same programs functionalised: what differs, line by line or in gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from turnout.func import functionalize

import turnout
from autograd_programs import Program as Smooth
from autograd_programs.as_function import function_of
from random_programs.running import Lines, difference, run, says
from turnout import Tensor, autograd
from turnout_functionalize.transform import REMOVE
from turnout_functionalize.values import FunctionalTensor

# ---- in place and into out, line by line


class Seen:
    """A line of a program as it is without functionalize: its error, and each tensor's values after it."""

    def __init__(self, line: str, scope: dict[str, Any]) -> None:
        self.line = line
        self.error = run(line, scope)
        found = {name: value for name, value in scope.items() if isinstance(value, Tensor)}
        self.strides = {name: value.stride() for name, value in found.items()}
        self.values = {name: value.detach().clone() for name, value in found.items()}


def judge(remove: str) -> Callable[[Lines], str]:
    """What differs between a program and the functionalised one after some line; "" if nothing does."""

    def judge_lines(lines: Lines) -> str:
        scope: dict[str, Any] = {"t": turnout}
        steps = list(until_resized([Seen(line, scope) for line in lines]))
        inner: dict[str, Any] = {"t": turnout}

        def body() -> str:
            for step in steps:
                wrong = difference_after(step, inner)
                if wrong:
                    return f"{step.line}\n  {wrong}"
            return ""

        return functionalize(body, remove=remove)()

    return judge_lines


def until_resized(steps: list[Seen]) -> Iterator[Seen]:
    """The lines before one that resizes a tensor, which functionalize refuses, or that makes no sense."""
    shapes: dict[str, Any] = {}
    for step in steps:
        new = {name: value.shape for name, value in step.values.items()}
        if isinstance(step.error, NameError) or ".resize_(" in step.line or any(new[name] != shapes[name] for name in shapes):
            return
        yield step
        shapes = new


def difference_after(step: Seen, scope: dict[str, Any]) -> str:
    found = run(step.line, scope)
    if (found is None) != (step.error is None):
        return f"{says(found)}, expected {says(step.error)}"
    for name, value in step.values.items():
        ours = scope[name]
        assert isinstance(ours, FunctionalTensor) or ours.storage is None, name
        if ours.stride() != step.strides[name] and 0 not in ours.shape:
            return f"{name}: strides {ours.stride()}, expected {step.strides[name]}"
        wrong = difference(name, ours, value, close=1e-6)
        if wrong:
            return wrong
    return ""


# ---- with gradients, and traced

CLOSE = 1e-9


def gradients(function: Callable[..., Tensor], start: list[Tensor]) -> list[Any]:
    """The value, and the gradients with respect to the starts."""
    value = function(*start)
    return [value.detach(), *autograd.grad(value, start, allow_unused=True)]


def wrong(found: list[Any], expected: list[Any]) -> str:
    """Where a write leaves nothing of a tensor, its history is gone too: then there is no gradient in place of zeros."""
    found, expected = ([0.0 if each is None else float(each) for each in listed] for listed in (found, expected))
    same = all(math.isclose(a, b, rel_tol=CLOSE, abs_tol=CLOSE) for a, b in zip(found, expected, strict=True))
    return "" if same else f"{found}, expected {expected}"


def kinds_for(seed: int) -> tuple[str, ...]:
    """The kinds of functionalize under which the program of a seed computes the same."""
    # differs from torch: copies of views are row-major, and so may be what is computed from them; `as_strided` sees that.
    return REMOVE[:1] if any(".as_strided(" in step.code for step in Smooth(seed, smooth=True).steps) else REMOVE


def disagreement(seed: int) -> str:
    """What is wrong with the functionalised program of a seed; empty when nothing is."""
    function, start = function_of(Smooth(seed, smooth=True))
    expected = gradients(function, start)
    elsewhere = [(x + 0.1 * (i + 1)).detach().requires_grad_() for i, x in enumerate(start)]
    expected_there = gradients(function, elsewhere)
    for remove in kinds_for(seed):
        functional = functionalize(function, remove=remove)
        found = wrong(gradients(functional, start), expected)
        if found:
            return f"{remove}: {found}"
        graph = turnout.trace(functional)(*start)
        for node in graph.nodes:
            schema = node.op.schema
            if schema.mutated_arguments or (schema.is_view and remove == "mutations_and_views"):
                return f"{remove}: the trace has {schema}"
        found = wrong(gradients(graph, elsewhere), expected_there)
        if found:
            return f"{remove}, replayed: {found}"
    return ""
