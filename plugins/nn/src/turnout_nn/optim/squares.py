"""Optimisers by squares of gradients: the step of an element shrinks with the squares that it had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import turnout
from turnout import Tensor, ops
from turnout_aten.plugin_api import describe
from turnout_nn.optim import limits
from turnout_nn.optim.optimizer import HYPERPARAMETERS, Optimizer, arguments, decayed, zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_nn.optim.optimizer import Group, Parameters, State


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011): a step divided by the root of the sum of all squares.

    Arguments:
        lr_decay: how the learning rate shrinks with the steps
        initial_accumulator_value: where the sum starts
    """

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *, maximize: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(
            self,
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        super().__init__(params, given)
        self._check_ways()
        for group in self.param_groups:
            for p in group["params"]:
                self._fill(p, group)

    def _start(self, parameter: Tensor, group: Group) -> State:
        first = group["initial_accumulator_value"]
        return {"step": 0.0, "sum": turnout.full_like(parameter, complex(first, first) if parameter.is_complex() else first)}

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        gradient = decayed(gradient, parameter, options)
        root = state["sum"].addcmul_(gradient, gradient, value=1).sqrt().add_(options["eps"])
        parameter.addcdiv_(gradient, root, value=-options["lr"] / (1 + (state["step"] - 1) * options["lr_decay"]))

    def _fused_rule(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], states: Sequence[State], options: Group
    ) -> None:
        for state in states:
            state["step"].add_(1)
        ops.aten._fused_adagrad_(
            parameters, gradients, [s["sum"] for s in states], [s["step"] for s in states], lr=options["lr"],
            lr_decay=options["lr_decay"], weight_decay=options["weight_decay"], eps=options["eps"], maximize=False,
        )  # fmt: skip


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): the average square of the steps takes the place of a learning rate.

    Arguments:
        lr: by what a step is multiplied, a number or a tensor of one element
        rho: the decay of both averages
        eps: added below both roots
    """

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        limits.at_most(self, 1.0, rho=rho)
        super().__init__(params, given)
        self._check_ways()

    def _start(self, parameter: Tensor, group: Group) -> State:
        return {"step": 0.0, "square_avg": zeros(parameter), "acc_delta": zeros(parameter)}

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        rho, eps, steps = options["rho"], options["eps"], state["acc_delta"]
        gradient = decayed(gradient, parameter, options)
        square = state["square_avg"].mul_(rho).addcmul_(gradient, gradient, value=1 - rho)
        step = steps.add(eps).sqrt_().div_(square.add(eps).sqrt_()).mul_(gradient)
        steps.mul_(rho).addcmul_(step, step, value=1 - rho)
        parameter.add_(step, alpha=-options["lr"])


class RMSprop(Optimizer):
    """RMSprop (Hinton, 2012): a step divided by the root of the average square, or of the variance where `centered`.

    Arguments:
        alpha: the decay of the average
        momentum: how much of the step before is repeated
        centered: whether the average gradient is taken off (Graves, 2013)
    """

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr, alpha=alpha, eps=eps, weight_decay=weight_decay, momentum=momentum)
        super().__init__(params, given)
        self._check_ways()

    def _start(self, parameter: Tensor, group: Group) -> State:
        state = {"step": 0.0, "square_avg": zeros(parameter)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros(parameter)
        if group["centered"]:
            state["grad_avg"] = zeros(parameter)
        return state

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        alpha, momentum = options["alpha"], options["momentum"]
        gradient = decayed(gradient, parameter, options)
        square = state["square_avg"].mul_(alpha).addcmul_(gradient, gradient, value=1 - alpha)
        if options["centered"]:
            mean = state["grad_avg"].lerp_(gradient, 1 - alpha)
            root = square.addcmul(mean, mean, value=-1).sqrt_()
        else:
            root = square.sqrt()
        root.add_(options["eps"])
        if momentum > 0:
            parameter.add_(state["momentum_buffer"].mul_(momentum).addcdiv_(gradient, root), alpha=-options["lr"])
        else:
            parameter.addcdiv_(gradient, root, value=-options["lr"])


describe(globals(), **HYPERPARAMETERS)
