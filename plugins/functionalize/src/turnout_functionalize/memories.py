"""One memory as a series of values, and the views of it.

A write does not change a tensor: it gives the memory a new value, and the views are made anew from it when they are next used.
So values that gradients save stay what they were, and a trace has no write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import AliasError
from turnout.guards import during
from turnout.registry import REGISTRY
from turnout_aten.declarations.tables import SHARES_STORAGE
from turnout_aten.errors.tensors import leaf_written
from turnout_aten.shapes.extents import is_dense
from turnout_aten.tensor.levels import GRAD, IMPERATIVE
from turnout_aten.tensor.tensor import Tensor
from turnout_functionalize import errors
from turnout_functionalize.inverses import Views, by_positions, rule_of, shows_each_once
from turnout_functionalize.regions import FORWARD, Region

if TYPE_CHECKING:
    from turnout.operators import Operator


class Memory:
    """What tensors over the same memory have in common.

    base        the value of the whole memory
    generation  how often it was written
    counted     the writes among these that its tensors count: not those through `x.data`
    region      where
    original    the tensor from outside that has this memory, or None
    recorded    whether a write was recorded for gradients
    root        the memory as a meta tensor, made when strides are first asked for
    """

    __slots__ = ("base", "counted", "first_version", "generation", "original", "recorded", "region", "root")

    def __init__(self, base: Tensor, region: Region, original: Tensor | None = None) -> None:
        self.base = base
        self.first_version = base.version()
        self.generation = self.counted = 0
        self.region = region
        self.original = original
        self.recorded = False
        self.root: Tensor | None = None

    def version(self) -> int:
        """The version that a tensor over this memory would have."""
        return self.first_version + self.counted


class Link:
    """One view operator between a memory and a view: its arguments, and which of several results is meant.

    recorded  whether gradients were on where the view was made
    entered   of an input of a transform: the memory, its generation then, and the view, which has a history of its own
    apart     whether the view counts its writes apart from the memory's, as `x.data` does
    """

    __slots__ = ("apart", "args", "entered", "index", "op", "recorded")

    def __init__(
        self, op: Operator, args: tuple[Any, ...], index: int | None, recorded: bool,
        entered: tuple[Memory, int, Tensor] | None = None,
    ) -> None:  # fmt: skip
        self.op = op
        self.args = args
        self.index = index
        self.recorded = recorded
        self.entered = entered
        self.apart = False


class Part:
    """What a functional tensor has in place of an array: a memory, and the view of it.

    links       from the memory to the view
    value       the view of a generation; of the base where there are no links
    shape       of the value
    shadow      the view as a meta tensor, or None: not yet made
    handle      the tensor from outside that this one stands for, or None
    """

    __slots__ = ("_generation", "_value", "handle", "links", "memory", "shadow", "shape")

    def __init__(
        self, memory: Memory, links: tuple[Link, ...] = (), value: Tensor | None = None, shadow: Tensor | None = None,
        handle: Tensor | None = None,
    ) -> None:  # fmt: skip
        self.memory = memory
        self.links = links
        if value is None:
            value = replayed(memory.base, links, memory.region)
        self._value = value
        self._generation = memory.generation
        self.shape = value.shape
        self.shadow = shadow
        self.handle = handle

    @property
    def last(self) -> Tensor:
        """The value when it was last used, for what no write changes: dtype, device."""
        return self._value

    def value(self) -> Tensor:
        """The value now."""
        memory = self.memory
        if self._generation != memory.generation:
            self._value = replayed(memory.base, self.links, memory.region)
            self._generation = memory.generation
        return self._value

    def take(self, value: Tensor) -> None:
        """The value that the memory has here since it was written."""
        self._value = value
        self._generation = self.memory.generation


def replayed(value: Tensor, links: tuple[Link, ...], region: Region) -> Tensor:
    """The view of a value."""
    for link in links:
        value = follow(value, link, region)
    return value


def follow(value: Tensor, link: Link, region: Region) -> Tensor:
    """One view operator again, recorded for gradients where it was."""
    if link.entered is not None:
        memory, generation, entered = link.entered
        if generation == memory.generation:
            return entered
    _, allowed = GRAD.get()
    made = during(GRAD, (allowed if link.recorded else 0, allowed), Views(region, link.op).view, link.op, value, *link.args)
    return made if link.index is None else made[link.index]


def write(op: Operator, part: Part, new: Tensor) -> None:
    """Give the memory the value that it has when `new` is written into this part of it."""
    memory, region, links = part.memory, part.memory.region, part.links
    recorded = _is_recorded(part)
    for name in (link.op.qualified_name for link in links[:2]):
        if name == "aten::as_strided" and not _covers_its_memory(memory):
            raise errors.FunctionalizeError(errors.refused(name, errors.PARTIAL_MEMORY))
    known = 0  # links up to here are undone one by one, those behind it together
    while known < len(links) and shows_each_once(links[known].op):
        known += 1
    if known == len(links) - 1 and links[known].op.name == "as_strided":
        known += 1
    befores = [memory.base]
    for link in links[: max(known - 1, 0) if known == len(links) else known]:
        befores.append(follow(befores[-1], link, region))
    base = new
    if known < len(links):
        base = by_positions(Views(region, op), links[known:], befores[known], base)
    for link, before in zip(reversed(links[:known]), reversed(befores[:known]), strict=True):
        rule = rule_of(link.op)
        assert rule is not None
        base = rule(Views(region, link.op), before, base, link.args, link.index)
    _commit(op, memory, base, recorded, counted=not any(link.apart for link in links))
    if not links:
        part.take(memory.base)
    elif recorded and known == len(links) and (part.shadow is None or part.shadow.stride() == new.stride()):
        part.take(new)


def _is_recorded(part: Part) -> bool:
    """Whether a write into it now is one that gradients follow."""
    return bool(GRAD.get()[0]) and all(link.recorded and SHARES_STORAGE not in link.op.tags for link in part.links)


def _covers_its_memory(memory: Memory) -> bool:
    root = memory.root
    return root is None or (not root.storage_offset() and is_dense(root.shape, root.stride()))


def resized(memory: Memory, new: Tensor) -> Memory:
    """The memory of an output of another shape: views of the old memory keep that."""
    region = memory.region
    made = Memory(new, region, memory.original)
    if memory.original is not None:
        made.first_version = memory.version()
        made.generation = made.counted = 1
        made.recorded = bool(GRAD.get()[0])
        memory.original.bump_version()
        for key, adopted in region.adopted.items():
            if adopted is memory:
                region.adopted[key] = made
    return made


def admit_write(op: Operator, place: int, part: Part) -> None:
    """Before a write into an argument: raise AliasError for a recorded one into a leaf.

    Before the first recorded write to a tracked tensor from outside: what the write saves of it must outlive the copy back.
    """
    memory = part.memory
    old, original = memory.base, memory.original
    if old.gmask & GRAD.get()[0] & IMPERATIVE and old.node is None and _is_recorded(part):
        raise AliasError(leaf_written(op.qualified_name, op.schema.arguments[place].name, bool(part.links)))
    if original is not None and not memory.generation and original.gmask & GRAD.get()[0]:
        memory.base = memory.region.call(op.registry.find("aten::clone"), original, None)
        memory.generation += 1


def _commit(op: Operator, memory: Memory, base: Tensor, recorded: bool, counted: bool) -> None:
    old = memory.base
    if memory.root is not None:
        base = _laid_out(op, base, memory.root.stride(), memory.region)
    if not recorded and old.gmask:
        base = _with_history_of(old, base, memory.region)
    memory.base = base
    memory.generation += 1
    memory.recorded = memory.recorded or recorded
    if not counted:
        # differs from torch: inside `functionalize`, a write through `Tensor.data` does not reach what backward computes with:
        # that has the values from before the write.
        return
    memory.counted += 1
    if memory.original is not None:
        memory.original.bump_version()  # so that a saved tensor that is written is noticed


def _with_history_of(old: Tensor, new: Tensor, region: Region) -> Tensor:
    """A value written where gradients were off: the tensor keeps its history, and a leaf stays one, with its `.grad`."""
    if (old.keys | new.keys) & FORWARD:  # the tangents in `extra` are those of the new value
        made: Tensor = region.call(REGISTRY.find("aten::alias"), new)
        made.view_of = None
        kept = old.extra if old.node is None else None
        made.extra = {**(kept or {}), **(made.extra or {})}
    else:
        made = new.new_alias(new.array, new.storage_offset())
        if old.node is None and old.extra is None:
            old.extra = {}
        made.extra = old.extra
    made.node = old.node
    made.set_gmask(old.gmask)
    return made


def _laid_out(op: Operator, new: Tensor, strides: tuple[int, ...], region: Region) -> Tensor:
    """`new` with the strides of the tensor that it is written into, where those are dense."""
    if new.stride() == strides or not is_dense(new.shape, strides):
        return new
    views = Views(region, op)
    room = views.call("new_empty_strided", new, new.shape, strides, None, None, None, None)
    return views.call("as_strided_scatter", room, new, new.shape, strides, 0)
