"""`Storage`, shared by all tensors over the same memory, and `View`, the origin of a differentiable view."""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.operators import Operator
    from turnout_aten.tensor.tensor import Tensor

    Chain = tuple[tuple[Operator, tuple[Any, ...], int | None], ...]


class Storage:
    """The root array, the version counter, and weak references to the views of a memory.

    It is not a tensor, so that a detached alias does not keep the graph of the original tensor alive.
    """

    __slots__ = ("array", "ver", "views")
    is_inference = False

    def __init__(self, array: Any, ver: int) -> None:
        self.array = array
        self.ver: int = ver
        self.views: list[weakref.ref[Tensor]] = []

    @property
    def memory(self) -> Storage:
        """The storage that owns the memory: this one."""
        return self


class RetypedStorage(Storage):
    """A storage's memory as elements of another dtype, for `view(dtype)`. It shares the version counter."""

    __slots__ = ("_memory",)

    def __init__(self, array: Any, memory: Storage) -> None:
        self.array = array
        self._memory = memory

    @property
    def memory(self) -> Storage:
        return self._memory

    @property
    def ver(self) -> int:
        return self._memory.ver

    @ver.setter
    def ver(self, value: int) -> None:
        self._memory.ver = value

    @property
    def views(self) -> list[weakref.ref[Tensor]]:
        return self._memory.views

    @views.setter
    def views(self, value: list[weakref.ref[Tensor]]) -> None:
        self._memory.views = value


class View:
    """The origin of a differentiable view.

    base   the tensor that owns the memory for autograd; never a view itself
    chain  ((op, args after self), ...): replaying it on `base` gives the view again
    seen   the base's version when the view's node was computed
    multi  the view is one of several outputs of one call: writing into it is refused while gradients are tracked
    maker  the name of the custom function that made the view with its own gradient, or "": writing is refused in the same way

    `view_record` makes one. There is no `__init__`: the text that makes views would take 25 ns more without calling it.
    """

    __slots__ = ("base", "chain", "maker", "multi", "no_grad", "seen")

    base: Tensor
    chain: Chain
    seen: int
    multi: bool
    no_grad: bool
    maker: str


def view_record(base: Tensor, chain: Chain, seen: int, multi: bool, no_grad: bool, maker: str = "") -> View:
    """A `View` of these fields."""
    made = View()
    made.base, made.chain, made.seen, made.multi, made.no_grad, made.maker = base, chain, seen, multi, no_grad, maker
    return made
