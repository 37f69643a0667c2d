"""Custom kernels on arrays: plain functions that get the backend's own arrays in the places of tensors, and return arrays.

The form that backends' own kernels have, and the fastest: nothing is converted, `numpy.sin` itself can be the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout.errors import NoKernelError
from turnout.errors import library as texts
from turnout.operators import Operator
from turnout.operators.kernels import Kernel
from turnout.registry import REGISTRY


def on_arrays(op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
    """The binder of kernels on arrays. Raises NoKernelError for a key that is not that of a backend with arrays."""
    backend = REGISTRY.backends.get(key)
    call = None if backend is None else backend.bind_array_kernel(op, kernel)
    if call is None:
        raise NoKernelError(texts.no_arrays(op, kernel, key))
    return call
