"""NumPy references that several tables use."""

from __future__ import annotations


def erf(np, x):
    import math

    return np.vectorize(math.erf, otypes=[x.dtype])(x)
