"""Where a backward pass begins and which inputs it may be asked for: outputs and their gradients, checked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from turnout.dtypes import COMPLEX
from turnout.errors import CallError, DeviceError, ShapeError
from turnout.keys import KEYS
from turnout.plugins import replaceable
from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd import errors
from turnout_autograd.engine.gradient_edges import GradientEdge
from turnout_autograd.recording.views import refresh

# What stands for an output or an input.
Place = Tensor | GradientEdge
_BATCHED = KEYS.bit("Batched")


def places(name: str, what: str, given: Any) -> tuple[Any, ...]:
    """One tensor (or edge) or several as a tuple, tensors as those that have the history. Raises CallError for anything else."""
    if isinstance(given, (Tensor, GradientEdge)):
        given = (given,)
    try:
        found = tuple(given)
    except TypeError:
        found = (given,)
    for i, each in enumerate(found):
        if not isinstance(each, (Tensor, GradientEdge)):
            raise CallError(errors.passes.not_tensors(name, what, i, each))
    return tuple([each.history_owner() if isinstance(each, Tensor) else each for each in found])


@cache
@replaceable
def plain_root() -> Any:
    """What makes the root of one tensor without a gradient of its own: (tensor, levels) -> (edge, gradient), or None to have it
    made by the functions below. None without a plugin that can do so."""
    return None


def roots_of(outputs: tuple[Any, ...], given: Any, levels: int) -> list[tuple[Any, Tensor]]:
    """An edge and its gradient per output, which one of the levels must track."""
    if given is None:  # the usual backward(): 0.7 us of 1.8 less
        make = plain_root()
        root = make(outputs[0], levels) if make is not None and len(outputs) == 1 else None
        if root is not None:
            return [root]
        return [(_root_edge(tensor, levels), _root_gradient(tensor, None, i)) for i, tensor in enumerate(outputs)]
    grads = _as_many(given, len(outputs))
    return [(_root_edge(t, levels), _root_gradient(t, g, i)) for i, (t, g) in enumerate(zip(outputs, grads, strict=True))]


def _as_many(given: Any, count: int) -> tuple[Any, ...]:
    try:
        grads = (given,) if isinstance(given, Tensor) else tuple(given)
    except TypeError:
        grads = (given,)
    if len(grads) != count:
        for i, each in enumerate(grads):
            if not isinstance(each, Tensor) and each is not None:
                raise CallError(errors.passes.gradient_type(each, i))
        raise errors.GradientError(errors.passes.gradient_count(len(grads), count))
    return grads


def root_gradients(outputs: Sequence[Tensor], given: Any) -> list[Tensor]:
    """What is pushed into each output: what was given, checked, or 1."""
    grads = [None] * len(outputs) if given is None else _as_many(given, len(outputs))
    return [_root_gradient(t, g, i) for i, (t, g) in enumerate(zip(outputs, grads, strict=True))]


def _root_edge(tensor: Any, levels: int) -> Any:
    if tensor.__class__ is GradientEdge:
        return tensor.target
    if tensor.view_of is not None:
        refresh(tensor)
    if not tensor.gmask & levels:
        inside = tensor.keys & _BATCHED
        raise errors.GradientError(
            errors.passes.backward_inside_vmap() if inside else errors.passes.no_graph(tensor.requires_grad)
        )
    return tensor.node or tensor


def _root_gradient(tensor: Any, given: Tensor | None, index: int) -> Tensor:
    if tensor.__class__ is GradientEdge:
        tensor = tensor.stand_in()
        if tensor is None:
            if given is None:
                raise errors.GradientError(errors.passes.edge_unknown(index))
            return given
    if given is None:
        shape = tensor.array.shape
        if shape and tensor.numel() != 1:
            raise errors.GradientError(errors.passes.not_scalar(tensor))
        device = tensor.device
        backend = device.backend
        dtype = tensor.dtype
        if dtype.category == COMPLEX:
            raise errors.GradientError(errors.passes.not_real(tensor))
        if not backend.has_values:
            return aten.ones_like(tensor)  # a trace has no values to copy, and records how it is made
        # Not by an operator: it is a constant, and ones_like takes four times as long.
        if backend.new_array is not None and tensor.array.__class__ is backend.array_type:
            one = backend.new_array(shape, tensor.array.dtype)  # two frames less
            one[...] = 1
        else:
            one = backend.empty(shape, dtype, device)
            backend.fill(one, 1)
        return wrap(one, device)
    if not isinstance(given, Tensor):
        raise CallError(errors.passes.gradient_type(given, index))
    if given.shape != tensor.shape:
        raise ShapeError(errors.passes.gradient_shape(given, tensor, index))
    if given.device != tensor.device:
        raise DeviceError(errors.passes.gradient_device(given, tensor, index))
    if given.dtype is not tensor.dtype:
        if (given.dtype.category == COMPLEX) != (tensor.dtype.category == COMPLEX):
            raise errors.GradientError(errors.passes.gradient_kind(given, tensor, index))
        given = given.to(dtype=tensor.dtype)
    return given


def check_inputs(name: str, into: tuple[Any, ...], levels: int) -> None:
    if not into:
        raise errors.GradientError(errors.passes.no_inputs(name))
    for i, tensor in enumerate(into):
        if isinstance(tensor, GradientEdge):
            continue
        if tensor.view_of is not None:
            refresh(tensor)
        if not tensor.gmask & levels:
            inside = tensor.keys & _BATCHED
            raise errors.GradientError(errors.passes.backward_inside_vmap() if inside else errors.passes.input_untracked(name, i))
