"""What must hold of numbers, in composites and as exported programs assert it.

On a device without data, what cannot be known is taken to hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.errors import ArgumentError, DataDependentSizeError, NoDataError
from turnout_aten import operators as aten
from turnout_aten.errors.arguments import not_one_element
from turnout_aten.tensor.checks import are_postponed, note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.devices import Device
    from turnout.dtypes import DType
    from turnout_aten.tensor.tensor import Tensor


def is_checked(tensor: Tensor) -> bool:
    """Whether there are numbers that can be looked at, now or when a program runs."""
    return tensor.shape.numel() > 0 and (tensor.device.backend.has_values or are_postponed())


def holds(condition: Tensor) -> bool:
    """Whether a condition is true for all elements. Where checks are postponed, it is noted, and taken to hold."""
    if are_postponed():
        note(aten.logical_not(aten.all(condition)))
        return True
    return bool(aten.all(condition))


# ---- in exported programs

_NOT_TRUE = "the value that an exported program asserts is zero or false"
_MOST = (1 << 63) - 1


def assert_async(self: Tensor, assert_msg: str = _NOT_TRUE) -> None:
    """Raise ArgumentError with this text where the only element is zero or false."""
    if self.shape.numel() != 1:
        raise ArgumentError(not_one_element("_assert_async", self.shape))
    try:
        true = holds(self)
    except (NoDataError, DataDependentSizeError):
        return
    if not true:
        raise ArgumentError(f"_assert_async: {assert_msg}")


def functional_assert_async(self: Tensor, assert_msg: str, dep_token: Tensor) -> Tensor:
    """As `assert_async`; returns a copy of the token, which says in what order such calls run."""
    aten._assert_async__msg(self, assert_msg)
    return aten.clone(dep_token)


def assert_scalar(self: float, assert_msg: str) -> None:
    """Raise ArgumentError with this text where the number is zero or false."""
    if not self:
        raise ArgumentError(f"_assert_scalar: {assert_msg}")


def functional_assert_scalar(self: float, assert_msg: str, dep_token: Tensor) -> Tensor:
    """As `assert_scalar`; returns a copy of the token."""
    assert_scalar(self, assert_msg)
    return aten.clone(dep_token)


def assert_tensor_metadata(
    a: Tensor, size: Sequence[int] | None = None, stride: Sequence[int] | None = None, dtype: DType | None = None, *,
    device: Device | None = None, layout: str | None = None,
) -> None:  # fmt: skip
    """Raise ArgumentError for a tensor of another shape, other strides, or another dtype, device or layout than those given."""
    facts: tuple[tuple[str, object, object], ...] = (
        ("shape", None if size is None else list(size), list(a.shape)),
        ("strides", None if stride is None else list(stride), list(a.stride())),
        ("dtype", None if dtype is None else dtype.name, a.dtype.name),
        ("device type", None if device is None else device.type, a.device.type),
        ("layout", layout, "strided"),
    )
    for what, expected, found in facts:
        if expected is not None and expected != found:
            raise ArgumentError(f"_assert_tensor_metadata: expected a tensor of {what} {expected}, got {found}")


def sym_constrain_range(size: float, *, min: int | None = None, max: int | None = None) -> None:
    """Raise ArgumentError for a number outside of the range."""
    _in_range("sym_constrain_range", size, -_MOST - 1 if min is None else min, _MOST if max is None else max)


def sym_constrain_range_for_size(size: float, *, min: int | None = None, max: int | None = None) -> None:
    """As `sym_constrain_range`, for a number that is a size: it is at least 0."""
    _in_range("sym_constrain_range_for_size", size, 0 if min is None else min, _MOST if max is None else max)


def functional_sym_constrain_range(size: float, min: int | None, max: int | None, dep_token: Tensor) -> Tensor:
    """As `sym_constrain_range`; returns a copy of the token."""
    sym_constrain_range(size, min=min, max=max)
    return aten.clone(dep_token)


def functional_sym_constrain_range_for_size(size: float, min: int | None, max: int | None, dep_token: Tensor) -> Tensor:
    """As `sym_constrain_range_for_size`; returns a copy of the token."""
    sym_constrain_range_for_size(size, min=min, max=max)
    return aten.clone(dep_token)


def _in_range(op: str, size: float, least: int, most: int) -> None:
    if most < least:
        raise ArgumentError(f"{op}: expected min to be at most max, got min={least} and max={most}")
    if not least <= size <= most:
        raise ArgumentError(f"{op}: expected a number from {least} to {most}, got {size}")
