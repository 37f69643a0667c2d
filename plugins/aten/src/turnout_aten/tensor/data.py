"""`x.data = y`: a tensor takes over another's memory, and keeps its history, its `.grad` and who tracks it."""

from __future__ import annotations

from typing import Any

from turnout.dtypes import FLOAT
from turnout.errors import AliasError, CallError, DTypeError
from turnout.keys import KEYS, TRACKED
from turnout_aten.tensor.grad_mode import tracked_levels
from turnout_aten.tensor.storage import RetypedStorage, Storage
from turnout_aten.tensor.tensor import Tensor

_OWN = TRACKED | KEYS.bit("Python")  # bits of the tensor itself; the others are its device's
_BATCHED = KEYS.bit("Batched")


class AdoptedStorage(RetypedStorage):
    """Memory taken over from another tensor, whose versions count from higher up.

    Whoever saved the tensor before finds another version; whoever saved the other tensor notices later writes through this one.
    """

    __slots__ = ("_ahead",)

    def __init__(self, array: Any, memory: Storage, ahead: int) -> None:
        super().__init__(array, memory)
        self._ahead = ahead

    @property
    def ver(self) -> int:
        return self.memory.ver + self._ahead

    @ver.setter
    def ver(self, value: int) -> None:
        self.memory.ver = value - self._ahead


def adopt(self: Tensor, value: Any) -> None:
    """Let `self` have the elements of `value`: its memory, shape, strides, dtype and device.

    Tensors that viewed `self` keep the old memory and, where gradients are tracked, their history, and are views no more.
    """
    if not isinstance(value, Tensor):
        raise CallError(f"data must be a tensor, not {type(value).__name__}")
    if (self.keys | value.keys) & _BATCHED:
        raise AliasError("data cannot be set inside vmap; write with copy_() instead")
    if self.is_inference() != value.is_inference():
        raise AliasError(
            "data can be set from an inference tensor to an inference tensor only; clone() it outside of the mode"
        )
    if self.gmask and value.dtype.category < FLOAT:
        raise DTypeError(
            f"data of a tensor that requires a gradient must be floating-point or complex, this one is {value.dtype.name}"
        )
    if value.array is self.array:  # `x.data -= y` ends here
        return
    for view in [self, *self.live_views()]:
        tracked_levels(view)  # brings its history up to date, for the last time
        view.view_of = None
    storage = value.shared_storage()
    memory = storage.memory
    ahead = 0 if memory.is_inference else max(self.version() + 1 - memory.ver, 0)
    self.storage = AdoptedStorage(storage.array, memory, ahead)
    self.offset = value.offset
    self.array = value.array
    self.device = value.device
    self.keys = (value.keys & ~_OWN) | (self.keys & _OWN)


def _detached(self: Tensor) -> Tensor:
    """The same memory without history, sharing the version counter: `detach()` under PyTorch's older name.

    Setting it takes over another tensor's memory, shape, dtype and device; history, `.grad` and `requires_grad` stay. That raises
    CallError for what is not a tensor, DTypeError for integers where a gradient is required, AliasError inside vmap and between
    inference tensors and others.

    # differs from torch: the version counter is shared, so a write through `.data` is seen by saved-tensor checks.
    """
    made: Tensor = self.detach()
    return made


data = property(_detached, adopt)
