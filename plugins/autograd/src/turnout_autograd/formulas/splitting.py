"""Gradients of operators that split a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints


def _present(grads: Any) -> Tensor:
    return next(g for g in grads if g is not None)


def unbind_grad(grads: Any, shape: Ints, dim: int) -> Tensor:
    """The gradients stacked, zeros for outputs that were not used."""
    one = _present(grads)
    return aten.stack([one.new_zeros(one.shape) if g is None else g for g in grads], dim)


def split_sizes_of(shape: Ints, split_size: int, dim: int) -> Ints:
    """The lengths that `split` gives."""
    total = shape[dim]
    if not split_size:
        return (0,)
    return tuple(min(split_size, total - i) for i in range(0, max(total, 1), split_size))


def split_grad(grads: Any, shape: Ints, sizes: Ints, dim: int) -> Tensor:
    """The gradients joined, zeros for outputs that were not used."""
    dim %= len(shape)
    one = _present(grads)

    def part(i: int) -> Tensor:
        return one.new_zeros((*shape[:dim], sizes[i], *shape[dim + 1 :])) if grads[i] is None else grads[i]

    return aten.cat([part(i) for i in range(len(sizes))], dim)
