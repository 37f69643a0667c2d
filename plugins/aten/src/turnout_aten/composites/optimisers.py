"""Steps of optimisers for lists of parameters: `_fused_adam_` and others, under PyTorch's names.

Nothing here waits for a device: `found_inf`, `grad_scale` and the counts of steps stay tensors. Where `found_inf` is 1, as it is
for a gradient that is not finite, a step writes what was there. Counts of steps are read, and increased by the caller.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any

from turnout.dtypes import float64
from turnout.errors import ArgumentError
from turnout_aten import operators as aten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor

    Number = float | Tensor


def adam(
    self: Sequence[Tensor], grads: Sequence[Tensor], exp_avgs: Sequence[Tensor], exp_avg_sqs: Sequence[Tensor],
    max_exp_avg_sqs: Sequence[Tensor], state_steps: Sequence[Tensor], *, lr: Number, beta1: float, beta2: float,
    weight_decay: float, eps: float, amsgrad: bool, maximize: bool, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None, decoupled: bool = False,
) -> None:  # fmt: skip
    """A step of Adam (Kingma and Ba, 2015), or of AMSGrad (Reddi et al., 2018). Weights decay as part of the gradient."""
    lists = {"grads": grads, "exp_avgs": exp_avgs, "exp_avg_sqs": exp_avg_sqs, "state_steps": state_steps}
    if amsgrad:
        lists["max_exp_avg_sqs"] = max_exp_avg_sqs
    _check("_fused_adamw_" if decoupled else "_fused_adam_", self, lists)
    for i, parameter in enumerate(self):
        gradient = _gradient(grads[i], grad_scale, found_inf, maximize=maximize)
        value = parameter
        if weight_decay and decoupled:
            value = value - value * lr * weight_decay
        elif weight_decay:
            gradient = gradient + value * weight_decay
        mean = exp_avgs[i] + (gradient - exp_avgs[i]) * (1 - beta1)
        square = exp_avg_sqs[i] * beta2 + gradient * gradient * (1 - beta2)
        largest = aten.maximum(max_exp_avg_sqs[i], square) if amsgrad else square
        count = _count(state_steps[i], parameter)
        root = aten.sqrt(_left(beta2, count))
        step = mean * lr / _left(beta1, count) / (aten.sqrt(largest) / root + eps)
        _write(parameter, value - step, found_inf)
        _write(exp_avgs[i], mean, found_inf)
        _write(exp_avg_sqs[i], square, found_inf)
        if amsgrad:
            _write(max_exp_avg_sqs[i], largest, found_inf)


def adamw(self: Sequence[Tensor], *lists: Sequence[Tensor], **options: Any) -> None:
    """A step of Adam with weights that decay by themselves (Loshchilov and Hutter, 2019)."""
    adam(self, *lists, **options, decoupled=True)


def sgd(
    self: Sequence[Tensor], grads: Sequence[Tensor], momentum_buffer_list: Sequence[Tensor], *, weight_decay: float,
    momentum: float, lr: Number, dampening: float, nesterov: bool, maximize: bool, is_first_step: bool,
    grad_scale: Tensor | None = None, found_inf: Tensor | None = None,
) -> None:  # fmt: skip
    """A step of gradient descent with momentum, Nesterov's where `nesterov`. The first step sets the momentum to the gradient."""
    _check("_fused_sgd_", self, {"grads": grads} | ({"momentum_buffer_list": momentum_buffer_list} if momentum else {}))
    for i, parameter in enumerate(self):
        gradient = _gradient(grads[i], grad_scale, found_inf, maximize=maximize)
        if weight_decay:
            gradient = gradient + parameter * weight_decay
        if momentum:
            held = gradient if is_first_step else momentum_buffer_list[i] * momentum + gradient * (1 - dampening)
            gradient = gradient + held * momentum if nesterov else held
            _write(momentum_buffer_list[i], held, found_inf)
        _write(parameter, parameter - gradient * lr, found_inf)


def adagrad(
    self: Sequence[Tensor], grads: Sequence[Tensor], state_sums: Sequence[Tensor], state_steps: Sequence[Tensor], *, lr: Number,
    lr_decay: float, weight_decay: float, eps: float, maximize: bool, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> None:  # fmt: skip
    """A step of Adagrad (Duchi et al., 2011)."""
    _check("_fused_adagrad_", self, {"grads": grads, "state_sums": state_sums, "state_steps": state_steps})
    for i, parameter in enumerate(self):
        gradient = _gradient(grads[i], grad_scale, found_inf, maximize=maximize)
        if weight_decay:
            gradient = gradient + parameter * weight_decay
        total = state_sums[i] + gradient * gradient
        rate = lr / ((_count(state_steps[i], parameter) - 1) * lr_decay + 1)
        _write(parameter, parameter - gradient * rate / (aten.sqrt(total) + eps), found_inf)
        _write(state_sums[i], total, found_inf)


def _check(name: str, self: Sequence[Tensor], lists: dict[str, Sequence[Tensor]]) -> None:
    for what, given in lists.items():
        if len(given) != len(self):
            raise ArgumentError(f"{name}: {what!r} has {len(given)} tensors, expected one for each of the {len(self)} parameters")


def _gradient(gradient: Tensor, grad_scale: Tensor | None, found_inf: Tensor | None, *, maximize: bool) -> Tensor:
    """The gradient to go along. What was multiplied by a scale is divided by it, in place."""
    if grad_scale is not None:
        _write(gradient, gradient / grad_scale, found_inf)
    return -gradient if maximize else gradient


def _count(step: Tensor, parameter: Tensor) -> Tensor:
    """The count of steps, in float64 where the parameter is: what is computed from it has the parameter's precision."""
    return step.to(float64) if parameter.dtype is float64 else step


def _left(beta: float, step: Tensor) -> Tensor:
    """1 - beta**step. The difference of both would have four digits in float32."""
    return -aten.expm1(step * log(beta)) if beta else aten.ones_like(step)


def _write(target: Tensor, value: Tensor, found_inf: Tensor | None) -> None:
    aten.copy_(target, value if found_inf is None else aten.where__self(found_inf == 1, target, value))
