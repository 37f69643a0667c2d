"""Copies of a tensor: copy, deepcopy, pickle.

deepcopy, pickle and files (`saving`) record a tensor as a storage (dtype, device, bytes) and its place in the storage. Tensors
that share a storage share the copy, and a tensor that occurs twice is one tensor in the copy. deepcopy keeps views of other
dtypes over the memory, too. The first two keep the class and the attributes of a subclass instance, and a tensor's role.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from turnout.dtypes import DType, dtype_named
from turnout.errors import AliasError, NoDataError
from turnout.operators.tracebacks import shortening
from turnout_aten.tensor.backend_keys import kept_keys, names_of, with_key
from turnout_aten.tensor.devices import device
from turnout_aten.tensor.grad_mode import tracked_levels
from turnout_aten.tensor.levels import CLOCK
from turnout_aten.tensor.reads import reads
from turnout_aten.tensor.roles import role_of, set_role
from turnout_aten.tensor.storage import Storage
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from turnout_aten.tensor.devices import TensorDevice

    Place = tuple[int, tuple[int, ...], tuple[int, ...]]


def place_of(tensor: Tensor) -> Place:
    """The place of a tensor in its storage: offset, shape, strides, in elements."""
    offset = tensor.offset if tensor.storage is not None else 0
    return offset, tensor.shape, tensor.stride()


def _root(tensor: Tensor) -> Any:
    return tensor.array if tensor.storage is None else tensor.storage.array


def flat_memory(tensor: Tensor) -> Any:
    """All of the storage's memory as one array of one dim."""
    return _flat(_root(tensor), tensor.device.backend)


def _flat(root: Any, backend: Any) -> Any:
    return backend.strided(root, (backend.storage_size(root),), (1,), 0)


def tensor_at(flat: Any, place: Place, where: TensorDevice, storage: Storage | None) -> Tensor:
    """A tensor at a place of a flat array. One that is all of its storage is the root of it, as if it had been made there."""
    offset, shape, strides = place
    # An empty slice may begin behind the end of its storage.
    made = wrap(where.backend.strided(flat, tuple(shape), tuple(strides), 0 if 0 in shape else offset), where)
    made.storage = storage
    made.offset = offset
    if (
        storage is not None
        and where.backend.has_values
        and made.numel() == where.backend.storage_size(flat)
        and made.is_contiguous()
    ):
        storage.array = made.array
    return made


# ---- instances of subclasses


def _state(tensor: Tensor) -> Any:
    """The state that a subclass adds to an instance, from its `__getstate__`; by default the attributes. None if empty."""
    state: Any = tensor.__getstate__()
    if type(tensor).__getstate__ is not object.__getstate__:
        return state
    attributes, slots = state
    own = {name: value for name, value in slots.items() if name not in Tensor.__slots__}
    return (attributes, own) if attributes or own else None


def _restore(tensor: Tensor, state: Any) -> None:
    """Restore the state that `_state` returned."""
    if state is None:
        return
    if hasattr(tensor, "__setstate__"):
        tensor.__setstate__(state)
        return
    attributes, slots = state
    for name, value in {**(attributes or {}), **slots}.items():
        setattr(tensor, name, value)


def shallow_copy(tensor: Tensor) -> Tensor:
    """Another tensor over the same memory, of the same class, with the same history and the same attributes."""
    made = _in_class(tensor.new_alias(tensor.array, tensor.storage_offset()), type(tensor))
    made.keys = kept_keys(made.keys, tensor.keys)
    made.set_gmask(tensor.gmask)
    if tensor.gmask:
        made.node = tensor.node
    if type(tensor) is not Tensor:
        _restore(made, _state(tensor))
    return made


def _in_class(plain: Tensor, cls: type[Tensor]) -> Tensor:
    if cls is Tensor:
        return plain
    from turnout_aten.tensor.subclasses import as_subclass

    return as_subclass(plain, cls)


# ---- deepcopy


