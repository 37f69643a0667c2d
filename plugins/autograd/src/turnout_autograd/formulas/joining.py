"""Gradients of operators that join tensors."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from turnout_aten import operators as aten
from turnout_aten.shapes.extents import LEFT_OUT
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints


def cat_grad(grad: Tensor, shapes: list[Ints], dim: int) -> list[Tensor]:
    """The part of the gradient that belongs to each tensor. One that is left out has no elements, and nor has its gradient."""
    skipped = [s == LEFT_OUT for s in shapes]
    lengths = [0 if skip else s[dim] for s, skip in zip(shapes, skipped, strict=True)]
    starts = accumulate(lengths, initial=0)
    return [
        grad.new_zeros((0,)) if skip else aten.slice__Tensor(grad, dim, start, start + length, 1)
        for skip, length, start in zip(skipped, lengths, starts, strict=False)
    ]
