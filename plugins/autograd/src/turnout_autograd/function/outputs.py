"""What the caller of a `Function` gets: outputs with a history, including views and written inputs; and what is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from turnout.dtypes import FLOAT, DType
from turnout.registry import find_operator
from turnout_aten.tensor.storage import View, view_record
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.nodes import Output, attach, start
from turnout_autograd.engine.recorded_levels import recording
from turnout_autograd.engine.saved_tensors import Kept
from turnout_autograd.function.nodes import ViewWrite
from turnout_autograd.hooks.packing import HOOKS, packed
from turnout_autograd.recording.inplace_writes import admit, rebase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_autograd.function.context import FunctionCtx
    from turnout_autograd.function.function import Function
    from turnout_autograd.function.nodes import FunctionNode

_alias = find_operator("aten::alias").stub


def as_returned(output: Any, made: list[Any]) -> Any:
    """The outputs in the form in which forward returned them."""
    if not isinstance(output, (tuple, list)):
        return made[0]
    return type(output)(made) if type(output) in (tuple, list) else tuple(made)


def unrecorded(cls: type[Function], value: Any, args: tuple[Any, ...], dirty: tuple[Tensor, ...]) -> Any:
    """An output of a call that is not recorded: without history, and no input itself but one that forward wrote into."""
    if not isinstance(value, Tensor) or _place(dirty, value) >= 0:
        return value
    if value.gmask:
        return value.detach()
    if _place(args, value) >= 0:
        value = recording(0, _alias, value)
        if value.view_of is not None:
            _hide_from_writes(cls, value, value.view_of)
    return value


def _hide_from_writes(cls: type[Function], value: Tensor, old: View) -> None:
    """Mark a view as one that the function made."""
    value.view_of = view_record(old.base, old.chain, value.version(), False, False, cls.__name__)


def attach_outputs(
    cls: type[Function], node: FunctionNode, ctx: FunctionCtx, args: tuple[Any, ...], outputs: Any, tracked: int
) -> list[Any]:
    """The outputs as the caller sees them."""
    made: list[Any] = []
    metas: list[tuple[tuple[int, ...], DType, Any] | None] = []
    for i, value in enumerate(outputs):
        if not isinstance(value, Tensor):
            made.append(value)
            metas.append(None)
            continue
        dtype = value.dtype
        metas.append((value.shape, dtype, value.device))
        dirty = _place(ctx._dirty, value) >= 0
        if _place(ctx._constant, value) >= 0 or dtype.category < FLOAT:
            made.append(value.detach() if value.gmask and not dirty else value)
        elif dirty:
            admit(cls.__name__, value, tracked)
            _rewritten(value, node, i, len(outputs), args, tracked)
            made.append(value)
        else:
            made.append(_fresh(cls, value, _place(args, value) >= 0, Output(node, i), tracked))
    node.outputs = metas
    node.count = len(outputs)
    return made


def _place(values: Sequence[Any], value: Any) -> int:
    """Which of them it is, or -1; `in` would compare tensors by their elements."""
    for i, each in enumerate(values):
        if each is value:
            return i
    return -1


def _fresh(cls: type[Function], value: Tensor, is_input: bool, output: Output, tracked: int) -> Tensor:
    if is_input or value.gmask:
        # An input returned as it came, or something that has a history already: another tensor over the same memory.
        source, value = value, value.new_alias(value.array, value.storage_offset())
        value.view_of = source.view_of or view_record(source, (), source.version(), False, False)
    if value.view_of is not None:
        _hide_from_writes(cls, value, value.view_of)
    attach(value, output, tracked)
    return value


def _rewritten(tensor: Tensor, node: FunctionNode, index: int, count: int, args: tuple[Any, ...], tracked: int) -> None:
    """An input that forward wrote into: the call is its history now, and its base's."""
    if tensor.view_of is None:
        tensor.set_gmask(tracked)
        tensor.node = Output(node, index)
        return
    if count > 1:
        raise errors.GradientError(errors.functions.function_wrote_view(node.op_name))
    write = ViewWrite()
    at = next(i for i, value in enumerate(args) if value is tensor)
    start(write, (node.edges[at], *node.edges[:at], *node.edges[at + 1 :]))
    write.inner = node
    write.at = at
    rebase(tensor, write, tracked)


def save(ctx: FunctionCtx, node: FunctionNode, outputs: Any, made: list[Any], tracked: int) -> None:
    saved: list[Any] = []
    for tensor in ctx._to_save:
        if tensor is None:
            saved.append(None)
            continue
        at = _place(made, tensor) if tensor.gmask else -1
        saved.append(Kept(tensor, tracked, at) if at >= 0 else (tensor, tensor.version()))
    hooks = HOOKS.get()
    if hooks:
        saved = [each and packed(node, each, *hooks[-1]) for each in saved]
    ctx._to_save = ctx._dirty = ctx._constant = ()  # outputs among them hold the node
    ctx._saved = saved
    ctx._node = ref(node)
