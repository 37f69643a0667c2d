"""Gradient descent, with momentum: `SGD`, and `Muon`, which makes the momentum of a matrix orthogonal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import turnout
from turnout import Tensor, ops
from turnout.errors import ArgumentError
from turnout_aten.plugin_api import describe
from turnout_nn.optim import limits
from turnout_nn.optim.optimizer import HYPERPARAMETERS, Optimizer, arguments, decayed, zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_nn.optim.optimizer import Group, Parameters, State


class SGD(Optimizer):
    """Gradient descent. With momentum, a step goes along a sum of gradients that decays (Sutskever et al., 2013).

    Arguments:
        momentum: the decay of the sum; 0 takes the gradient alone
        dampening: what a gradient is short of 1 in the sum
        nesterov: whether a step looks ahead along the momentum
    """

    numbers = ()

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float | Tensor = 0, nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr, momentum=momentum, weight_decay=weight_decay)
        limits.require(
            self, not nesterov or (momentum > 0 and dampening == 0), "nesterov=True needs momentum above 0 and dampening=0"
        )
        super().__init__(params, given)
        self._check_ways()

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        momentum = options["momentum"]
        gradient = decayed(gradient, parameter, options)
        if momentum:
            held = state.get("momentum_buffer")
            if held is None:
                # differs from torch: with `differentiable=True`, the first gradient of `SGD` has its part in later steps.
                held = state["momentum_buffer"] = gradient.clone()
            else:
                held.mul_(momentum).add_(gradient, alpha=1 - options["dampening"])
            gradient = gradient.add(held, alpha=momentum) if options["nesterov"] else held
        parameter.add_(gradient, alpha=-options["lr"])

    def _fused_rule(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], states: Sequence[State], options: Group
    ) -> None:
        momentum = options["momentum"]
        is_first = "momentum_buffer" not in states[0]
        if momentum and is_first:
            for state, parameter in zip(states, parameters, strict=True):
                state["momentum_buffer"] = zeros(parameter)
        ops.aten._fused_sgd_(
            parameters, gradients, [s["momentum_buffer"] for s in states] if momentum else [],
            weight_decay=options["weight_decay"], momentum=momentum, lr=options["lr"], dampening=options["dampening"],
            nesterov=options["nesterov"], maximize=False, is_first_step=is_first,
        )  # fmt: skip


class Muon(Optimizer):
    """Muon (Jordan et al., 2024): a step along the nearest orthogonal matrix to the momentum, for matrices only.

    Arguments:
        params: matrices, pairs of name and matrix, or groups
        weight_decay: how much of a parameter goes in a step, times the learning rate
        momentum: the decay of the average gradient
        nesterov: whether a step looks ahead along the momentum
        ns_coefficients: the three coefficients of the iteration that makes a matrix orthogonal
        eps: the least norm by which the iteration divides
        ns_steps: how many iterations
        adjust_lr_fn: how the learning rate depends on the shape: "original" or None, or "match_rms_adamw"
    """

    numbers = ()
    lists = False

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True, ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7,
        ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr, weight_decay=weight_decay, momentum=momentum)
        limits.require(
            self, adjust_lr_fn in (None, "original", "match_rms_adamw"),
            f"adjust_lr_fn must be None, 'original' or 'match_rms_adamw', got {adjust_lr_fn!r}",
        )  # fmt: skip
        super().__init__(params, given)
        for p in [p for group in self.param_groups for p in group["params"]]:
            limits.require(self, p.ndim == 2, f"a parameter must be a matrix, got shape {list(p.shape)}")

    def _start(self, parameter: Tensor, group: Group) -> State:
        limits.real(self, parameter)
        return {"momentum_buffer": zeros(parameter)}

    def _rule(self, parameter: Tensor, gradient: Tensor, state: State, options: Group) -> None:
        held = state["momentum_buffer"].lerp_(gradient, 1 - options["momentum"])
        step = gradient.lerp(held, options["momentum"]) if options["nesterov"] else held
        step = _orthogonal(step, options["ns_coefficients"], options["ns_steps"], options["eps"])
        rows, columns = parameter.shape
        if options["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * max(rows, columns) ** 0.5
        else:
            factor = max(1, rows / columns) ** 0.5
        parameter.mul_(1 - options["lr"] * options["weight_decay"])
        parameter.add_(step, alpha=-options["lr"] * factor)


def _orthogonal(matrix: Tensor, coefficients: Sequence[float], steps: int, eps: float) -> Tensor:
    """A matrix with the singular vectors of the given one and singular values near 1, by Newton's and Schulz's iteration."""
    if steps >= 100:
        raise ArgumentError(f"Muon: ns_steps must be less than 100, got {steps}")
    if len(coefficients) != 3:
        raise ArgumentError(f"Muon: ns_coefficients must be three numbers, got {len(coefficients)}")
    a, b, c = coefficients
    found = matrix.to(turnout.bfloat16)
    is_tall = matrix.shape[0] > matrix.shape[1]
    found = found.T if is_tall else found
    found = found.div(found.norm().clamp(min=eps))
    for _ in range(steps):
        gram = found @ found.T
        found = turnout.addmm(found, turnout.addmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.T if is_tall else found


describe(globals(), **HYPERPARAMETERS)
