"""`Storage`, shared by all tensors over the same memory, and `View`, the origin of a differentiable view."""

from __future__ import annotations

import weakref
from sys import getrefcount

from turnout.errors import AliasError
from turnout_aten.tensor.grad_mode import is_inference_mode_enabled
from turnout_aten.tensor.levels import GRAD, IMPERATIVE, VERSION_MASK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.operators import Operator
    from turnout_aten.tensor.tensor import Tensor

    Chain = tuple[tuple[Operator, tuple[Any, ...], int | None], ...]


OWN = "own"
UNCOUNTED = "uncounted"
RETYPED = "retyped"
APART = "apart"
ADOPTED = "adopted"


def _of_a_name() -> int:
    alone = object()
    return getrefcount(alone)


# What getrefcount says of an object that one local name has: 2, with its argument; 1 from Python 3.14 on, which lends that.
ONE_NAME = _of_a_name()


class Storage:
    """The root array, the version counter, and weak references to the views of a memory.

    It is not a tensor, so that a detached alias does not keep the graph of the original tensor alive.

    array  the array that views are made of
    kind   OWN        the memory and the version are its own
           UNCOUNTED  the memory of an inference tensor: writes are not counted
           RETYPED    the memory and the version of `of`, as elements of another dtype, for `view(dtype)`
           APART      the memory of `of`, with a version and views of its own, for `x.data`
           ADOPTED    the memory of `of`, taken over by another tensor. The version is `ahead` of that of `of`: a node that saved
                      the tensor before sees another version; a node that saved the other tensor sees writes through this one
    of     the storage that owns the memory or counts its writes; None where this one does
    ver    the version; None where it is not in this field: `version()` knows it, and `count()` counts a write
    views  the views of the memory
    """

    __slots__ = ("ahead", "array", "kind", "of", "ver", "views")
    ahead: int  # of the kind ADOPTED alone

    def __init__(self, array: Any, ver: int) -> None:
        self.array = array
        self.kind = OWN
        self.of: Storage | None = None
        self.ver: int | None = ver
        self.views: list[weakref.ref[Tensor]] = []

    def retyped(self, array: Any) -> Storage:
        """This memory as `array`, which has elements of another dtype."""
        return self._sharing(array, RETYPED, self.counter)

    def apart(self) -> Storage:
        """This memory with a version and views of its own."""
        made = Storage(self.array, self.version() & ~VERSION_MASK)
        made.kind, made.of = APART, self.memory
        return made

    def adopted(self, ahead: int) -> Storage:
        """This memory for another tensor, whose version is so much ahead."""
        made = self._sharing(self.array, ADOPTED, self)
        made.ahead = ahead
        return made

    def _sharing(self, array: Any, kind: str, of: Storage) -> Storage:
        made = Storage(array, 0)
        made.kind, made.of, made.ver, made.views = kind, of, None, self.views
        return made

    @property
    def memory(self) -> Storage:
        """The storage that owns the memory."""
        return self if self.of is None else self.of.memory

    @property
    def counter(self) -> Storage:
        """The storage whose version and views these are; one that is ahead of another counts as another."""
        return self if self.of is None or self.kind is not RETYPED else self.of.counter

    def version(self) -> int:
        """The version. That of an inference tensor is 0 in `inference_mode`.

        Outside, reading it means that the tensor is about to be saved: raises AliasError. A functional gradient may save it; from
        then on its writes are counted.
        """
        if self.ver is not None:
            return self.ver
        if self.of is not None:
            return self.of.version() + (self.ahead if self.kind is ADOPTED else 0)
        if GRAD.get()[0] & ~IMPERATIVE:
            self.ver = 0
        elif not is_inference_mode_enabled():
            from turnout_aten.errors.tensors import inference_saved

            raise AliasError(inference_saved())
        return 0

    def count(self, writes: int = 1) -> None:
        """Count writes."""
        if self.ver is not None:
            self.ver += writes
        elif self.of is not None:
            self.of.count(writes)


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


def owner_of(tensor: Tensor) -> Tensor:
    """The tensor that owns the memory for autograd: the base of a view, any other tensor itself."""
    return tensor if tensor.view_of is None else tensor.view_of.base


def view_record(base: Tensor, chain: Chain, seen: int, multi: bool, no_grad: bool, maker: str = "") -> View:
    """A `View` of these fields."""
    made = View()
    made.base, made.chain, made.seen, made.multi, made.no_grad, made.maker = base, chain, seen, multi, no_grad, maker
    return made
