"""Rows of matrix products and of gradients of views: one call of NumPy in place of a composite's several operators."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Row


def linalg_matmul(self: Any, other: Any) -> Any:
    """Products of floats. Batches are broadcast in place; where only self has them, its rows make one large product.

    `matmul` itself stays composed: for two matrices, the usual call, `mm` is faster than a kernel that may leave the call.
    """
    if self.dtype.char not in "fd" or self.dtype is not other.dtype or not self.ndim or not other.ndim:
        return NotImplemented
    if self.shape[-1] != other.shape[-2 if other.ndim > 1 else 0]:
        return NotImplemented
    if self.ndim > 2 and other.ndim == 2 and self.flags.c_contiguous:
        flat = np.matmul(self.reshape(prod(self.shape[:-1]), self.shape[-1]), other)
        return flat.reshape(*self.shape[:-1], other.shape[1])
    for length, other_length in zip(self.shape[-3::-1], other.shape[-3::-1], strict=False):
        if length != other_length and 1 not in (length, other_length):
            return NotImplemented
    made = np.matmul(self, other)
    return made if made.flags.c_contiguous else np.ascontiguousarray(made)  # NumPy lays batches out as those of self are


def _place(ndim: int, dim: int, index: Any) -> tuple[Any, ...] | None:
    """The index of one dim; None where the dim is out of range."""
    return (*(slice(None),) * (dim % ndim), index) if -ndim <= dim < ndim else None


def slice_backward(grad_output: Any, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int) -> Any:
    place = _place(len(input_sizes), dim, slice(start, end, step))
    return NotImplemented if place is None or step < 1 else _scattered(grad_output, input_sizes, place)


def select_backward(grad_output: Any, input_sizes: Sequence[int], dim: int, index: int) -> Any:
    place = _place(len(input_sizes), dim, index)
    if place is None or not -input_sizes[dim] <= index < input_sizes[dim]:
        return NotImplemented
    return _scattered(grad_output, input_sizes, place)


def _scattered(grad: Any, shape: Sequence[int], place: tuple[Any, ...]) -> Any:
    made = np.zeros(shape, grad.dtype)
    into = made[place]
    if into.shape != grad.shape:
        return NotImplemented
    made[place] = grad
    return made


# fmt: off
KERNELS_BY_OPERATOR: dict[str, Any] = {
    "linalg_matmul": Row(linalg_matmul, steps=((np.matmul, "self", "other"),)),
    "slice_backward": Row(slice_backward, quiet=True),
    "select_backward": Row(select_backward, quiet=True),
}
# fmt: on
