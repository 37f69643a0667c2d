"""Tangents and the results that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout.dtypes import FLOAT
from turnout.operators.values import tensors_in
from turnout_aten.tensor.tensor import Tensor


def outputs_of(result: Any) -> list[Tensor]:
    return list(tensors_in(result if isinstance(result, (tuple, list)) else (result,)))


def for_each(found: Any, outputs: Sequence[Tensor]) -> Sequence[Any]:
    """A tangent for each output, from those of the differentiable ones."""
    if found is None:
        return [None] * len(outputs)
    if isinstance(found, Tensor):
        found = (found,)
    if len(found) == len(outputs):
        return found  # type: ignore[no-any-return]
    rest = iter(found)
    return [next(rest, None) if t.dtype.category >= FLOAT else None for t in outputs]
