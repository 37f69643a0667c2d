"""The kernel library of the NumPy-like backends, parameterised by the array module.

| module | holds |
|---|---|
| `backend` | `ArrayBackend`: allocation, strided views, host bytes, DLPack |
| `functional` | `FunctionalArrayBackend` and `functional_kernels(xp)`, where arrays cannot be written |
| `table` | `kernels(xp)`: operator -> function, put together from the families |
| `native_dtypes`, `numbers` | dtypes of an array module; Python numbers and two-byte floats |
| `dlpack`, `drafts` | bfloat16 through DLPack; arrays that kernels write over values that nobody writes |
| `expressions`, `erf` | element-wise functions as a table for other languages; the error function |
| the others | families of operators: a table of each, with its functions beside it |

Start with `kernels(xp)`. Nothing here imports an array module: the plugin imports it and passes it as `xp`.
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
