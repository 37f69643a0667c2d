"""NumPy references that several tables use."""

from __future__ import annotations

from typing import Any


def erf(np: Any, x: Any) -> Any:
    import math

    return np.vectorize(math.erf, otypes=[x.dtype])(x)
