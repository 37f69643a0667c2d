"""Tangents of losses."""

from __future__ import annotations

from turnout_aten.shapes.losses import MEAN, NONE
from turnout_aten.tensor.tensor import Tensor


def summed(each: Tensor, reduction: int) -> Tensor:
    """What a loss makes of its elements; those of a mean are divided already."""
    return each.sum() if reduction else each


def square_tangent(self_t: Tensor, self: Tensor, other: Tensor, reduction: int) -> Tensor:
    """2 (x - y) dx, each or reduced."""
    each = (self - other) * self_t * 2
    return each if reduction == NONE else each.mean() if reduction == MEAN else each.sum()
