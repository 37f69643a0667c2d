"""The table: the rows of every array module without writes, in 64 bits, and convolutions by XLA's own operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, wraps
from itertools import product
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from turnout_arrays import functional_kernels
from turnout_arrays.convolutions import spread
from turnout_aten.kernels.rows import SIMPLE, Row
from turnout_aten.shapes.convolutions import positions
from turnout_jax.backend import wide

Call = Callable[..., Any]
MANY = 128  # weights of a channel, beyond which a convolution is left to XLA
FEW = 4  # channels of an image with which XLA's convolutions are slow
NUMBERS = 1 << 21  # of an unfolded image, beyond which it takes more time to write it


def kernels() -> dict[str, Row]:
    """Operator -> row that takes and returns values."""
    return _in_64_bits(functional_kernels(jnp) | {"convolution.out": Row(convolution)})


def over_composites() -> dict[str, Row]:
    """Operator -> row that takes and returns values, or leaves the call to the composite kernel."""
    return _in_64_bits({"matmul": Row(matmul)})


def _in_64_bits(rows: Mapping[str, Row]) -> dict[str, Row]:
    return {
        name: row.through(lambda word, function: narrow(function) if word == SIMPLE else wide(function))
        for name, row in rows.items()
    }


def narrow(function: Call) -> Call:
    """A function of arrays of one dtype, in 64 bits only where that has so many: for others the setting makes no difference."""
    in_64_bits = wide(function)

    @wraps(function)
    def run(*args: Any) -> Any:
        try:
            dtype = args[0].dtype
        except AttributeError:  # a number
            dtype = args[1].dtype
        return (function if dtype.itemsize < 8 else in_64_bits)(*args)

    return run


def matmul(self: Any, other: Any) -> Any:
    """Products of batches that keep their dims: XLA computes faster what comes before and after them, as attention does."""
    if self.ndim < 4 or self.ndim != other.ndim or self.shape[:-2] != other.shape[:-2] or self.shape[-1] != other.shape[-2]:
        return NotImplemented
    return self @ other if self.dtype == other.dtype else NotImplemented


def convolution(
    input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, is_transposed: bool, output_padding: Any,
    groups: int, out: Any,
) -> Any:  # fmt: skip
    """A transposed one is that of the spread image with the kernel turned around."""
    ndim = input.ndim - 2
    stride, padding, dilation, extra = (spread(v, ndim) for v in (stride, padding, dilation, output_padding))
    pads = [(p, p) for p in padding]
    steps, apart = stride, (1,) * ndim
    if is_transposed:
        reach = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
        pads = [(r - p, r - p + e) for r, p, e in zip(reach, padding, extra, strict=True)]
        steps, apart = apart, steps
        weight = jnp.flip(weight, tuple(range(2, ndim + 2)))
        weight = jnp.swapaxes(weight.reshape(groups, -1, *weight.shape[1:]), 1, 2)
        weight = weight.reshape(-1, *weight.shape[2:])

    def of_xla(input: Any, weight: Any) -> Any:
        return lax.conv_general_dilated(input, weight, steps, pads, apart, dilation, feature_group_count=groups)

    on_cpu = None
    if isinstance(input, jax.core.Tracer) and input.dtype.itemsize >= 4:
        if groups == input.shape[1] == weight.shape[0] and groups > 1 and not is_transposed and prod(weight.shape[2:]) <= MANY:
            on_cpu = partial(_shifted, stride=stride, pads=pads, dilation=dilation)
        elif groups == prod(weight.shape[2:]) == max(apart) == 1 and not any(map(any, pads)):
            on_cpu = partial(_product, stride=steps)
        elif groups == max(apart) == 1 and input.shape[1] <= FEW:
            lengths = zip(input.shape[2:], weight.shape[2:], steps, pads, dilation, strict=True)
            places = prod([positions(n + sum(pad), k, s, 0, d) for n, k, s, pad, d in lengths])
            if 0 < len(input) * places * prod(weight.shape[1:]) <= NUMBERS:
                on_cpu = partial(_unfolded, stride=steps, pads=pads, dilation=dilation)
    made = of_xla(input, weight) if on_cpu is None else lax.platform_dependent(input, weight, cpu=on_cpu, default=of_xla)
    return made if bias is None else made + bias.reshape(-1, *(1,) * ndim)


def _product(input: Any, weight: Any, *, stride: Any) -> Any:
    """A convolution with one weight for each pair of channels, as a product for each image: up to twice as fast on the CPU.
    One product of all images takes twice as long on one thread, because it has to be turned around."""
    image = input[:, :, *[slice(None, None, step) for step in stride]]
    number, channels, *lengths = image.shape
    matrices = jnp.broadcast_to(weight.reshape(weight.shape[:2]), (number, *weight.shape[:2]))
    return (matrices @ image.reshape(number, channels, prod(lengths))).reshape(number, len(weight), *lengths)


def _unfolded(input: Any, weight: Any, *, stride: Any, pads: Any, dilation: Any) -> Any:
    """A convolution of few channels, as one product with what the kernel sees at each place: up to 3 times as fast on the CPU.

    The image is laid side by side with itself, shifted along one dim, and so on for each dim: XLA copies that faster than parts
    that are shifted along all of them.
    """
    image, ndim = jnp.swapaxes(_padded(input, pads), 0, 1), input.ndim - 2
    for done, dim in enumerate(reversed(range(ndim))):
        axis, step, k, d = done + 2 + dim, stride[dim], weight.shape[2 + dim], dilation[dim]
        end = (image.shape[axis] - d * (k - 1) - 1) // step * step + 1
        parts = [lax.slice_in_dim(image, i * d, i * d + end, step, axis) for i in range(k)]
        image = lax.optimization_barrier(jnp.stack(parts))
    matrix = jnp.moveaxis(weight, 1, -1).reshape(len(weight), -1)
    made = matrix @ image.reshape(matrix.shape[1], -1)
    return jnp.swapaxes(made.reshape(len(weight), *image.shape[ndim + 1 :]), 0, 1)


def _padded(input: Any, pads: Any) -> Any:
    return lax.pad(input, jnp.zeros((), input.dtype), [(0, 0, 0), (0, 0, 0), *[(before, after, 0) for before, after in pads]])


def _shifted(input: Any, weight: Any, *, stride: Any, pads: Any, dilation: Any) -> Any:
    """A convolution of each channel alone, as the sum of products of shifted images: 25 times as fast as XLA's on the CPU."""
    ndim = input.ndim - 2
    image = _padded(input, pads)
    places = list(zip(image.shape[2:], weight.shape[2:], stride, dilation, strict=True))
    reach = [(length - d * (k - 1) - 1) // s * s + 1 for length, k, s, d in places]
    made = jnp.zeros((), input.dtype)
    for at in product(*map(range, weight.shape[2:])):
        start = [i * d for i, d in zip(at, dilation, strict=True)]
        end = [first + length for first, length in zip(start, reach, strict=True)]
        part = lax.slice(image, (0, 0, *start), (*image.shape[:2], *end), (1, 1, *stride))
        made = made + part * weight[:, 0, *at].reshape(-1, *(1,) * ndim)
    return made
