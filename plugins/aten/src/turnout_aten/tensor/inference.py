"""Inference tensors: tensors made in `inference_mode`, without versions and never part of a gradient.

Inside the mode the key Inference is included, above Autograd. Every call passes through this module, continues without Autograd,
and its new tensors get the key and storages of the kind UNCOUNTED, which raise when the version is read. Saving a tensor
for backward always reads the version, so the check adds no cost. Outside the mode the key on the tensors brings calls here, and
writes are refused before anything is written.

Functional gradients ignore the mode: while one of their levels records, the mode counts as off. Inference tensors can then be
saved, but not written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import AliasError
from turnout.keys import IMPLICIT, KEYS
from turnout.operators.kernels import INTERNAL, Kernel
from turnout.operators.values import tensors_in
from turnout.state import BELOW_AUTOGRAD, DISPATCH
from turnout_aten.errors import tensors as texts
from turnout_aten.tensor.grad_mode import FORWARD, INFERENCE
from turnout_aten.tensor.levels import GRAD, IMPERATIVE
from turnout_aten.tensor.storage import UNCOUNTED, Storage
from turnout_aten.tensor.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator

_BELOW = ~INFERENCE
_UNRECORDED = BELOW_AUTOGRAD & _BELOW
_NO_VIEWS = _BELOW & ~KEYS.bit("ADInplaceOrView")


def _inside() -> bool:
    """Whether calls make inference tensors now."""
    return bool(DISPATCH.get()[0] & INFERENCE) and not GRAD.get()[0] & ~IMPERATIVE


def mark(tensor: Tensor) -> Tensor:
    """Turn a new tensor, which shares no memory with a normal one, into an inference tensor; returns it."""
    if tensor.storage is None:  # nobody else has it yet
        tensor.offset = 0
        tensor.storage = Storage(tensor.array, 0)
    storage = tensor.storage.memory
    if storage.kind is not UNCOUNTED:
        storage.kind, storage.ver = UNCOUNTED, None
    tensor.keys |= INFERENCE
    return tensor


def made(tensor: Tensor) -> Tensor:
    """A tensor that was made without dispatch; inside the mode it becomes an inference tensor."""
    return mark(tensor) if DISPATCH.get()[0] & INFERENCE and _inside() else tensor


def at_inference(op: Operator) -> Any:
    mutated = tuple((i, a.name) for i, a in enumerate(op.schema.arguments) if a.is_write)
    fn = _writing(op, mutated) if mutated else _making(op)
    return Kernel(fn, INTERNAL, label=f"inference tensors of {op.qualified_name}")


def _making(op: Operator) -> Callable[..., Any]:
    cache = op.cache
    kernels = op.kernels
    is_view = op.schema.is_view
    takes_lists = any(a.type.is_tensor_list for a in op.schema.arguments)

    def make_inference(ks: int, *args: Any) -> Any:
        inside = DISPATCH.get()[0] & INFERENCE and not GRAD.get()[0] & ~IMPERATIVE
        if IMPLICIT in kernels:
            # A composite kernel stands at Autograd. Below that key, its writes and views would be counted twice: here and in its
            # calls, which mark what they make.
            ks &= _BELOW
            result = (cache.get(ks) or op.resolve(ks))(ks, *args)
            if result.__class__ is Tensor and result.keys & INFERENCE:
                return result
        else:
            ks &= _UNRECORDED if inside else _BELOW
            if is_view and any(map(_is_inference, tensors_in(args) if takes_lists else args)):
                ks &= _NO_VIEWS  # a view has no version to follow
            result = (cache.get(ks) or op.resolve(ks))(ks, *args)
        if result.__class__ is Tensor and not is_view:
            if result.keys & INFERENCE:
                return result
            if result.storage is None and not takes_lists:  # it shares no memory, so it is new or an argument
                for given in args:
                    if given is result:
                        return result
                return mark(result) if inside else result
        results = (result,) if isinstance(result, Tensor) else result if isinstance(result, (tuple, list)) else ()
        for tensor in results:
            if isinstance(tensor, Tensor):
                _mark_result(tensor, args, inside)
                if is_view and tensor.view_of is not None:
                    tensor.keys |= tensor.view_of.base.keys & FORWARD  # outside the mode it has its base's tangent
        return result

    return make_inference


def _is_inference(value: Any) -> bool:
    """Whether a value is an inference tensor: generators and tensors of other packages are not."""
    return isinstance(value, Tensor) and value.is_inference()


def _mark_result(tensor: Tensor, args: tuple[Any, ...], inside: int) -> None:
    storage = tensor.storage
    if storage is not None and storage.memory.kind is UNCOUNTED:
        tensor.keys |= INFERENCE
    elif inside and not _is_shared(tensor, args):
        mark(tensor)


def _is_shared(tensor: Tensor, args: tuple[Any, ...]) -> bool:
    """Whether a result is an argument, or shares the memory of one."""
    storage = tensor.storage
    if storage is not None and args and args[0].__class__ is Tensor and args[0].storage is storage:  # what most views do
        return True
    return any(tensor is given or tensor.is_alias_of(given) for given in tensors_in(args))


def _writing(op: Operator, mutated: tuple[tuple[int, str], ...]) -> Callable[..., Any]:
    cache = op.cache
    kernels = op.kernels

    def write_inference(ks: int, *args: Any) -> Any:
        inside = _inside()
        if not inside:
            for i, name in mutated:
                if any(map(_is_inference, tensors_in((args[i],)))):
                    raise AliasError(texts.inference_written(op.qualified_name, name))
        ks &= _UNRECORDED if inside and IMPLICIT not in kernels else _BELOW
        call = cache.get(ks) or op.resolve(ks)
        return call(ks, *args)

    return write_inference
