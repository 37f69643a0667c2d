"""A program as a function of its leaves, in Turnout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import turnout
from autograd_programs import Program, Step, places
from turnout import Tensor, autograd


def passes(step: Step, scope: dict[str, Any]) -> bool:
    """Run a step where everything it needs is there; False where it is refused, or means nothing."""
    if any(name not in scope for name in step.needs):
        return False
    if step.writes and len(set(places(scope[step.writes]))) < scope[step.writes].numel():
        return False
    try:
        exec(step.code, scope)
    except (RuntimeError, TypeError, IndexError, ValueError):
        return False
    return True


def function_of(program: Program, library: Any = turnout) -> tuple[Callable[..., Tensor], list[Tensor]]:
    """The program as a function of how far each tracked leaf goes in some direction, and where to look at it.

    `library` is what its lines call: `turnout`, or what makes tensors on another device.
    """
    scope: dict[str, Any] = {"t": library}
    for leaf in program.leaves:
        exec(leaf.code, scope)
    starts = [scope[name] for name in program.starts]
    others = {name: x.clone() for name, x in scope.items() if isinstance(x, Tensor) and name not in program.starts}
    steps = [step for step in program.steps if passes(step, scope)]
    ends = [name for name in program.ends if differentiable(scope.get(name), starts)]

    directions = [
        turnout.cos(turnout.arange(x.numel(), dtype=x.dtype, device=x.device) * 1.7 + i).view(x.shape)
        for i, x in enumerate(starts)
    ]

    def function(*ways: Tensor) -> Tensor:
        scope = {"t": library, **{name: x.clone() for name, x in others.items()}}
        leaves = [x.detach() + way * v for x, way, v in zip(starts, ways, directions, strict=True)]
        scope.update(zip(program.starts, leaves, strict=True))
        for step in steps:
            exec(step.code, scope)
        return sum((scope[name].tanh() * (0.5 + i)).sum() for i, name in enumerate(ends)) + leaves[0].sum()

    return function, [turnout.tensor(0.0, dtype=x.dtype, device=x.device).requires_grad_() for x in starts]


def differentiable(end: Tensor | None, starts: Sequence[Tensor]) -> bool:
    """Whether it is finite, and a gradient comes back: nothing that was kept for it was written since."""
    if end is None or not end.dtype.is_floating_point or not turnout.isfinite(end.detach()).all():
        return False
    try:
        if end.requires_grad:
            autograd.grad(end.sum(), starts, retain_graph=True, allow_unused=True)
    except RuntimeError:
        return False
    return True
