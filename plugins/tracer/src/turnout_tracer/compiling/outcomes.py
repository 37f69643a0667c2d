"""What a call leaves behind, described so that it can be made again: results, `.grad`, and places that hold another tensor.

Each tensor among these is an input, a view of one, new memory, or a view of that. What the eager call left is compared with what
there was before; a difference that cannot be described is the reason for which there is no program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.config.tuples import NamedTuple
from turnout.guards import during
from turnout_aten import operators as aten
from turnout_aten import trees
from turnout_aten.shapes.extents import is_dense
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.roles import role_of
from turnout_aten.tensor.storage import owner_of
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.compiling import errors
from turnout_tracer.compiling.signatures import place_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.devices import Device
    from turnout.dtypes import DType
    from turnout_tracer.compiling.capture import Capture
    from turnout_tracer.compiling.signatures import Walk
    from turnout_tracer.nodes import Ref

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Geometry(NamedTuple):
    """Where a view lies in its memory, and how it was made.

    records      for gradients or not
    is_view      whether it is a view for gradients at all
    is_detached  whether what it is a view of is a detached tensor over the memory, which nobody else has
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    records: bool
    is_view: bool
    is_detached: bool = False

    def of(self, base: Tensor) -> Tensor:
        """This view of a tensor over the memory."""
        return during(GRAD, (int(self.records), GRAD.get()[1]), self._of, base)

    def _of(self, base: Tensor) -> Tensor:
        seen = base.detach() if self.is_detached else base
        made: Tensor = aten.as_strided(seen, self.shape, self.strides, self.offset)
        return made if self.is_view else made.detach()


class Outcome(NamedTuple):
    """One tensor: the input or the new memory with this `number`; all of it, or a view."""

    is_input: bool
    number: int
    view: Geometry | None = None


class Kind(NamedTuple):
    """What a program knows of a new memory, in the place of the tensor over it."""

    shape: tuple[int, ...]
    dtype: DType
    device: Device
    strides: tuple[int, ...]

    def stride(self) -> tuple[int, ...]:
        """Its strides."""
        return self.strides


class Memory(NamedTuple):
    """New memory: the value that fills it, and the tensor over it or its kind."""

    ref: Ref
    tensor: Any

    def without_values(self) -> Memory:
        """The same without the tensor."""
        tensor = self.tensor
        return Memory(self.ref, Kind(tuple(tensor.shape), tensor.dtype, tensor.device, tensor.stride()))


