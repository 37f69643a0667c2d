"""Gradients of scattering, with a reduction or without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.formulas.complex import conj
from turnout_autograd.formulas.masking import where
from turnout_autograd.formulas.recorded_calls import is_recorded
from turnout_autograd.formulas.reductions import may_hold_zero

if TYPE_CHECKING:
    from turnout_autograd.formulas.broadcasting import Ints


def gathered(grad: Tensor, dim: int, positions: Tensor, shape: Ints) -> Tensor:
    """scatter's source: what was taken of it, zeros for the rest."""
    return padded_to(grad.gather(dim, positions), shape)


def scatter_reduce_grad(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """(of self, of src). Without `include_self` nothing comes from elements of self that something was written over."""
    if not self.shape:
        self, result, grad = self.reshape((1,)), result.reshape((1,)), grad.reshape((1,))
        of_self, of_src = scatter_reduce_grad(
            grad, self, 0, index.reshape((-1,)), src.reshape((-1,)), reduce, include_self, result
        )
        return of_self.reshape(()), of_src.reshape(src.shape)
    used = part_of(src, index.shape)
    if reduce == "sum":
        of_self, of_used = grad, grad.gather(dim, index)
    elif reduce == "mean":
        counts = grad.new_full(self.shape, int(include_self)).scatter_add(dim, index, grad.new_ones(index.shape))
        share = grad / counts.masked_fill(counts == 0, 1)
        of_self, of_used = share, share.gather(dim, index)
    elif reduce == "prod":
        of_self, of_used = _scattered_prod_grad(grad, conj(self), dim, index, conj(used), include_self, conj(result))
    else:
        of_self, of_used = _scattered_extremum_grad(grad, self, dim, index, used, include_self, result)
    if not include_self:
        of_self = of_self.scatter(dim, index, 0)
    return of_self, padded_to(of_used, src.shape)


def _scattered_prod_grad(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """The product of all others, by division. If exactly one factor is 0, it is the product of all but that one.

    If several are, it is 0, but its derivative is not: where this is recorded, products of zeros are taken from an n x n table.
    """
    ones = self.masked_fill(self == 0, 1)
    of_self = grad * ones.scatter_reduce(dim, index, src, "prod", include_self=include_self) / ones
    if is_recorded(grad, self, src) and may_hold_zero(src):
        others = _products_of_others(dim, index, src)
        return of_self, grad.gather(dim, index) * (others * self.gather(dim, index) if include_self else others)
    zero = src == 0
    zeros = grad.new_zeros(self.shape).scatter_add(dim, index, zero.to(grad.dtype))
    only = zero.logical_and(zeros.gather(dim, index) == 1)
    without = self.scatter_reduce(dim, index, src.masked_fill(only, 1), "prod", include_self=include_self)
    of_src = where(only, (grad * without).gather(dim, index), (grad * result).gather(dim, index) / src.masked_fill(zero, 1))
    return of_self, of_src


def _products_of_others(dim: int, index: Tensor, src: Tensor) -> Tensor:
    """For each element of the source the product of all others with its index."""
    at, last = index.transpose(dim, -1), src.transpose(dim, -1)
    another = aten.eye(last.shape[-1], dtype=src.dtype, device=src.device) != 1
    others = (at.unsqueeze(-1) == at.unsqueeze(-2)).logical_and(another)
    return where(others, last.unsqueeze(-2).expand(others.shape), 1).prod(-1).transpose(dim, -1)


def _scattered_extremum_grad(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """All that are the extremum share the gradient equally."""
    self_is = (self == result).to(grad.dtype)
    src_is = (src == result.gather(dim, index)).to(grad.dtype)
    first = self_is if include_self else grad.new_zeros(self.shape)
    counts = first.scatter_add(dim, index, src_is)
    share = grad / counts.masked_fill(counts == 0, 1)
    of_self = self_is * share if include_self else grad
    return of_self, src_is * share.gather(dim, index)


def part_of(src: Tensor, shape: Ints) -> Tensor:
    """The first elements along each dim, as many as `shape` says: the part of its source that scatter reads."""
    for d, (have, want) in enumerate(zip(src.shape, shape, strict=True)):
        if have != want:
            src = aten.slice__Tensor(src, d, 0, want, 1)
    return src


def padded_to(found: Tensor, shape: Ints) -> Tensor:
    """Zeros behind along each dim, up to `shape`."""
    for d, (have, want) in enumerate(zip(found.shape, shape, strict=True)):
        if have != want:
            found = aten.slice_backward(found, (*found.shape[:d], want, *found.shape[d + 1 :]), d, 0, have, 1)
    return found
