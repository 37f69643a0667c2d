"""Conversions between steps that are computed in another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_aten import operators as aten

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor


def converted(x: Tensor, dtype: DType) -> Tensor:
    """The tensor in a dtype: itself where it is of that one."""
    return x if x.dtype is dtype else aten.to__dtype(x, dtype)
