"""Reductions composed of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import COMPLEX, FLOAT, DType, get_default_dtype
from turnout.errors import DTypeError
from turnout_aten import operators as aten
from turnout_aten.errors import arguments as texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_aten.tensor.tensor import Tensor


def var(self: Tensor, unbiased: bool = True) -> Tensor:
    """The variance of all elements; `unbiased` divides by n - 1."""
    return aten.var__correction(self, None, correction=int(unbiased))


def var_dim(self: Tensor, dim: Sequence[int] | None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """var over some dims."""
    return aten.var__correction(self, dim, correction=int(unbiased), keepdim=keepdim)


def std(self: Tensor, unbiased: bool = True) -> Tensor:
    """The standard deviation of all elements."""
    return aten.std__correction(self, None, correction=int(unbiased))


def std_dim(self: Tensor, dim: Sequence[int] | None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    """std over some dims."""
    return aten.std__correction(self, dim, correction=int(unbiased), keepdim=keepdim)


def logsumexp(self: Tensor, dim: Sequence[int], keepdim: bool = False) -> Tensor:
    """log(sum(exp(self))). The largest value is subtracted first, so that exp does not overflow."""
    if self.dtype.category < FLOAT:
        self = aten._to_copy(self, dtype=get_default_dtype())
    if 0 in self.shape:
        return aten.log(aten.sum__dim_IntList(aten.exp(self), dim, keepdim))
    largest = aten.amax(aten.real(self) if self.dtype.category == COMPLEX else self, dim, True)
    # Subtracting an infinite maximum would give nan.
    infinite = aten.eq__Scalar(aten.abs(largest), float("inf"))
    largest = aten.where__ScalarSelf(infinite, 0.0, largest)
    total = aten.sum__dim_IntList(aten.exp(aten.sub__Tensor(self, largest)), dim, keepdim)
    return aten.add__Tensor(aten.log(total), largest if keepdim else aten.reshape(largest, total.shape))


def special_logsumexp(self: Tensor, dim: Sequence[int], keepdim: bool = False) -> Tensor:
    """An alias of logsumexp."""
    return aten.logsumexp(self, dim, keepdim)


def var_out(self: Tensor, dim: Sequence[int] | None, unbiased: bool = True, keepdim: bool = False, *, out: Tensor) -> Tensor:
    """var.dim into `out`."""
    return aten.var__correction_out(self, dim, correction=int(unbiased), keepdim=keepdim, out=out)


def std_out(self: Tensor, dim: Sequence[int] | None, unbiased: bool = True, keepdim: bool = False, *, out: Tensor) -> Tensor:
    """std.dim into `out`."""
    return aten.std__correction_out(self, dim, correction=int(unbiased), keepdim=keepdim, out=out)


def var_mean_correction(
    self: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """(variance, mean) over some dims."""
    made = aten.var__correction(self, dim, correction=correction, keepdim=keepdim)
    return made, aten.mean__dim(self, dim, keepdim)


def var_mean(self: Tensor, unbiased: bool = True) -> tuple[Tensor, Tensor]:
    """var_mean of all elements."""
    return var_mean_correction(self, None, correction=int(unbiased))


def var_mean_dim(self: Tensor, dim: Sequence[int] | None, unbiased: bool = True, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """var_mean; `unbiased` divides by n - 1."""
    return var_mean_correction(self, dim, correction=int(unbiased), keepdim=keepdim)


def std_mean_correction(
    self: Tensor, dim: Sequence[int] | None = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    """(standard deviation, mean) over some dims."""
    made = aten.std__correction(self, dim, correction=correction, keepdim=keepdim)
    return made, aten.mean__dim(self, dim, keepdim)


def std_mean(self: Tensor, unbiased: bool = True) -> tuple[Tensor, Tensor]:
    """std_mean of all elements."""
    return std_mean_correction(self, None, correction=int(unbiased))


def std_mean_dim(self: Tensor, dim: Sequence[int] | None, unbiased: bool = True, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """std_mean; `unbiased` divides by n - 1."""
    return std_mean_correction(self, dim, correction=int(unbiased), keepdim=keepdim)


def nansum(self: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum with nan counted as 0. Raises DTypeError for complex tensors."""
    if self.dtype.category == COMPLEX:
        raise DTypeError(texts.undefined_for("nansum", self.dtype))
    if self.dtype.category == FLOAT:
        self = aten.masked_fill__Scalar(self, aten.isnan(self), 0)
    return aten.sum__dim_IntList(self, dim, keepdim, dtype=dtype)


def nanmean(self: Tensor, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean of the elements that are not nan; nan if all are."""
    if self.dtype.category != FLOAT:
        raise DTypeError(texts.not_float("nanmean", self.dtype))
    numbers = aten.sum__dim_IntList(aten.logical_not(aten.isnan(self)), dim, keepdim)
    return aten.div__Tensor(nansum(self, dim, keepdim, dtype=dtype), numbers)


def count_nonzero_dims(self: Tensor, dim: Sequence[int]) -> Tensor:
    """The number of nonzero elements over some dims."""
    return aten.sum__dim_IntList(aten.ne__Scalar(self, 0), dim)


def count_nonzero(self: Tensor, dim: int | None = None) -> Tensor:
    """count_nonzero over one dim or all."""
    return count_nonzero_dims(self, () if dim is None else (dim,))


def max_out(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    """maximum into `out`."""
    return aten.maximum__out(self, other, out=out)


def min_out(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    """minimum into `out`."""
    return aten.minimum__out(self, other, out=out)
