"""Older optimisers: `Rprop`, which looks at the signs of gradients only, and `ASGD`, which averages the parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import turnout
from turnout import Tensor
from turnout_aten.plugin_api import describe
from turnout_nn.optim import limits
from turnout_nn.optim.optimizer import HYPERPARAMETERS, Optimizer, arguments, decayed, zeros

if TYPE_CHECKING:
    from turnout_nn.optim.optimizer import Group, Parameters, State


class Rprop(Optimizer):
    """Rprop (Riedmiller and Braun, 1993): each element has a step, which grows while the sign of its gradient stays the same.

    Arguments:
        lr: the first step, a number or a tensor of one element
        etas: by what a step is multiplied where the sign changed, and where it stayed the same
        step_sizes: the least and the largest step
        foreach: accepted; each parameter is changed by itself
    """

    lists = False

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr)
        less, more = etas
        limits.require(
            self, 0.0 < less < 1.0 < more, f"etas must be one number between 0 and 1 and one above 1, got {less:g} and {more:g}"
        )
        super().__init__(params, given)
        self._check_ways()

    def _start(self, parameter: Tensor, group: Group) -> State:
        lr = float(group["lr"])
        first = turnout.full_like(parameter, complex(lr, lr) if parameter.is_complex() else lr)
        return {"step": 0.0, "prev": zeros(parameter), "step_size": first}

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        less, more = options["etas"]
        change = gradient.mul(state["prev"]).sign()  # 1, 0 or -1
        grown = change.clamp(min=0).mul_(more - 1).add_(1)
        state["step_size"].mul_(grown.add_(change.clamp(max=0), alpha=1 - less)).clamp_(*options["step_sizes"])
        gradient = gradient.mul(change.clamp(max=0).add_(1))  # after a change of the sign, an element waits
        parameter.addcmul_(gradient.sign(), state["step_size"], value=-1)
        state["prev"].copy_(gradient)


class ASGD(Optimizer):
    """Averaged gradient descent (Polyak and Juditsky, 1992): the state "ax" is the average of the parameter.

    Arguments:
        lr: the first learning rate, a number or a tensor of one element
        lambd: how the learning rate shrinks, and how weights decay
        alpha: the power with which it shrinks
        t0: the step at which the average begins
    """

    numbers = ("step", "eta", "mu")

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr, weight_decay=weight_decay)
        super().__init__(params, given)
        self._check_ways()

    def _start(self, parameter: Tensor, group: Group) -> State:
        return {"step": 0.0, "eta": group["lr"], "mu": 1.0, "ax": zeros(parameter)}

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        lambd, step, mean = options["lambd"], state["step"], state["ax"]
        gradient = decayed(gradient, parameter, options)
        parameter.mul_(1 - lambd * state["eta"]).add_(gradient, alpha=-state["eta"])
        if state["mu"] == 1:
            mean.copy_(parameter)
        else:
            mean.lerp_(parameter, state["mu"])
        state["eta"] = float(options["lr"] / (1 + lambd * options["lr"] * step) ** options["alpha"])
        state["mu"] = 1 / max(1, step - options["t0"])


describe(globals(), **HYPERPARAMETERS)
