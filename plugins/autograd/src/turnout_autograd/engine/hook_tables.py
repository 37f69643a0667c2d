"""Where hooks are kept: a node's in its `Hooks`, a leaf's in the tensor's `extra`; a `Handle` removes one."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ref

from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from turnout.explanation.user_frames import UserFrame


class Hooks:
    """The hooks of a node: on its outputs by index, before it, after it, and the tensors that retain their gradient.

    line        the lines of the program that recorded it, for `detect_anomaly`; "" where they were not asked for
    user_frame  the line, for functionalities with `asks_lines`
    """

    __slots__ = ("line", "metadata", "outputs", "post", "pre", "retained", "user_frame")

    def __init__(self) -> None:
        self.outputs: dict[int, dict[int, Any]] = {}
        self.retained: dict[int, ref[Tensor]] = {}
        self.pre: dict[int, Any] = {}
        self.post: dict[int, Any] = {}
        self.metadata: dict[Any, Any] = {}
        self.line = ""
        self.user_frame: UserFrame | None = None


_next_hook = count().__next__


class Handle:
    """Removes a hook. It is also a context manager."""

    __slots__ = ("_hooks", "_key")

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self._hooks = hooks
        self._key = _next_hook()
        hooks[self._key] = hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self._key, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.remove()


HOOKS = "autograd hooks"
POST_HOOKS = "autograd post-accumulate hooks"
NODE_PREHOOKS = "autograd prehooks of the node"
NODE_HOOKS = "autograd hooks of the node"


class LeafHooks:
    """Whether any leaf had a hook so far, in the whole process: a step without hooks looks at no leaf twice."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = False


LEAF_HOOKS = LeafHooks()


def leaf_hooks(leaf: Tensor, name: str) -> dict[int, Any]:
    """The table of a leaf's hooks, made when there is none yet."""
    LEAF_HOOKS.used = True
    if leaf.extra is None:
        leaf.extra = {}
    return leaf.extra.setdefault(name, {})
