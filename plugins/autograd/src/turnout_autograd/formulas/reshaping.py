"""Gradients of operators that repeat a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints


def repeat_grad(grad: Tensor, repeats: Ints, shape: Ints) -> Tensor:
    """The sum over the copies."""
    leading = len(repeats) - len(shape)
    if 0 in repeats:
        return grad.new_zeros(shape)
    split = [*repeats[:leading]]
    for times, length in zip(repeats[leading:], shape, strict=True):
        split += [times, length]
    sums = (*range(leading), *range(leading, len(split), 2))
    return grad.reshape(tuple(split)).sum(sums) if sums else grad
