"""What formulas of layers call: operators under short names, and gradients too long for one line; see `formulas`."""

from __future__ import annotations

from math import prod
from typing import Any

from turnout.registry import find_operator
from turnout.tensors import Tensor

Ints = tuple[int, ...]


def _call(name: str) -> Any:
    """The stub of a standard operator."""
    return find_operator(f"aten::{name}").call


convolution_backward = _call("convolution_backward")
im2col = _call("im2col")
col2im = _call("col2im")
avg_pool2d = _call("avg_pool2d")
avg_pool3d = _call("avg_pool3d")
avg_pool2d_backward = _call("avg_pool2d_backward")
avg_pool3d_backward = _call("avg_pool3d_backward")
adaptive_avg_pool2d = _call("_adaptive_avg_pool2d")
adaptive_avg_pool3d = _call("_adaptive_avg_pool3d")
adaptive_avg_pool2d_backward = _call("_adaptive_avg_pool2d_backward")
adaptive_avg_pool3d_backward = _call("_adaptive_avg_pool3d_backward")


def placed_grad(grad: Tensor, shape: Ints, indices: Tensor, ndim: int) -> Tensor:
    """Every gradient added at the place in the last `ndim` dims that its window's largest element came from."""
    lead = len(shape) - ndim
    flat = (*grad.shape[:lead], prod(grad.shape[lead:]))
    zeros = grad.new_zeros((*shape[:lead], prod(shape[lead:])))
    return zeros.scatter_add(-1, indices.reshape(flat), grad.reshape(flat)).reshape(shape)
