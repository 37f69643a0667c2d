"""BackendSelect: how a call without tensors finds its backend.

One fallback, specialised per operator: a factory (a `device` argument, no tensors) takes the backend of that device,
activating its plugin on first use; any other operator falls through.
"""

from __future__ import annotations

from typing import Any

from turnout.devices.devices import default_device
from turnout.operators import Operator
from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel


def selection(op: Operator) -> Any:
    """The specialised kernel of one operator at BackendSelect."""
    arguments = op.schema.arguments
    at = next((i for i, a in enumerate(arguments) if a.type.canonical.rstrip("?") == "Device"), None)
    if at is None or any(a.type.is_tensor_like for a in arguments):
        return FALLTHROUGH
    above = ~op.registry.keys.bit("BackendSelect")
    cache = op.cache

    def select_backend(ks: int, *args: Any) -> Any:
        wanted = args[at]
        backend = (default_device() if wanted is None else wanted).backend
        place = backend.current_device() if wanted is None else backend.resolve_device(wanted)
        ks = ks & above | backend.dense
        call = cache.get(ks) or op.resolve(ks)
        return call(ks, *args[:at], place, *args[at + 1 :])

    return Kernel(select_backend, INTERNAL, label=f"select the backend of {op.qualified_name}")
