"""`FunctionCtx`: what the forward of a `Function` leaves for its backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from turnout.errors import CallError
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.nodes import Node
from turnout_autograd.engine.saved_tensors import FREED, Kept, check_saved
from turnout_autograd.hooks.packing import Packed

if TYPE_CHECKING:
    from turnout_autograd.function.nodes import FunctionNode


class FunctionCtx:
    """What forward leaves for backward. Any attribute may be set on it.

    needs_input_grad  per argument of forward, whether its gradient is wanted
    """

    __unwrapped__ = ("__init__",)

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self._to_save: tuple[Tensor | None, ...] = ()
        self._for_forward: tuple[Tensor | None, ...] = ()
        self._in_jvp = False
        self._saved: list[Any] = []
        self._dirty: tuple[Tensor, ...] = ()
        self._constant: tuple[Tensor, ...] = ()
        self._materialize = True
        self._node: Callable[[], FunctionNode | None] | None = None  # weak: the node holds its ctx

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save inputs, outputs or intermediate tensors; backward reads them as `ctx.saved_tensors`."""
        _check_tensors("save_for_backward", [t for t in tensors if t is not None])
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`, which reads them as `ctx.saved_tensors`."""
        _check_tensors("save_for_forward", [t for t in tensors if t is not None])
        self._for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved for the method that reads it.

        Raises AliasError for a tensor that was changed in place, GradientError when backward freed it, and for an output of
        forward whose graph no longer exists.
        """
        if self._in_jvp:
            return self._for_forward or self._to_save
        if self._node is None:
            return self._to_save
        node = self._node() or _GONE
        if self._saved is FREED:
            raise errors.GradientError(errors.passes.freed(node.op_name))
        return tuple([_unpack(node, i, saved) for i, saved in enumerate(self._saved)])

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Inputs that forward wrote into and returns."""
        _check_tensors("mark_dirty", tensors)
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Outputs without a gradient."""
        _check_tensors("mark_non_differentiable", tensors)
        self._constant = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros (the default) or None for unused outputs."""
        if not isinstance(value, bool):
            raise CallError(errors.functions.function_flag("set_materialize_grads", value))
        self._materialize = value


def _check_tensors(method: str, values: Sequence[Any]) -> None:
    """Raise CallError for anything but tensors."""
    for i, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise CallError(errors.functions.function_marks(method, i, value))


class GoneNode(Node):
    """Stands for the node of a ctx that somebody kept longer than the graph."""

    __slots__ = ()
    op_name = "autograd.Function"


_GONE = GoneNode()


def _unpack(node: Node, i: int, saved: Any) -> Tensor | None:
    if saved is None:
        return None
    if isinstance(saved, Packed):
        saved = saved.unpacked(node)
        if isinstance(saved, Tensor):
            return saved
    if isinstance(saved, Kept):
        if node is _GONE:
            raise errors.GradientError(errors.functions.saved_output_gone(i))
        return saved.tensor(node, f"saved_tensors[{i}]")
    tensor, version = saved
    return check_saved(node, f"saved_tensors[{i}]", tensor, version)
