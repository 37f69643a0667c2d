"""`x.data`, a tensor's memory without history and versions, and `x.data = y`: a tensor takes over another's memory."""

from __future__ import annotations

from typing import Any

from turnout.config.effects import effect
from turnout.dtypes import FLOAT
from turnout.errors import AliasError, CallError, DTypeError
from turnout.keys import KEYS, TRACKED
from turnout_aten.tensor.grad_mode import tracked_levels
from turnout_aten.tensor.tensor import Tensor

_OWN = TRACKED | KEYS.bit("Python")  # keys of the tensor itself; the others depend on its device
_BATCHED = KEYS.bit("Batched")


def adopt(self: Tensor, value: Any) -> None:
    """Give `self` the memory, shape, strides, dtype and device of `value`.

    Existing views of `self` keep the old memory and stop being views of it. Tracked views also keep their history.
    """
    if not isinstance(value, Tensor):
        raise CallError(f"data must be a tensor, not {type(value).__name__}")
    if (self.keys | value.keys) & _BATCHED:
        raise AliasError("data cannot be set inside vmap; write with copy_() instead")
    if self.is_inference() != value.is_inference():
        raise AliasError(
            "data: normal tensors and inference tensors cannot take over each other's memory; clone() outside inference_mode"
        )
    if self.gmask and value.dtype.category < FLOAT:
        raise DTypeError(
            f"data of a tensor that requires a gradient must be floating-point or complex, this one is {value.dtype.name}"
        )
    if value.array is self.array:  # `x.data -= y` assigns the same array back
        return
    effect("data =", of_first_use=True)  # as a lazy layer does
    for view in [self, *self.live_views()]:
        tracked_levels(view)  # its history is brought up to date for the last time
        view.view_of = None
    storage = value.shared_storage()
    ahead = 0 if value.is_inference() else max(self.version() + 1 - storage.version(), 0)
    self.storage = storage.adopted(ahead)
    self.offset = value.offset
    self.array = value.array
    self.device = value.device
    self.keys = (value.keys & ~_OWN) | (self.keys & _OWN)


def _uncounted(self: Tensor) -> Tensor:
    """The same memory without history, and with a version counter of its own.

    Writes reach the tensor, but backward does not notice them: what it saved before has the new values. `detach()` shares the
    counter, so there such a write makes backward an error.

    Setting it takes over another tensor's memory, shape, dtype and device; history, `.grad` and `requires_grad` stay. Setting
    raises CallError for a value that is not a tensor, DTypeError for an integer tensor if `self` requires a gradient,
    AliasError inside vmap and between an inference tensor and a normal one.
    """
    made: Tensor = self.detach()
    made.count_apart()
    return made


data = property(_uncounted, adopt)
