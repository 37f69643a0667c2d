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
    is_owner = True  # of its memory

    def __init__(self, array: Any, ver: int) -> None:
        self.array = array
        self.ver: int = ver
        self.views: list[weakref.ref[Tensor]] = []

    @property
    def memory(self) -> Storage:
        """The storage that owns the memory: this one."""
        return self

    @property
    def counter(self) -> Storage:
        """The storage that has the version counter and the views: this one."""
        return self


class SharingStorage(Storage):
    """Memory that another storage owns. Tensors whose storages differ may share it: the storages' `memory` is compared."""

    __slots__ = ("_of",)
    is_owner = False
    _of: Storage

    @property
    def memory(self) -> Storage:
        return self._of.memory


class RetypedStorage(SharingStorage):
    """A storage's memory as elements of another dtype, for `view(dtype)`. It shares the version counter."""

    __slots__ = ()

    def __init__(self, array: Any, of: Storage) -> None:
        self.array = array
        self._of = of

    @property
    def counter(self) -> Storage:
        return self._of.counter

    @property
    def ver(self) -> int:
        return self._of.ver

    @ver.setter
    def ver(self, value: int) -> None:
        self._of.ver = value

    @property
    def views(self) -> list[weakref.ref[Tensor]]:
        return self._of.views

    @views.setter
    def views(self, value: list[weakref.ref[Tensor]]) -> None:
        self._of.views = value


class DataStorage(SharingStorage):
    """A storage's memory for `x.data`: with a version counter and views of its own."""

    __slots__ = ()

    def __init__(self, of: Storage, ver: int) -> None:
        super().__init__(of.array, ver)
        self._of = of.memory


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
