"""The table: the rows of every array module without writes, in 64 bits, and convolutions by XLA's own operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax.numpy as jnp
from jax import lax

from turnout_arrays import functional_kernels
from turnout_aten.plugin_api import Row
from turnout_jax.backend import wide

Call = Callable[..., Any]
_NUMBERS = (bool, int, float, complex)


def kernels() -> dict[str, Row]:
    """Operator -> row that takes and returns values."""
    rows = functional_kernels(jnp) | {"convolution.out": Row(convolution)}
    return {
        name: row.through(lambda word, function: narrow(function) if word == "simple" else wide(function))
        for name, row in rows.items()
    }


def narrow(function: Call) -> Call:
    """A function of arrays of one dtype, in 64 bits only where that has so many: for others the setting makes no difference."""
    in_64_bits = wide(function)

    @wraps(function)
    def run(*args: Any) -> Any:
        first = args[1] if args[0].__class__ in _NUMBERS else args[0]
        return (function if first.dtype.itemsize < 8 else in_64_bits)(*args)

    return run


def convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, is_transposed: bool, output_padding: Any,
    groups: int, out: Any,
) -> Any:  # fmt: skip
    """A transposed one is that of the spread image with the kernel turned around."""
    ndim = input.ndim - 2
    stride, padding, dilation, extra = (
        tuple(v) * (ndim if len(v) == 1 else 1) for v in (stride, padding, dilation, output_padding)
    )
    pads = [(p, p) for p in padding]
    options: dict[str, Any] = {"window_strides": stride}
    if is_transposed:
        reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        pads = [(r - p, r - p + e) for r, p, e in zip(reach, padding, extra, strict=True)]
        options = {"window_strides": (1,) * ndim, "lhs_dilation": stride}
        weight = jnp.flip(weight, tuple(range(2, ndim + 2)))
        weight = jnp.swapaxes(weight.reshape(groups, -1, *weight.shape[1:]), 1, 2)
        weight = weight.reshape(-1, *weight.shape[2:])
    made = lax.conv_general_dilated(input, weight, padding=pads, rhs_dilation=dilation, feature_group_count=groups, **options)
    return made if bias is None else made + bias.reshape(-1, *(1,) * ndim)
