"""Pointwise operators under another operator's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.generated import operators as aten

if TYPE_CHECKING:
    from turnout.tensors import Tensor


def max_other(self: Tensor, other: Tensor) -> Tensor:
    """max(x, y) is maximum(x, y)."""
    made: Tensor = aten.maximum(self, other)
    return made


def min_other(self: Tensor, other: Tensor) -> Tensor:
    """min(x, y) is minimum(x, y)."""
    made: Tensor = aten.minimum(self, other)
    return made