class Outcomes:
    """What a call leaves behind.

    tensors   its tensors, each once
    memories  the new memories
    leaves    the leaves of the result: numbers of tensors in a list, or plain values
    grads     inputs whose `.grad` is another one: (input, number of the tensor or None)
    slots     places that hold another tensor: (slot, number of the tensor)
    records   whether one of the tensors records for gradients
    """

    def __init__(self, before: Walk, after: Walk, returned: Any, capture: Capture) -> None:
        self._before = before
        self._capture = capture
        self._numbers: dict[int, int] = {}
        self._alive: list[Tensor] = []
        self._groups: dict[int, int] = {}
        self.tensors: list[Outcome] = []
        self.memories: list[Memory] = []
        self.grads: list[tuple[int, int | None]] = []
        self.slots: list[tuple[int, int]] = []
        self.records = False
        self._compare(after)
        if capture.reason:
            return
        self._inputs = {id(tensor): i for i, tensor in enumerate(before.tensors)}
        leaves, self.structure = trees.flatten(returned)
        self._check_containers(returned, before.containers | after.containers, set())
        self.leaves: list[Any] = []
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                self.leaves.append([self._number(leaf)])
            elif type(leaf) in _PLAIN:
                self.leaves.append(leaf)
            else:
                capture.refuse(errors.result(type(leaf).__name__), line=False)
        for i, (grad, found) in enumerate(zip(before.grads, after.grads, strict=True)):
            if found is not grad:
                self.grads.append((i, None if found is None else self._number(found)))
        for i, (slot, other) in enumerate(zip(before.slots, after.slots, strict=True)):
            tensor = after.tensors[other.index]
            if tensor is not before.tensors[slot.index]:
                if tensor.grad is not None:
                    capture.changes(place_text(slot.place))
                self.slots.append((i, self._number(tensor)))

        self._unwrap()

    def _unwrap(self) -> None:
        """A detached alias of new memory that nothing else sees is that memory: `loss.detach()`."""
        used = [outcome.number for outcome in self.tensors if not outcome.is_input]
        for i, (is_input, number, view) in enumerate(self.tensors):
            if view is None or is_input or view.is_view or view.offset or used.count(number) > 1:
                continue
            memory = self.memories[number].tensor
            if view.shape == tuple(memory.shape) and view.strides == memory.stride():
                self.tensors[i] = Outcome(False, number)

    def kept_for_gradients(self, capture: Capture) -> bool:
        """Let a memory with one tensor over it be that of this tensor, and say whether one node can stand for the call.

        It can for one new result that records, and is no view. Several have histories of their own, are freed one by one, and may
        come from one another. The first tensor over a memory may be one that an operator made inside, where nothing was recorded.
        """
        for number, memory in enumerate(self.memories):
            over = [i for i, each in enumerate(self.tensors) if not each.is_input and each.number == number]
            tensor = self._alive[over[0]]
            if len(over) == 1 and tensor.view_of is None and is_dense(tuple(tensor.shape), tensor.stride()):
                self.memories[number] = Memory(capture.ref(tensor), tensor)
                self.tensors[over[0]] = Outcome(False, number)
            elif memory.tensor.gmask or any(self._alive[i].gmask for i in over):
                return False
        return sum(memory.tensor.gmask != 0 for memory in self.memories) == 1

    def forget(self) -> None:
        """Let go of the tensors of the call: a program needs none of them."""
        self.memories = [memory.without_values() for memory in self.memories]
        for name in ("_before", "_capture", "_numbers", "_alive", "_groups", "_inputs"):
            self.__dict__.pop(name, None)

    # ---- what changed

    def _compare(self, after: Walk) -> None:
        """Refuse what a program could not do again."""
        before, refuse = self._before, self._capture.refuse
        if after.reason:
            refuse(after.reason, line=False)
            return
        if before.main_key != after.main_key:
            self._capture.changes(_difference(before, after))
            return
        if before.modes != after.modes:
            self._capture.changes(errors.MODES)
        if before.seeds != after.seeds or any(a is not b for a, b in zip(before.generators, after.generators, strict=True)):
            self._capture.changes("a generator")
        put = [0] * len(before.tensors)
        for slot, other in zip(before.slots, after.slots, strict=True):
            put[slot.index] += slot.owner is other.owner and slot.name == other.name
        for i in range(before.main):
            if before.tensors[i] is not after.tensors[i]:
                if put[i] != before.met[i] or before.met[i] != after.met[i]:
                    self._capture.changes(place_text(before.tensor_places[i]))
            elif before.nodes[i] is not after.nodes[i]:
                refuse(errors.RECORDS, line=False)

    def _check_containers(self, value: Any, known: set[int], met: set[int]) -> None:
        if isinstance(value, (list, dict)):
            if id(value) in known:
                self._capture.refuse(errors.kept_result(type(value).__name__), line=False)
            if id(value) in met:
                self._capture.refuse(errors.result_twice(type(value).__name__), line=False)
            met.add(id(value))
        if isinstance(value, (list, tuple)):
            for each in value:
                self._check_containers(each, known, met)
        elif isinstance(value, dict):
            for each in value.values():
                self._check_containers(each, known, met)

    # ---- tensors

    def _number(self, tensor: Tensor) -> int:
        found = self._numbers.get(id(tensor))
        if found is None:
            found = self._numbers[id(tensor)] = len(self.tensors)
            self._alive.append(tensor)
            self.tensors.append(self._describe(tensor))
        return found

    def _describe(self, tensor: Tensor) -> Outcome:
        at = self._inputs.get(id(tensor))
        if at is not None:
            return Outcome(True, at)
        if type(tensor) is not Tensor or tensor.fake_mode is not None or role_of(tensor) or tensor.is_inference():
            self._capture.refuse(errors.result(type(tensor).__name__), line=False)
            return Outcome(True, 0)
        self.records = self.records or bool(tensor.gmask)
        over = [i for i, each in enumerate(self._before.tensors) if _same_memory(each, tensor)]
        if over:
            view, viewed = tensor.view_of, over
            if view is not None:
                viewed = [i for i in over if owner_of(self._before.tensors[i]) is view.base]
            at = (viewed or over)[0]
            each = self._before.tensors[at]
            if each.dtype is not tensor.dtype or each.shared_storage().counter is not tensor.shared_storage().counter:
                self._capture.refuse(errors.unrelated_alias(), line=False)
            return Outcome(True, at, _geometry(tensor)._replace(is_detached=not viewed))
        first = self._capture.first_over(tensor)
        key = id(first)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = len(self.memories)
            self.memories.append(Memory(self._capture.ref(first), first))
        if first is tensor:
            return Outcome(False, group)
        if first.dtype is not tensor.dtype or first.shared_storage().counter is not tensor.shared_storage().counter:
            self._capture.refuse(errors.unrelated_alias(), line=False)
        return Outcome(False, group, _geometry(tensor, first.storage_offset()))


def _difference(before: Walk, after: Walk) -> str:
    """The place of the first part in which two signatures differ, or of the first that only one of them has."""
    one, other = before.main_key, after.main_key
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    there = after if len(other) > len(one) else before
    part = there.main_key[at]
    return place_text(there.places[at]) + (f".{part}" if type(part) is str else "")  # the name of an attribute


def _same_memory(one: Tensor, other: Tensor) -> bool:
    return one.storage is not None and other.storage is not None and one.storage.memory is other.storage.memory


def _geometry(tensor: Tensor, start: int = 0) -> Geometry:
    view = tensor.view_of
    records = view is not None and not view.no_grad
    return Geometry(tuple(tensor.shape), tensor.stride(), tensor.storage_offset() - start, records, view is not None)


def made_again(outcomes: Sequence[Outcome], inputs: Sequence[Tensor], memories: Sequence[Tensor]) -> list[Tensor]:
    """The tensors of another call."""
    made = []
    for outcome in outcomes:
        base = inputs[outcome.number] if outcome.is_input else memories[outcome.number]
        made.append(base if outcome.view is None else outcome.view.of(base))
    return made