@shortening
def deepcopy(tensor: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with the same values, gradient included; tensors that share memory share it in the copy.

    Raises AliasError for a tensor with history, or one that a functional transform tracks, because the graph is not copied.
    """
    found = memo.get(id(tensor))
    if found is not None:
        return found
    reads("deepcopy()")
    if not tensor.is_leaf or tracked_levels(tensor) & ~1:
        raise AliasError("deepcopy: only leaves can be copied with their gradient state; use .detach() first")
    storage = _copied_storage(tensor, memo)
    made = _in_class(tensor_at(storage.array, place_of(tensor), tensor.device, storage), type(tensor))
    memo[id(tensor)] = made
    made.keys = kept_keys(made.keys, tensor.keys)
    made.set_gmask(tensor.gmask & 1)
    if role := role_of(tensor):
        set_role(made, role)
    if type(tensor) is not Tensor:
        _restore(made, copy.deepcopy(_state(tensor), memo))
    if tensor.grad is not None:
        made.grad = deepcopy(tensor.grad, memo)
    return made


def _copied_storage(tensor: Tensor, memo: dict[Any, Any]) -> Storage:
    """The copy of the memory under a tensor, one for all tensors over it, as elements of the tensor's dtype."""
    backend, memory = tensor.device.backend, None if tensor.storage is None else tensor.storage.memory
    root = tensor.array if memory is None else memory.array
    key: tuple[Any, ...] = "storage", id(tensor if memory is None else root)
    copied = memo.get(key)
    if copied is None:
        flat = _flat(root, backend)
        target = backend.empty(flat.shape, backend.dtype_of(flat), tensor.device)
        backend.copy(target, flat)
        copied = memo[key] = Storage(target, CLOCK.epoch)
    if backend.dtype_of(copied.array) is not tensor.dtype:
        key = *key, tensor.dtype
        if key not in memo:
            memo[key] = copied.retyped(backend.retyped(copied.array, tensor.dtype))
        copied = memo[key]
    return copied


# ---- pickle


class Memory:
    """A storage as pickle sees it: one object for all tensors that share it, so that pickle's memo keeps them together.

    It holds a reference to the storage, so that the id is not reused while the record lives.
    """

    __slots__ = ("__weakref__", "device", "dtype", "flat", "owner")

    def __init__(self, flat: Any, dtype: DType, where: TensorDevice, owner: Storage | None) -> None:
        self.flat = flat
        self.dtype = dtype
        self.device = where
        self.owner = owner

    def __reduce__(self) -> tuple[Any, ...]:
        backend = self.device.backend
        try:
            data = bytes(backend.to_host(self.flat))
        except NoDataError:
            data = None
        return (_read_memory, (str(self.device), self.dtype.name, self.flat.shape[0], data))


_MEMORIES: WeakValueDictionary[int, Memory] = WeakValueDictionary()


def _memory(tensor: Tensor) -> Memory:
    reads("pickle")
    storage = tensor.storage
    found = None if storage is None else _MEMORIES.get(id(storage.array))
    if found is None:
        found = Memory(flat_memory(tensor), tensor.dtype, tensor.device, storage)
        if storage is not None:
            _MEMORIES[id(storage.array)] = found
    return found


def reduce(tensor: Tensor, protocol: Any = None) -> tuple[Any, ...]:
    """The parts that pickle stores. A tensor with history comes back as a leaf that requires a gradient, without `.grad`."""
    made = (_memory(tensor), place_of(tensor), bool(tensor.gmask & 1))
    cls, names, role = type(tensor), names_of(tensor), role_of(tensor)
    if cls is Tensor and not names and not role:
        return _read_tensor, made
    return _read_tensor, (*made, cls, names, role), None if cls is Tensor else _state(tensor)


def _read_memory(place: str, dtype: str, size: int, data: bytes | None) -> Memory:
    where, kind = device(place), dtype_named(dtype)
    backend = where.backend
    flat = backend.empty((size,), kind, where) if data is None else backend.from_host(data, (size,), kind, where)
    return Memory(flat, kind, where, Storage(flat, CLOCK.epoch))


def _read_tensor(
    memory: Memory, place: Place, requires_grad: bool, cls: type[Tensor] = Tensor, names: tuple[str, ...] = (), role: str = ""
) -> Tensor:
    plain = tensor_at(memory.flat, place, memory.device, memory.owner)
    for name in names:
        plain = with_key(plain, name)
    made = _in_class(plain, cls)
    if role:
        set_role(made, role)
    return made.requires_grad_() if requires_grad else made
