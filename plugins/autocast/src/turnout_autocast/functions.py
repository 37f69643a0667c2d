"""`custom_fwd` and `custom_bwd`: an `autograd.Function` whose backward runs in the casts that its forward ran in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from turnout.dtypes import DType
from turnout_aten.tensor.tensor import Tensor
from turnout_autocast.contexts import get_autocast_dtype
from turnout_autocast.kernels import cast_value
from turnout_autocast.mode import autocast, is_autocast_enabled


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: DType | None = None
) -> Callable[..., Any]:
    """Decorates `forward(ctx, ...)` of an `autograd.Function`; with `custom_bwd` on its backward.

    Arguments:
        fwd: the function; without it, the result is a decorator
        device_type: the type of device whose casts are meant
        cast_inputs: None: forward runs in the casts around it. A floating dtype: inside autocast, eligible tensors of the
            arguments (in lists, tuples and dicts too) are cast to it and forward runs with autocast off; outside, nothing
            happens

    Example:
        >>> class Double(turnout.autograd.Function):
        ...     @staticmethod
        ...     @turnout.amp.custom_fwd(device_type="cpu", cast_inputs=turnout.float32)
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @turnout.amp.custom_bwd(device_type="cpu")
        ...     def backward(ctx, grad):
        ...         return grad * 2
        >>> Double.apply(turnout.tensor([1.0]))
        tensor([2.])
    """
    if fwd is None:
        return partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    forward = fwd

    @wraps(forward)
    def in_known_casts(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx.autocast_dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        ctx.used_autocast = enabled and cast_inputs is None
        if cast_inputs is None or not enabled:
            return forward(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            args, kwargs = _cast(args, cast_inputs, device_type), _cast(kwargs, cast_inputs, device_type)
            return forward(ctx, *args, **kwargs)

    return in_known_casts


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorates `backward(ctx, ...)`: it runs with autocast as it was in the forward that `custom_fwd` decorates.

    Arguments:
        bwd: the function; without it, the result is a decorator
        device_type: the type of device whose casts are meant

    Example:
        >>> @turnout.amp.custom_bwd(device_type="cpu")
        ... def backward(ctx, grad):
        ...     return grad * 2
        >>> backward.__name__
        'backward'
    """
    if bwd is None:
        return partial(custom_bwd, device_type=device_type)
    backward = bwd

    @wraps(backward)
    def in_casts_of_forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        dtype = ctx.autocast_dtype if ctx.used_autocast else None
        with autocast(device_type, dtype, enabled=ctx.used_autocast):
            return backward(ctx, *args, **kwargs)

    return in_casts_of_forward


def _cast(value: Any, dtype: DType, device_type: str) -> Any:
    if isinstance(value, Tensor):
        return cast_value(dtype, value, device_type)
    if isinstance(value, dict):
        return {k: _cast(v, dtype, device_type) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, dtype, device_type) for v in value)
    return value
