"""The finishing copy of a composite kernel: its result lies as a rule of `shapes.layouts` says, however it was computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_aten import operators as aten

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor

    Ints = tuple[int, ...]


def lying(made: Tensor, strides: Ints | None = None) -> Tensor:
    """The tensor in dense strides (None: row-major): itself where it lies so, else a copy."""
    if strides is None:
        return aten.contiguous(made)
    given = made.stride()
    order = range(made.ndim)
    if all(given[d] == strides[d] for d in order if made.shape[d] != 1):
        return made
    slowest_first = sorted(order, key=lambda d: -strides[d])
    found = aten.contiguous(aten.permute(made, slowest_first))
    return aten.permute(found, sorted(order, key=slowest_first.__getitem__))
