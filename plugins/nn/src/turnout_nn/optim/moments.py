"""Optimisers by averages of gradients and of their squares: Adam and what came from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout import Tensor, ops
from turnout_aten.plugin_api import describe
from turnout_nn.optim import limits
from turnout_nn.optim.optimizer import HYPERPARAMETERS, Optimizer, arguments, decayed, zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_nn.optim.optimizer import Group, Parameters, State


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015): a step along the average gradient, divided by the root of the average square.

    Arguments:
        amsgrad: whether the largest average square so far counts (Reddi et al., 2018)
    """

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-3, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr, eps=eps, weight_decay=weight_decay)
        limits.decays(self, betas)
        are_tensors = [isinstance(beta, Tensor) for beta in betas]
        limits.require(self, are_tensors[0] == are_tensors[1], "betas must be two numbers or two tensors")
        limits.require(
            self,
            not (foreach and (are_tensors[0] or isinstance(lr, Tensor))),
            "foreach=True takes numbers as lr and betas, not tensors",
        )
        super().__init__(params, given | {"betas": tuple(betas)})
        self._check_ways()

    def _start(self, parameter: Tensor, group: Group) -> State:
        state = {"step": 0.0, "exp_avg": zeros(parameter), "exp_avg_sq": zeros(parameter)}
        return state | {"max_exp_avg_sq": zeros(parameter)} if group["amsgrad"] else state

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        (beta1, beta2), lr = options["betas"], options["lr"]
        gradient = _decayed(gradient, parameter, options)
        mean, square = _averages(gradient, state, beta1, beta2)
        if options["amsgrad"]:
            largest = state["max_exp_avg_sq"]
            square = largest.copy_(largest.maximum(square))
        root = (1 - beta2 ** state["step"]) ** 0.5  # a factor of the whole quotient: the average square need not be divided by it
        parameter.addcdiv_(mean, square.sqrt().add_(options["eps"] * root), value=-lr * root / (1 - beta1 ** state["step"]))

    def _fused_rule(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], states: Sequence[State], options: Group
    ) -> None:
        for state in states:
            state["step"].add_(1)
        largest = [state["max_exp_avg_sq"] for state in states] if options["amsgrad"] else []
        operator = ops.aten._fused_adamw_ if options["decoupled_weight_decay"] else ops.aten._fused_adam_
        operator(
            parameters, gradients, [s["exp_avg"] for s in states], [s["exp_avg_sq"] for s in states], largest,
            [s["step"] for s in states], lr=options["lr"], beta1=options["betas"][0], beta2=options["betas"][1],
            weight_decay=options["weight_decay"], eps=options["eps"], amsgrad=options["amsgrad"], maximize=False,
        )  # fmt: skip


class AdamW(Adam):
    """Adam with weights that decay by themselves (Loshchilov and Hutter, 2019).

    Arguments:
        weight_decay: how much of a parameter goes in a step, times the learning rate
        amsgrad: whether the largest average square so far counts
    """

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-3, betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip


class Adamax(Optimizer):
    """Adam by the largest gradient in place of the average square (Kingma and Ba, 2015).

    Arguments:
        betas: the decays of the average gradient and of the largest one
        eps: added to the absolute gradient
    """

    def __init__(
        self, params: Parameters, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr, eps=eps, weight_decay=weight_decay)
        limits.decays(self, betas)
        super().__init__(params, given)
        self._check_ways()

    def _start(self, parameter: Tensor, group: Group) -> State:
        return {"step": 0.0, "exp_avg": zeros(parameter), "exp_inf": zeros(parameter)}

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        beta1, beta2 = options["betas"]
        gradient = decayed(gradient, parameter, options)
        mean, largest = state["exp_avg"].lerp_(gradient, 1 - beta1), state["exp_inf"].mul_(beta2)
        largest.copy_(largest.maximum(gradient.abs().add_(options["eps"])))
        parameter.addcdiv_(mean, largest, value=-options["lr"] / (1 - beta1 ** state["step"]))


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat, 2016), which grows towards the first of `betas`.

    Arguments:
        momentum_decay: how fast the momentum grows
    """

    numbers = ("step", "mu_product")

    def __init__(
        self, params: Parameters, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        limits.decays(self, betas)
        super().__init__(params, given)
        self._check_ways()

    def _start(self, parameter: Tensor, group: Group) -> State:
        return {"step": 0.0, "mu_product": 1.0, "exp_avg": zeros(parameter), "exp_avg_sq": zeros(parameter)}

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        (beta1, beta2), lr, step = options["betas"], options["lr"], state["step"]
        gradient = _decayed(gradient, parameter, options)
        now, later = (beta1 * (1 - 0.5 * 0.96 ** (t * options["momentum_decay"])) for t in (step, step + 1))
        state["mu_product"] *= now
        mean, square = _averages(gradient, state, beta1, beta2)
        root = square.div(1 - beta2**step).sqrt_().add_(options["eps"])
        parameter.addcdiv_(gradient, root, value=-lr * (1 - now) / (1 - state["mu_product"]))
        parameter.addcdiv_(mean, root, value=-lr * later / (1 - state["mu_product"] * later))


class RAdam(Optimizer):
    """Adam that takes plain steps until its average square is worth dividing by (Liu et al., 2020)."""

    def __init__(
        self, params: Parameters, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        given = arguments(locals())
        limits.at_least(self, lr=lr, eps=eps, weight_decay=weight_decay)
        limits.decays(self, betas)
        super().__init__(params, given)
        self._check_ways()

    def _start(self, parameter: Tensor, group: Group) -> State:
        return {"step": 0.0, "exp_avg": zeros(parameter), "exp_avg_sq": zeros(parameter)}

    def _rule(self, parameter: Any, gradient: Any, state: State, options: Group) -> None:
        (beta1, beta2), step = options["betas"], state["step"]
        mean, square = _averages(_decayed(gradient, parameter, options), state, beta1, beta2)
        rate = -options["lr"] / (1 - beta1**step)
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / (1 - beta2**step)  # of the average square, in steps
        if length > 5:
            sure = ((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) ** 0.5
            root = square.sqrt().add_(options["eps"])
            parameter.addcdiv_(mean, root, value=rate * sure * (1 - beta2**step) ** 0.5)
        else:
            parameter.add_(mean, alpha=rate)


def _decayed(gradient: Any, parameter: Any, options: Group) -> Any:
    """The gradient with the decay of weights in it; where that is decoupled, the parameter decays by itself."""
    if not options["decoupled_weight_decay"]:
        return decayed(gradient, parameter, options)
    if options["weight_decay"]:
        parameter.mul_(1 - options["lr"] * options["weight_decay"])
    return gradient


def _averages(gradient: Any, state: State, beta1: Any, beta2: Any) -> tuple[Any, Any]:
    """The average gradient and the average square, with this one."""
    mean, square = state["exp_avg"], state["exp_avg_sq"]
    return mean.lerp_(gradient, 1 - beta1), square.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)


describe(
    globals(),
    **HYPERPARAMETERS,
    betas="the decays of the average gradient and of the average square",
    decoupled_weight_decay="whether weights decay by themselves, as in `AdamW`",
)
