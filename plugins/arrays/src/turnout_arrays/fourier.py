"""Discrete Fourier transforms by the array module's `fft`, which has other names for directions and scalings.

`normalization` is 0 for no scaling, 1 for 1/sqrt(n) and 2 for 1/n, in either direction.
"""

from __future__ import annotations

from typing import Any

from turnout_arrays.numbers import store

Table = dict[str, Any]

FORWARD = ("backward", "ortho", "forward")
INVERSE = ("forward", "ortho", "backward")


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""

    def real_to_complex(self: Any, dim: Any, normalization: int, onesided: bool, out: Any) -> Any:
        transform = xp.fft.rfftn if onesided else xp.fft.fftn
        return store(xp, out, transform(self, axes=tuple(dim), norm=FORWARD[normalization]))

    def complex_to_real(self: Any, dim: Any, normalization: int, last_dim_size: int, out: Any) -> Any:
        lengths = [self.shape[d] for d in dim[:-1]]
        found = xp.fft.irfftn(self, (*lengths, last_dim_size), tuple(dim), INVERSE[normalization])
        return store(xp, out, found)

    def complex_to_complex(self: Any, dim: Any, normalization: int, forward: bool, out: Any) -> Any:
        if not len(dim):
            return store(xp, out, self)
        if forward:
            return store(xp, out, xp.fft.fftn(self, axes=tuple(dim), norm=FORWARD[normalization]))
        return store(xp, out, xp.fft.ifftn(self, axes=tuple(dim), norm=INVERSE[normalization]))

    return {"_fft_r2c.out": real_to_complex, "_fft_c2r.out": complex_to_real, "_fft_c2c.out": complex_to_complex}
