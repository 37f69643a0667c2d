"""softmax and log_softmax with an optional dtype for the computation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_aten import operators as aten
from turnout_aten.composites.endings import ends_in
from turnout_aten.composites.reshaping import write_out

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor


@ends_in("aten::_softmax", "self", "dim", False, dtype=None)
def softmax(self: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """exp(self) / sum(exp(self)) along a dim, after conversion to `dtype`."""
    return aten._softmax(self if dtype is None else aten.to__dtype(self, dtype), dim, False)


@ends_in("aten::_log_softmax", "self", "dim", False, dtype=None)
def log_softmax(self: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """The logarithm of softmax."""
    return aten._log_softmax(self if dtype is None else aten.to__dtype(self, dtype), dim, False)


def softmax_out(self: Tensor, dim: int, dtype: DType | None = None, *, out: Tensor) -> Tensor:
    """softmax into `out`."""
    return write_out("aten::softmax.int_out", out, softmax(self, dim, dtype))


def log_softmax_out(self: Tensor, dim: int, dtype: DType | None = None, *, out: Tensor) -> Tensor:
    """log_softmax into `out`."""
    return write_out("aten::log_softmax.int_out", out, log_softmax(self, dim, dtype))


def special_log_softmax(self: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """log_softmax with the dtype as a keyword."""
    return log_softmax(self, dim, dtype)


def safe_softmax(self: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """softmax that gives 0 where all elements are -inf. These are replaced by 0 first, so that the gradient has no NaN."""
    hidden = aten.all__dim(aten.eq__Scalar(self, float("-inf")), dim, True)
    return aten.masked_fill__Scalar(softmax(aten.masked_fill__Scalar(self, hidden, 0), dim, dtype), hidden, 0)
