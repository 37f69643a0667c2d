"""Real tensors as fake ones: their views and aliases stay related, and each has one fake tensor in a mode."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import ref

from turnout.config.lock import new_lock
from turnout.errors import CallError
from turnout_aten.shapes.extents import contiguous_strides, wrap_dim
from turnout_aten.tensor.grad_mode import enable_grad, no_grad
from turnout_aten.tensor.inference import mark
from turnout_aten.tensor.levels import LEVELS
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_meta.backend import MetaArray
from turnout_meta.fakes import errors
from turnout_meta.fakes.devices import FakeDevice

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from turnout_meta.fakes.mode import FakeMode

    Ints = tuple[Any, ...]

_LOCK = new_lock()


class Conversions:
    """The fake tensors that a mode has made of real ones, while these live."""

    def __init__(self, mode: FakeMode) -> None:
        self._mode = mode
        self._made: dict[int, tuple[ref[Tensor], Tensor]] = {}

    def fake(self, tensor: Tensor, dynamic: Iterable[int] | None) -> Tensor:
        """The fake tensor of a real one."""
        if LEVELS.get():
            raise CallError(errors.inside_vmap())
        place = tensor.device
        if isinstance(place, FakeDevice):
            if place.backend.mode is not self._mode:
                raise CallError(errors.OTHER_MODE)
            return tensor
        with _LOCK:
            found = self._made.get(id(tensor))
            if found is None:
                made = self._convert(tensor, dynamic)
                key = id(tensor)
                self._made[key] = (ref(tensor, lambda _: self._made.pop(key, None)), made)
                return made
            return found[1]

    def _convert(self, tensor: Tensor, dynamic: Iterable[int] | None) -> Tensor:
        with no_grad():
            made = self._related(tensor)
            if made is None:
                made = self._unrelated(tensor, dynamic)
        if tensor.is_inference():
            return mark(made)
        if tensor.requires_grad and not made.requires_grad:
            made.requires_grad_()
        return made

    # ---- over the memory of a tensor that is converted

    def _related(self, tensor: Tensor) -> Tensor | None:
        view = tensor.view_of
        if view is not None and not tensor.is_inference():
            made = self.fake(view.base, None)
            with no_grad() if view.no_grad else enable_grad():
                for op, args, index in view.chain:
                    result = op.call_boxed((made, *args))
                    made = result if index is None else result[index]
            return made
        if tensor.storage is None:
            return None
        for other, fake in self._others(tensor):
            if other.storage is tensor.storage:
                root = fake.shared_storage()
                array = self._backend(tensor).strided(root.array, tensor.shape, tensor.stride(), tensor.storage_offset())
                return fake.new_alias(array, tensor.storage_offset())
        counter = tensor.storage.counter
        for other, fake in sorted(self._others(tensor), key=lambda pair: pair[0].shared_storage().counter is not counter):
            storage = fake.shared_storage()
            root = storage.memory.array
            array = root if root.dtype is tensor.dtype else self._backend(tensor).retyped(root, tensor.dtype)
            made = wrap(self._backend(tensor).strided(array, tensor.shape, tensor.stride(), tensor.storage_offset()), fake.device)
            made.storage, made.offset = storage.counter.retyped(array), tensor.storage_offset()
            if other.shared_storage().counter is not counter:
                made.count_apart()
            return made
        return None

    def _others(self, tensor: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """The converted tensors over the same memory, with their fake tensors."""
        for reference, fake in list(self._made.values()):
            other = reference()
            if other is not None and other.is_alias_of(tensor):
                yield other, fake

    def _backend(self, tensor: Tensor) -> Any:
        return self._mode.device(tensor.device).backend

    # ---- over memory of its own

    def _unrelated(self, tensor: Tensor, dynamic: Iterable[int] | None) -> Tensor:
        place = self._mode.device(tensor.device)
        shape, strides = self._sizes(tensor, dynamic)
        storage = tensor.storage
        if storage is None:
            return wrap(MetaArray(shape, tensor.dtype, strides), place)
        real: Any = tensor.device.backend
        root = MetaArray((real.storage_size(storage.array),), tensor.dtype, (1,))
        holder = wrap(root, place)
        return holder.new_alias(place.backend.strided(root, shape, strides, tensor.offset), tensor.offset)

    def _sizes(self, tensor: Tensor, dynamic: Iterable[int] | None) -> tuple[Ints, Ints]:
        """The shape and strides, with symbols for dynamic sizes."""
        shape, strides = tensor.shape, tensor.stride()
        if dynamic is None:
            dynamic = range(len(shape)) if self._mode.dynamic else ()
        chosen = {wrap_dim(d, len(shape)) for d in dynamic} if shape else set()
        if not any(shape[d] > 1 for d in chosen):
            return shape, strides
        made: list[Any] = list(shape)
        for d in sorted(chosen):
            if shape[d] > 1:
                made[d] = self._mode.sizes.backed(f"dim {d} of an input", shape[d])
        if strides == contiguous_strides(shape):
            return tuple(made), contiguous_strides(made)
        return tuple(made), self._strides(shape, strides, made)

    def _strides(self, shape: Ints, strides: Ints, sizes: list[Any]) -> Ints:
        """Strides that are products of inner sizes become products of the symbols; others stay numbers."""
        made = list(strides)
        order = sorted((d for d in range(len(shape)) if shape[d] > 1), key=lambda d: strides[d])
        for inner, outer in pairwise(order):
            if strides[outer] == strides[inner] * shape[inner]:
                made[outer] = made[inner] * sizes[inner]
        return tuple(made)
