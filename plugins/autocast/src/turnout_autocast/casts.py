"""Which tensors are cast, and the cache: a weight that is used often is cast once per outermost context.

Casts are the operator `to`, called: Autograd and Tracer record them, so a gradient comes back in the weight's own dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from weakref import ref

from turnout.dtypes import FLOAT, DType, float32, float64
from turnout.keys import KEYS
from turnout.state import included
from turnout_aten import operators as aten
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor

_TRACER = KEYS.bit("Tracer")


def is_eligible(tensor: Tensor, device_type: str) -> bool:
    """Whether autocast for a device type may cast a tensor: floating, not float64, and on such a device."""
    if tensor.device.type != device_type:
        return False
    dtype = tensor.dtype
    return dtype.category == FLOAT and dtype is not float64


def promoted(lower: DType, tensors: list[Tensor], device_type: str) -> DType:
    """`lower` when every eligible tensor has it, else float32.

    # differs from torch: under `autocast`, arguments of two lower precisions give float32, which holds both. PyTorch raises.
    """
    return float32 if any(is_eligible(t, device_type) and t.dtype is not lower for t in tensors) else lower


class Cache:
    """Casts of leaves that require a gradient, weakly keyed by the leaf, valid for one version of it.

    `include` is the state where the outermost context was entered: a trace that began inside the context must record its
    own casts, and one outside of it must not meet those of a trace.
    """

    __slots__ = ("__weakref__", "_casts", "_traced")

    def __init__(self, include: int) -> None:
        self._casts: dict[tuple[int, DType, int], tuple[ref[Tensor], int, Tensor]] = {}
        self._traced = include & _TRACER

    def clear(self) -> None:
        """Forget everything."""
        self._casts.clear()

    def cast(self, tensor: Tensor, dtype: DType, cast: Callable[[Tensor, DType], Tensor]) -> Tensor:
        """The kept cast of a tensor, or a new one, kept when the tensor is worth it."""
        # Levels that record now are part of the key: a cast made under no_grad carries no gradient.
        recorded = tensor.gmask & GRAD.get()[0]
        if not tensor.gmask & 1 or tensor.node is not None or tensor.view_of is not None:
            return cast(tensor, dtype)
        if included(_TRACER) != self._traced:
            return cast(tensor, dtype)
        casts, key = self._casts, (id(tensor), dtype, recorded)
        found = casts.get(key)
        if found is not None and found[0]() is tensor and found[1] == tensor.version():
            return found[2]
        version = tensor.version()
        made = cast(tensor, dtype)
        # The callback holds the cache weakly: otherwise each cast would be part of a cycle, and outlive the context.
        casts[key] = (ref(tensor, partial(_forget, ref(self), key)), version, made)
        return made


def _forget(cache: ref[Cache], key: tuple[int, DType, int], _: object) -> None:
    """Called when a tensor dies whose cast is kept."""
    found = cache()
    if found is not None:
        found._casts.pop(key, None)


def cast(tensor: Tensor, dtype: DType) -> Tensor:
    """The tensor in another dtype, by the operator."""
    return aten.to__dtype(tensor, dtype)
