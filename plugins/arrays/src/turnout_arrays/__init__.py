"""The kernel library of the NumPy-like backends, parameterised by the array module.

Start with `kernels(xp)`: the table from operator to function, put together from one module per concern (`pointwise`,
`elementary`, `activations`, `polynomials`, `reductions`, `linalg`, `indexing`, `losses`, `random`, ...). `ArrayBackend`
(`backend`) is the class such a backend derives from. Nothing here imports an array module: the plugin that does hands it in
as `xp`.
"""

from __future__ import annotations

from turnout_arrays.backend import ArrayBackend
from turnout_arrays.table import kernels

__all__ = ["ArrayBackend", "kernels"]
