"""Reductions by way of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.dtypes import FLOAT, get_default_dtype
from turnout.generated import operators as aten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.tensors import Tensor


def var(self: Tensor, unbiased: bool = True) -> Tensor:
    """The variance of all elements; unbiased divides by n - 1."""
    made: Tensor = aten.var__correction(self, None, correction=int(unbiased))
    return made


def var_dim(self: Tensor, dim: Sequence[int] | None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The same over some dims."""
    made: Tensor = aten.var__correction(self, dim, correction=int(unbiased), keepdim=keepdim)
    return made


def std(self: Tensor, unbiased: bool = True) -> Tensor:
    """The standard deviation of all elements."""
    made: Tensor = aten.std__correction(self, None, correction=int(unbiased))
    return made


def std_dim(self: Tensor, dim: Sequence[int] | None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """The same over some dims."""
    made: Tensor = aten.std__correction(self, dim, correction=int(unbiased), keepdim=keepdim)
    return made


def logsumexp(self: Tensor, dim: Sequence[int], keepdim: bool = False) -> Tensor:
    """log(sum(exp(self))) with the largest value taken out first, so that exp does not overflow."""
    if self.dtype.category < FLOAT:
        self = aten._to_copy(self, dtype=get_default_dtype())
    made: Tensor
    if 0 in self.shape:
        made = aten.log(aten.sum__dim_IntList(aten.exp(self), dim, keepdim))
        return made
    largest = aten.amax(self, dim, True)
    # Where the largest is infinite, taking it out would give nan.
    infinite = aten.eq__Scalar(aten.abs(largest), float("inf"))
    largest = aten.where__ScalarSelf(infinite, 0.0, largest)
    total = aten.sum__dim_IntList(aten.exp(aten.sub__Tensor(self, largest)), dim, keepdim)
    made = aten.add__Tensor(aten.log(total), largest if keepdim else aten.reshape(largest, total.shape))
    return made
