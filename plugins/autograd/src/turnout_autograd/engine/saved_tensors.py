"""What nodes save: an input is the tensor itself with the version that it had, an output everything but its history.

Generated kernels do most of it in line; what would be too long there, lists and optional tensors, is a function here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from turnout.errors import AliasError
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd import errors
from turnout_autograd.duals.carried import TANGENTS, Tangents
from turnout_autograd.duals.levels import FORWARD
from turnout_autograd.engine.nodes import Output, attach

if TYPE_CHECKING:
    from turnout_aten.tensor.storage import Storage
    from turnout_autograd.engine.nodes import Node


class _Freed:
    """Stands in for saved values that were freed: its version is never the saved one."""

    __slots__ = ()
    storage = None
    ver = -1


FREED: Any = _Freed()


def spoiled(node: Node, argument: str, tensor: Any, version: int) -> NoReturn:
    """Raise the error for a saved tensor that is not at the version it was saved with."""
    if tensor is FREED:
        raise errors.GradientError(errors.passes.freed(node.op_name))
    raise AliasError(errors.passes.changed(node.op_name, argument, tensor, version, tensor.version()))


def check_saved(node: Node, argument: str, tensor: Any, version: int) -> Any:
    """The saved tensor, when it may still be used. Raises GradientError when it was freed, AliasError when it was changed."""
    storage = tensor.storage
    if (tensor.ver if storage is None else storage.version() if storage.ver is None else storage.ver) != version:
        spoiled(node, argument, tensor, version)
    return tensor


class Saved:
    """What stands for a saved tensor."""

    __slots__ = ()

    def carrying(self, index: int, tensor: Tensor, tangents: Tangents) -> Saved:
        """It with the tangents of the node's output `index`, where it is that output; -1 for the only one."""
        raise NotImplementedError(f"{type(self).__name__} must define carrying(index, tensor, tangents)")


class Kept(Saved):
    """A saved output: everything of the tensor but its history, which is the node's own."""

    __slots__ = ("array", "device", "gmask", "index", "offset", "storage", "version")

    def __init__(self, tensor: Tensor, gmask: int, index: int = -1) -> None:
        storage: Storage = tensor.shared_storage()
        self.array = tensor.array
        self.device = tensor.device
        self.storage = storage
        self.offset = tensor.offset
        self.version = storage.version() if storage.ver is None else storage.ver
        self.gmask = gmask
        self.index = index

    def tensor(self, node: Node, argument: str) -> Tensor:
        """The output again, as the node's output where that is recorded. Raises AliasError when it was changed."""
        made = wrap(self.array, self.device)
        made.storage = storage = self.storage
        made.offset = self.offset
        if (storage.version() if storage.ver is None else storage.ver) != self.version:
            spoiled(node, argument, made, self.version)
        if self.gmask & GRAD.get()[0]:
            attach(made, node if self.index < 0 else Output(node, self.index), self.gmask)
        return made

    def carrying(self, index: int, tensor: Tensor, tangents: Tangents) -> Saved:
        return DualKept(self, tangents) if self.index == index and self.storage is tensor.storage else self


class DualKept(Kept):
    """A saved output that carried tangents."""

    __slots__ = ("tangents",)

    def __init__(self, kept: Kept, tangents: Tangents) -> None:
        for name in Kept.__slots__:
            setattr(self, name, getattr(kept, name))
        self.tangents = tangents

    def tensor(self, node: Node, argument: str) -> Tensor:
        made = super().tensor(node, argument)
        made.extra = {TANGENTS: self.tangents}
        made.keys |= FORWARD
        return made


def keep_tangents(edge: Any, tensor: Tensor, tangents: Tangents | None) -> None:
    """Make a result's tangents part of what the node that made it saved of it."""
    node: Any = edge.node if edge.__class__ is Output else edge
    if "inner" in type(node).__slots__:  # a write into a view
        node = node.inner
    names = node.keeps
    if names is None:
        cls: Any = type(node)
        # The class of a node whose saved tensors are packed has no slots of its own.
        names = cls.__slots__ or cls.__base__.__slots__
    for name in names if tangents else ():
        saved = getattr(node, name, None)
        if isinstance(saved, Saved):
            setattr(node, name, with_tangents(saved, edge, tensor, tangents))


def with_tangents(saved: Any, edge: Any, tensor: Tensor, tangents: Tangents | None) -> Any:
    """A saved value with the tangents of the tensor, where it is that output."""
    if not tangents or not isinstance(saved, Saved):
        return saved
    return saved.carrying(edge.index if edge.__class__ is Output else -1, tensor, tangents)


class _FreedOutput:
    __slots__ = ()

    def tensor(self, node: Node, argument: str) -> NoReturn:
        raise errors.GradientError(errors.passes.freed(node.op_name))


FREED_OUTPUT: Any = _FreedOutput()


def version_of(tensor: Tensor | None) -> int:
    """The version an optional tensor is saved with."""
    return 0 if tensor is None else tensor.version()


def versions_of(tensors: Sequence[Tensor | None]) -> list[int]:
    """The versions that a list of tensors is saved with."""
    return [version_of(t) for t in tensors]


def check_optional(node: Node, argument: str, tensor: Tensor | None, version: int) -> Tensor | None:
    """A saved optional tensor, checked as `check_saved` does."""
    return None if tensor is None else check_saved(node, argument, tensor, version)


def check_list(node: Node, argument: str, tensors: Any, versions: list[int]) -> list[Tensor | None]:
    """A saved list of tensors, each checked."""
    if tensors is FREED:
        raise errors.GradientError(errors.passes.freed(node.op_name))
    return [check_optional(node, f"{argument}[{i}]", t, v) for i, (t, v) in enumerate(zip(tensors, versions, strict=True))]
