"""One checkpointed call: a `Slot` for each tensor that it saved, and how the call is run again to fill them.

The call runs inside `saved_tensors_hooks`, so its nodes hold slots. The first slot that a backward pass needs runs the function
again inside other hooks, which put what is saved the second time into the slots, by its number. A slot gives its tensor away
once; what is asked for later, in another pass, is computed again.

Calls nest. The arguments of a call are packed by the hooks around it, so those of an inner call are slots of the outer one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import ref

from turnout.errors import AliasError, TurnoutError
from turnout.guards import during
from turnout.keys import AUTOCAST
from turnout.registry import REGISTRY
from turnout_aten import trees
from turnout_aten.tensor.levels import GRAD, LEVELS
from turnout_aten.tensor.random import default_generator_states, set_default_generator_states
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.duals.levels import active, at_levels
from turnout_autograd.engine.nodes import Node
from turnout_autograd.engine.recorded_levels import EPOCHS
from turnout_autograd.hooks.packing import HOOKS, Packed, saved_tensors_hooks
from turnout_autograd.transforms.batch_elements import run_in

Context = AbstractContextManager[Any]


class CheckpointError(TurnoutError, RuntimeError):
    """A checkpointed function saved other tensors when it ran again."""


class Slot:
    """Stands for one tensor that the function saved: which one, and its value while it is computed and not used yet."""

    __slots__ = ("__weakref__", "index", "value")

    def __init__(self, index: int) -> None:
        self.index = index
        self.value: Tensor | None = None


class _Enough(BaseException):
    """Leaves a function that runs again, when the last tensor that is needed was saved. No `except Exception` stops it."""


class _Call(Node):
    """Stands in error texts for the call, where hooks around it must unpack its arguments."""

    __slots__ = ()
    op_name = "checkpoint"


class Recomputation:
    """What is needed to run a function again as it ran here: its arguments, random states, casts, and levels that record."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *,
        context: Context, is_checked: bool, stops_early: bool, keeps_random: bool,
    ) -> None:  # fmt: skip
        self._function = function
        self._context = context
        self._is_checked = is_checked
        self._stops_early = stops_early
        self._enabled, self._allowed = GRAD.get()
        self._epochs = {bit: epoch for bit, epoch in EPOCHS.copy().items() if bit & self._allowed}
        self._random = default_generator_states() if keeps_random else None
        self._vmaps = LEVELS.get()
        self._forward = active()
        service = REGISTRY.services.get(AUTOCAST)
        self._casts = None if service is None else service.casts_here()
        self._slots: list[ref[Slot]] = []
        self._facts: list[str] = []
        self._is_complete = False
        leaves, self._structure = trees.flatten((args, kwargs))
        around = HOOKS.get()
        self._arguments = [_argument(leaf, around) for leaf in leaves]

    def run(self, forward: Context, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function's result, the first time."""
        with saved_tensors_hooks(self._pack, self._unpack), forward:
            result = self._function(*args, **kwargs)
        self._is_complete = True
        return result

    def _pack(self, tensor: Tensor) -> Slot:
        slot = Slot(len(self._slots))
        self._slots.append(ref(slot))
        self._facts.append(_facts(tensor) if self._is_checked else "")
        return slot

    def _unpack(self, slot: Slot) -> Tensor:
        value, slot.value = slot.value, None
        if value is not None:
            return value
        live = {each.index: each for each in map(_target, self._slots) if each is not None}
        count = self._again(live, max(live))
        value, slot.value = slot.value, None
        if value is None:
            raise CheckpointError(errors.checkpointing.saved_fewer(len(self._slots), count))
        return value

    def _again(self, live: dict[int, Slot], last: int) -> int:
        """Run the function again, and fill the slots that are still needed. Returns how many tensors it saved."""
        count = 0
        token = object()  # an exception that this frame holds would keep all its frames alive

        def pack(tensor: Tensor) -> Tensor:
            nonlocal count
            index, count = count, count + 1
            if index >= len(self._slots):
                # A function that computes gradients inside itself is not through the first time: more will be saved.
                if self._is_complete and self._is_checked:
                    raise CheckpointError(errors.checkpointing.saved_more(len(self._slots)))
                return tensor
            if self._is_checked and (now := _facts(tensor)) != self._facts[index]:
                raise CheckpointError(errors.checkpointing.saved_other(index, self._facts[index], now))
            if index in live:
                live[index].value = tensor
            if index == last and self._stops_early:
                raise _Enough(token)
            return tensor

        args, kwargs = trees.unflatten(self._structure, [argument() for argument in self._arguments])
        before = default_generator_states() if self._random is not None else None
        try:
            if self._random is not None:
                set_default_generator_states(self._random)
            service = REGISTRY.services.get(AUTOCAST)
            casts = nullcontext() if service is None else service.casting_as(self._casts)
            # In no ExitStack, which may have no memory to note a block that it has entered.
            with casts, saved_tensors_hooks(pack, _same), self._context:
                at_levels(self._forward, run_in, self._vmaps, self._recorded, args, kwargs)
        except _Enough as found:
            if found.args[0] is not token:
                raise  # a call around this one has what it needs
        finally:
            if before is not None:
                set_default_generator_states(before)
        return count

    def _recorded(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Run the function where the levels record that did so the first time, and still exist: bits are used again."""
        # Not over items(): CPython 3.11 crashes where it has no memory for its iterator.
        gone = sum([bit for bit in self._epochs if EPOCHS.get(bit) != self._epochs[bit]])
        during(GRAD, (self._enabled & ~gone, self._allowed & ~gone), self._function, *args, **kwargs)


def _target(slot: ref[Slot]) -> Slot | None:
    return slot()


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _facts(tensor: Tensor) -> str:
    return f"{tensor.dtype.name} {list(tensor.shape)} on {tensor.device}"


def _argument(leaf: Any, around: Any) -> Callable[[], Any]:
    """What gives an argument again: the tensor if it was not written since, or what the hooks around the call unpack."""
    if not isinstance(leaf, Tensor):
        return lambda: leaf
    if around:
        packed = Packed(leaf, *around[-1])
        return lambda: packed.unpacked(_Call())
    version = leaf.version()

    def checked() -> Tensor:
        if leaf.version() != version:
            raise AliasError(errors.checkpointing.argument_changed(leaf, version))
        return leaf

    return checked
