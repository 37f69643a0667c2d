"""The kernel library of the NumPy-like backends, parameterised by the array module.

Start with `kernels(xp)`: the table from operator to function, combined from one module per concern (`pointwise`, `elementary`,
`activations`, `reductions`, `decompositions`, `indexing`, `losses`, `random`, ...). A backend derives from
`ArrayBackend` (in `backend`). Where arrays cannot be written, it derives from `FunctionalArrayBackend` (in `functional`), and
`functional_kernels(xp)` is the table. Nothing here imports an array module: the plugin imports it and passes it as `xp`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_arrays.backend import ArrayBackend
from turnout_arrays.table import kernels

if TYPE_CHECKING:
    from turnout_arrays.functional import FunctionalArrayBackend, functional_kernels

__all__ = ["ArrayBackend", "FunctionalArrayBackend", "functional_kernels", "kernels"]
__dir__ = __all__.copy

if not TYPE_CHECKING:  # a name that is not there is an error of types too

    def __getattr__(name: str) -> Any:
        """What backends over arrays that cannot be written have, which other programs need not load."""
        if name not in ("FunctionalArrayBackend", "functional_kernels"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from turnout_arrays import functional

        return getattr(functional, name)
