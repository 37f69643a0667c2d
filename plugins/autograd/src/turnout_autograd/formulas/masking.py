"""Elementwise choices, used where a derivative is infinite or undefined."""

from __future__ import annotations

from typing import Any

from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor


def where(condition: Tensor, x: Any, y: Any) -> Tensor:
    """x or y elementwise, one of which may be a number."""
    if not isinstance(y, Tensor):
        return aten.where__ScalarOther(condition, x, y)
    return aten.where__self(condition, x, y) if isinstance(x, Tensor) else aten.where__ScalarSelf(condition, x, y)


def masked(x: Tensor, mask: Tensor) -> Tensor:
    """0 where `mask`, which may have a larger shape.

    What is masked for being infinite or NaN is a factor of the gradient, not the product: that would have no derivative with
    respect to the gradient. Its operands are masked too where the factor is differentiated: 0 times an infinite slope is NaN. And
    a mask hides the slope of what it masks, so it covers no place where the factor has one.
    """
    return aten.where__ScalarSelf(mask, 0, x)
