"""Everything about `swish` that is no schema. A rule calls operators, so it composes with every other key; a kernel does not."""

from __future__ import annotations

from typing import Any

import numpy as np

import turnout
from turnout.errors import DTypeError
from turnout_aten.plugin_api import Tensor


def kernel(x: Any, beta: float) -> Any:
    """On the CPU's arrays: x / (1 + exp(-beta * x)), without an overflow where beta * x is far below 0."""
    if x.dtype.kind in "biuc":
        raise refused(x.dtype.name)
    e = np.exp(-np.abs(beta * x))
    return (x * np.where(beta * x >= 0, 1, e) / (1 + e)).astype(x.dtype, copy=False)


def refused(dtype: str) -> DTypeError:
    """The error for a tensor that is not a floating-point one."""
    return DTypeError(f"swish: expected a floating-point tensor, got {dtype}")


def fake(x: Tensor, beta: float) -> Tensor:
    """The shape and the dtype of the result, without data."""
    if not x.is_floating_point():
        raise refused(x.dtype.name)
    made: Tensor = turnout.empty_like(x)
    return made


def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep what `backward` needs."""
    x, beta = inputs
    ctx.save_for_backward(x)
    ctx.beta = beta


def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    """d/dx x s(bx) = s(bx) (1 + bx (1 - s(bx))) with s the sigmoid. There is no gradient of `beta`, a number."""
    (x,) = ctx.saved_tensors
    scaled = x * ctx.beta
    sigmoid = scaled.sigmoid()
    return grad * sigmoid * (1 + scaled * (1 - sigmoid)), None


def batch(info: Any, in_dims: tuple[int | None, ...], x: Tensor, beta: float) -> tuple[Tensor, int | None]:
    """Element-wise, so all examples are one call, and the batch stays where it is."""
    return turnout.ops.myops.swish(x, beta), in_dims[0]
