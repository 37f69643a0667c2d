"""Gradients of views: zeros of the input's shape, with the output's gradient where the view was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.errors import ShapeError
from turnout_aten import operators as aten
from turnout_aten.shapes.extents import wrap_dim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor


def select_backward(grad_output: Tensor, input_sizes: Sequence[int], dim: int, index: int) -> Tensor:
    """Of select."""
    made: Tensor = aten.new_zeros(grad_output, input_sizes)
    aten.copy_(aten.select__int(made, dim, index), grad_output)
    return made


def slice_backward(grad_output: Tensor, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int) -> Tensor:
    """Of slice."""
    made: Tensor = aten.new_zeros(grad_output, input_sizes)
    aten.copy_(aten.slice__Tensor(made, dim, start, end, step), grad_output)
    return made


def diagonal_backward(grad_output: Tensor, input_sizes: Sequence[int], offset: int, dim1: int, dim2: int) -> Tensor:
    """Of diagonal."""
    made: Tensor = aten.new_zeros(grad_output, input_sizes)
    aten.copy_(aten.diagonal(made, offset, dim1, dim2), grad_output)
    return made


def unfold_backward(grad_in: Tensor, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """Of unfold, whose windows overlap where the step is shorter than they are: one addition per place in the window."""
    made: Tensor = aten.new_zeros(grad_in, input_sizes)
    if not input_sizes:
        aten.copy_(made, aten.squeeze(grad_in))
        return made
    dim = wrap_dim(dim, len(input_sizes))
    if len(grad_in.shape) != len(input_sizes) + 1:
        found = f"{grad_in.ndim} dim{'s' * (grad_in.ndim != 1)}, expected {len(input_sizes) + 1}"
        raise ShapeError(f"unfold_backward: grad_in has {found}: those of the input, and the window")
    windows = grad_in.shape[dim]
    for place in range(size):
        end = place + (windows - 1) * step + 1
        part = aten.slice__Tensor(made, dim, place, end, step)
        aten.add___Tensor(part, aten.select__int(grad_in, -1, place))
    return made
