"""What other packages ask of Autocast: casts for kernels of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from turnout.dtypes import DType
from turnout.errors import CallError
from turnout.keys import KEYS
from turnout.library.rules import require_floating
from turnout.operators import Operator, tensors_in
from turnout.state import StateChange
from turnout_aten.tensor.tensor import Tensor
from turnout_autocast import errors
from turnout_autocast.casts import promoted
from turnout_autocast.contexts import casting_as, casts_here, entered
from turnout_autocast.kernels import cast_value

Call = Callable[..., Any]


def cached_cast(dtype: DType, value: Any, device_type: str | None = None) -> Any:
    """A tensor cast to `dtype` if autocast may cast it, from the cache if it is there; otherwise the tensor itself.

    Eligible are floating tensors other than float64. For the kernels of operators at Autocast<B>, which call it with their
    own key excluded. Raises DTypeError when `dtype` is not floating, CallError for other values.

    Arguments:
        dtype: the dtype, floating-point
        value: a tensor, None, or a list or tuple of them (which gives a list)
        device_type: only tensors on such devices are cast; by default each tensor's own device type

    Example:
        >>> turnout.amp.cached_cast(turnout.bfloat16, turnout.tensor([1.0])).dtype
        turnout.bfloat16
    """
    require_floating("cached_cast", dtype)
    if isinstance(value, (list, tuple)):
        return [cached_cast(dtype, each, device_type) for each in value]
    if value is None:
        return None
    if not isinstance(value, Tensor):
        raise CallError(errors.not_castable(value))
    return cast_value(dtype, value, value.device.type if device_type is None else device_type)


def custom_rule(op: Operator, key: str, dtype: DType, device_type: str) -> Call:
    """The kernel at `key` of a rule that `turnout.library.register_autocast` registered.

    It calls the operator with eligible tensors in `dtype`, and without autocast.
    """
    off = StateChange(excludes=KEYS.switch_bit(key))

    def call_in_other_dtype(ks: int, *args: Any) -> Any:
        cast = tuple([cast_value(dtype, value, device_type) for value in args])
        return off.run(op.call_boxed, cast)

    return call_in_other_dtype


def promote_type(dtype: DType, *values: Tensor | Sequence[Tensor] | None, device_type: str | None = None) -> DType:
    """The widest dtype among `dtype`, a lower precision, and the eligible tensors: that dtype, or float32.

    float64 and other tensors that autocast does not cast are not counted. Raises DTypeError when `dtype` is not floating.

    Arguments:
        dtype: the lower precision
        values: tensors, or lists of them
        device_type: only tensors on such devices count; by default each tensor's own device type

    Example:
        >>> turnout.amp.promote_type(turnout.bfloat16, turnout.tensor([1.0]))
        turnout.float32
    """
    require_floating("promote_type", dtype)
    for tensor in [t for t in tensors_in(values) if isinstance(t, Tensor)]:
        dtype = promoted(dtype, [tensor], tensor.device.type if device_type is None else device_type)
    return dtype


__all__ = ["cached_cast", "casting_as", "casts_here", "custom_rule", "entered", "promote_type"]
