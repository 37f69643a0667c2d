"""A tensor gets other memory in place of a copy, where nobody can tell."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

from turnout_aten.tensor.storage import ONE_NAME, OWN

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor


def is_alone(tensor: Tensor) -> bool:
    """Whether the memory of a tensor is seen by nothing else: no other tensor, no array and no buffer of the program.

    False also where that cannot be told, and for a view.

    Arguments:
        tensor: a tensor with memory
    """
    storage, references = tensor.storage, 1
    if tensor.view_of is not None:
        return False
    if storage is not None:
        if storage.kind is not OWN or getrefcount(storage) > ONE_NAME + 1 or storage.array is not tensor.array:
            return False
        references = 2
    return tensor.device.backend.held_alone(tensor.array, references)


def take_over(tensor: Tensor, value: Tensor) -> bool:
    """Write `value` into a tensor of its shape and dtype by giving the tensor its memory: nothing is copied.

    False, and nothing is done, where the memory of the tensor may be seen by others: other tensors, or arrays of the program; or
    where the strides differ.

    Arguments:
        tensor: what is written; its version grows
        value: a tensor that nobody else holds, and that is not used any more
    """
    raw = tensor.device.backend.raw_strides
    differs = tensor.stride() != value.stride() if raw is None else raw(tensor.array) != raw(value.array)
    if value.storage is not None or differs or not is_alone(tensor):
        return False
    _put(tensor, value.array)
    tensor.bump_version()
    return True


def move(tensor: Tensor, array: Any, version: int) -> bool:
    """Let a tensor lie over another array, which has its values.

    False, and the tensor stays where it is, if others may see its memory, or if it was written.

    Arguments:
        tensor: what is moved; its version stays
        array: an array of the tensor's backend, shape, strides and dtype, which nobody else holds
        version: the version of the tensor before its values were read
    """
    if not is_alone(tensor) or tensor.version() != version:
        return False
    before = tensor.array
    _put(tensor, array)
    if getrefcount(before) > ONE_NAME or tensor.version() != version:  # another thread writes, or wrote, into the old memory
        _put(tensor, before)
        return False
    return True


def _put(tensor: Tensor, array: Any) -> None:
    tensor.array = array
    if tensor.storage is not None:
        tensor.storage.array = array
