"""Norms of gradients, and limits for them.

Tensors of one device are handled by one call of an operator on lists, so a device has few kernels to start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import turnout
from turnout import Tensor, ops
from turnout.errors import ArgumentError


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    each = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [parameter.grad for parameter in each if parameter.grad is not None]


def _by_device(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """The tensors in groups of one device and dtype."""
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault((str(tensor.device), tensor.dtype), []).append(tensor)
    return list(groups.values())


def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all elements of the tensors.

    Arguments:
        tensors: the tensors; none give 0
        norm_type: the order of the norm, such as 2 or `inf`
        error_if_nonfinite: whether a norm that is infinite or not a number is an error
        foreach: False uses no operators on lists

    Raises:
        ArgumentError: the norm is not finite, and has to be.

    Example:
        >>> turnout.nn.utils.get_total_norm([turnout.tensor([3.0]), turnout.tensor([4.0])])
        tensor(5.)
    """
    each = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not each:
        return turnout.tensor(0.0)
    order = float(norm_type)
    norms: list[Tensor] = []
    for group in _by_device(each):
        if foreach is False:
            norms.extend(turnout.linalg.vector_norm(one, order) for one in group)
        else:
            norms.extend(ops.aten._foreach_norm(group, order))
    first = norms[0].device
    total = turnout.linalg.vector_norm(turnout.stack([norm.to(first) for norm in norms]), order)
    if error_if_nonfinite and not total.isfinite().item():
        raise ArgumentError(
            f"the norm of order {order} of the gradients is {total.item()}, so they cannot be scaled\n"
            "  to fix  pass error_if_nonfinite=False to scale them all the same"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients by max_norm / total_norm if that is less than 1, in place.

    Arguments:
        parameters: the parameters
        max_norm: the largest norm
        total_norm: the norm of all gradients, from `get_total_norm`
        foreach: False uses no operators on lists

    Example:
        >>> w = turnout.nn.Parameter(turnout.zeros(2))
        >>> w.grad = turnout.tensor([3.0, 4.0])
        >>> turnout.nn.utils.clip_grads_with_norm_([w], 1.0, turnout.tensor(5.0))
        >>> w.grad
        tensor([0.6000, 0.8000])
    """
    # The factor stays on its device: reading it would wait for all gradients.
    factor = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
    with turnout.no_grad():
        for group in _by_device(_gradients(parameters)):
            here = factor.to(group[0].device)
            if foreach is False:
                for gradient in group:
                    gradient.mul_(here)
            else:
                ops.aten._foreach_mul_(group, here)


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:  # fmt: skip
    """Scale the gradients in place so that the norm of all their elements is at most `max_norm`. Returns the norm before.

    Arguments:
        parameters: the parameters
        max_norm: the largest norm
        norm_type: the order of the norm, such as 2 or `inf`
        error_if_nonfinite: whether a norm that is infinite or not a number is an error
        foreach: False uses no operators on lists

    Raises:
        ArgumentError: the norm is not finite, and has to be; the gradients are as they were.

    Example:
        >>> w = turnout.nn.Parameter(turnout.zeros(2))
        >>> w.grad = turnout.tensor([3.0, 4.0])
        >>> turnout.nn.utils.clip_grad_norm_([w], 10.0)
        tensor(5.)
    """
    each = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    total = get_total_norm(_gradients(each), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(each, max_norm, total, foreach)
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Limit each element of the gradients to [-clip_value, clip_value], in place.

    Arguments:
        parameters: the parameters
        clip_value: the largest absolute value
        foreach: False uses no operators on lists

    Example:
        >>> w = turnout.nn.Parameter(turnout.zeros(2))
        >>> w.grad = turnout.tensor([3.0, -4.0])
        >>> turnout.nn.utils.clip_grad_value_([w], 1.0)
        >>> w.grad
        tensor([ 1., -1.])
    """
    limit = float(clip_value)
    with turnout.no_grad():
        for group in _by_device(_gradients(parameters)):
            if foreach is False:
                for gradient in group:
                    gradient.clamp_(-limit, limit)
            else:
                ops.aten._foreach_clamp_min_(group, -limit)
                ops.aten._foreach_clamp_max_(group, limit)
