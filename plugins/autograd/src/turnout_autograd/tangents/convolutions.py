"""The tangent of a convolution's bias."""

from __future__ import annotations

from turnout_aten.tensor.tensor import Tensor


def along_channels(bias_t: Tensor, ndim: int) -> Tensor:
    """One number for each channel, which is dim 1 of `ndim`."""
    return bias_t.reshape((-1, *[1] * (ndim - 2)))
