"""Tangents and the results that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout.operators.values import tensors_in
from turnout_aten.tensor.tensor import Tensor


def outputs_of(result: Any) -> list[Tensor]:
    return list(tensors_in(result if isinstance(result, (tuple, list)) else (result,)))


def for_each(compute: Any, found: Any, outputs: Sequence[Tensor]) -> Sequence[Any]:
    """A tangent for each output, from those that a rule gave of the differentiable ones."""
    if found is None:
        return [None] * len(outputs)
    if isinstance(found, Tensor):
        found = (found,)
    if len(found) == len(outputs):
        return found
    made: list[Any] = [None] * len(outputs)
    for place, tangent in zip(compute.outputs, found, strict=True):
        made[place] = tangent
    return made
