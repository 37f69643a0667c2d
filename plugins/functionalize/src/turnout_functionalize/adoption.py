"""Tensors from outside: arguments of the function, and tensors that it captured and views or writes.

A tensor from outside that is only read is its own value. One that the function has as an argument, views or writes is adopted:
the region has a memory for it, and for all other tensors over that memory. What the function wrote is copied back at the end.
"""

from __future__ import annotations

from typing import Any

from turnout.registry import REGISTRY
from turnout_aten.tensor.storage import owner_of
from turnout_aten.tensor.tensor import Tensor
from turnout_functionalize.memories import Link, Memory, Part
from turnout_functionalize.regions import Region
from turnout_functionalize.values import FunctionalTensor, functional_tensor


def adopt(tensor: Tensor, region: Region) -> Tensor:
    """The tensor of the function for a tensor from outside."""
    storage = tensor.shared_storage().memory
    memory = region.adopted.get(id(storage))
    if memory is None:
        original = owner_of(tensor)
        memory = region.adopted[id(storage)] = Memory(original, region, original)
    value = None if memory.generation else tensor
    return functional_tensor(Part(memory, _links(tensor, memory.original), value, handle=tensor))


def _links(tensor: Tensor, original: Any) -> tuple[Link, ...]:
    """How a tensor comes from the one that stands for its memory."""
    if tensor is original:
        return ()
    view = tensor.view_of
    if view is not None and view.base is original:
        return tuple([Link(op, args, index, not view.no_grad) for op, args, index in view.chain])
    # It shares the memory, but not the history.
    detach = Link(REGISTRY.find("aten::detach"), (), None, True)
    shape, strides, offset = tensor.shape, tensor.stride(), tensor.storage_offset()
    if (shape, strides, offset) == (original.shape, original.stride(), original.storage_offset()):
        return (detach,)
    return (Link(REGISTRY.find("aten::as_strided"), (shape, strides, offset), None, True), detach)


def is_adopted(tensor: Tensor, region: Region) -> bool:
    """Whether the region has a memory for a tensor from outside."""
    return tensor.storage is not None and id(tensor.storage.memory) in region.adopted


def value_of(value: Any, region: Region) -> Any:
    """The value of an argument: below Functionalize, tensors of the function are their values."""
    if isinstance(value, Tensor):
        if isinstance(value, FunctionalTensor):
            return value.array.value()
        if region.adopted and value.storage is not None:
            memory = region.adopted.get(id(value.storage.memory))
            if memory is not None and memory.generation:
                return adopt(value, region).array.value()
        return value
    if isinstance(value, list):
        return [value_of(each, region) for each in value]
    if isinstance(value, tuple):
        return tuple([value_of(each, region) for each in value])
    return value


def written(value: Any, region: Region) -> Any:
    """An argument that is viewed or written, as a tensor of the function, or a list of them."""
    if isinstance(value, (list, tuple)):
        return [written(each, region) for each in value]
    if isinstance(value, Tensor) and not isinstance(value, FunctionalTensor):
        return adopt(value, region)
    return value
