"""The kernel library of the NumPy-like backends, parameterised by the array module.

Start with `kernels(xp)`: the table from operator to function, combined from one module per concern (`pointwise`, `elementary`,
`activations`, `polynomials`, `reductions`, `decompositions`, `indexing`, `losses`, `random`, ...). A backend derives from
`ArrayBackend` (in `backend`), or from `FunctionalArrayBackend` (in `functional`) where arrays cannot be written. Nothing here
imports an array module: the plugin imports it and passes it as `xp`.
"""

from __future__ import annotations

from turnout_arrays.backend import ArrayBackend
from turnout_arrays.table import kernels

__all__ = ["ArrayBackend", "kernels"]
__dir__ = __all__.copy
