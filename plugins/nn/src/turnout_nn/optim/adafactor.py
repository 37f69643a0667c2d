"""`Adafactor`: averages of squares by rows and columns, which need little memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import turnout
from turnout import Tensor
from turnout_aten.plugin_api import describe
from turnout_nn.optim import limits
from turnout_nn.optim.optimizer import HYPERPARAMETERS, Optimizer, arguments, zeros

if TYPE_CHECKING:
    from turnout_nn.optim.optimizer import Group, Parameters, State


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018): of a matrix's average square, only the means of rows and columns are kept.

    Arguments:
        lr: the largest relative step, a number or a tensor of one element
        beta2_decay: the power by which an average forgets less with the steps, at most 0
        eps: the root of the least average square, None for the dtype's precision; and the least scale of a parameter
        d: the largest root of the mean square of a step, in which it is clipped; at least 1
        weight_decay: how much of a parameter goes in a step, times the learning rate
        foreach: accepted; each parameter is changed by itself
    """

    lists = False

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
        foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr, weight_decay=weight_decay)
        limits.at_least(self, **{f"eps[{i}]": value for i, value in enumerate(eps) if value is not None})
        limits.at_least(self, 1.0, d=d)
        limits.at_most(self, 0.0, beta2_decay=beta2_decay)
        super().__init__(params, given)

    def _start(self, parameter: Tensor, group: Group) -> State:
        limits.real(self, parameter)
        if parameter.dim() < 2:
            return {"step": 0.0, "variance": zeros(parameter)}
        *outer, rows, columns = parameter.shape
        return {
            "step": 0.0,
            "row_var": parameter.new_zeros([*outer, rows, 1]),
            "col_var": parameter.new_zeros([*outer, 1, columns]),
        }

    def _rule(self, parameter: Tensor, gradient: Tensor, state: State, options: Group) -> None:
        lr, step, (eps, least) = options["lr"], state["step"], options["eps"]
        eps = turnout.finfo(parameter.dtype).eps if eps is None else eps
        weight = step ** options["beta2_decay"]
        rate = max(least, _root_mean_square(parameter)) * min(lr, step**-0.5)
        if options["weight_decay"]:
            parameter.mul_(1 - lr * options["weight_decay"])
        square = gradient * gradient
        if parameter.dim() < 2:
            average = state["variance"].lerp_(square, weight).clone()
        else:
            rows = state["row_var"].lerp_(square.mean(-1, keepdim=True), weight)
            columns = state["col_var"].lerp_(square.mean(-2, keepdim=True), weight)
            average = (rows @ columns).div_(rows.mean(-2, keepdim=True).clamp_(min=eps))
        change = average.clamp_(min=eps * eps).rsqrt_().mul_(gradient)
        parameter.add_(change, alpha=-rate / max(1.0, _root_mean_square(change) / options["d"]))


def _root_mean_square(tensor: Tensor) -> float:
    return float(tensor.norm(2) / tensor.numel() ** 0.5)


describe(globals(), **HYPERPARAMETERS)
