"""What a tensor holds on a device whose arrays are values: a part of a memory, and the memory as a series of values."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from turnout_aten.backend.paths import path_to
from turnout_aten.shapes.extents import contiguous_strides

if TYPE_CHECKING:
    from turnout.devices import Device
    from turnout.dtypes import DType
    from turnout_aten.backend.functional_backend import FunctionalBackend

    Ints = tuple[int, ...]


class Memory:
    """One memory: a value of the backend, which each write replaces.

    shape       of the value; its elements count as row-major
    generation  how often it was written
    """

    __slots__ = ("_value", "backend", "device", "dtype", "generation", "shape")

    def __init__(self, backend: FunctionalBackend, shape: Ints, dtype: DType, device: Device, value: Any = None) -> None:
        self.backend = backend
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.generation = 0
        self._value = value

    def value(self) -> Any:
        """The value now. Memory that was never written holds zeros from the first time that it is read."""
        found = self._value
        if found is None:
            with self.backend.writing:
                found = self._value
                if found is None:
                    found = self.backend.full(self.shape, self.dtype, self.device, 0)
                    if not isinstance(found, self.backend.traced):
                        self._value = found
        return found

    def replace(self, value: Any) -> None:
        """Take another value for all of it. The generation rises last, so that no reader keeps an old value for the new one."""
        self._value = value
        self.generation += 1


class RetypedMemory:
    """Another memory's elements, in row-major order, as elements of another dtype; what is left over at the end is not seen."""

    __slots__ = ("_read", "_value", "backend", "device", "dtype", "elements", "shape")

    def __init__(self, elements: Memory | RetypedMemory, dtype: DType) -> None:
        self.backend: FunctionalBackend = elements.backend
        self.shape: Ints = (prod(elements.shape) * elements.dtype.itemsize // dtype.itemsize,)
        self.dtype: DType = dtype
        self.device: Device = elements.device
        self.elements = elements
        self._value: Any = None
        self._read = -1

    @property
    def generation(self) -> int:
        """How often the memory was written."""
        return self.elements.generation

    def value(self) -> Any:
        """The value now."""
        generation, found = self.generation, self._value
        if found is None or self._read != generation:
            found = self.backend.reinterpreted(self._covered(), self.dtype)
            if not isinstance(found, self.backend.traced):
                self._value, self._read = found, generation
        return found

    def replace(self, value: Any) -> None:
        """Take another value for all that is seen."""
        elements = self.elements
        bits = self.backend.reinterpreted(value, elements.dtype)
        seen, size = bits.shape[0], prod(elements.shape)
        if seen < size:
            bits = self.backend.assigned(self._flat(), (slice(0, seen, 1),), bits)
        elements.replace(self.backend.reshaped(bits, elements.shape))

    def _flat(self) -> Any:
        return self.backend.reshaped(self.elements.value(), (prod(self.elements.shape),))

    def _covered(self) -> Any:
        flat = self._flat()
        seen = self.shape[0] * self.dtype.itemsize // self.elements.dtype.itemsize
        return flat if seen == flat.shape[0] else self.backend.sliced(flat, (slice(0, seen, 1),))


class FunctionalArray:
    """A part of a memory: what a tensor has for an array. Strides and offset count elements of the memory.

    dtype        the type of the elements
    ndim, size   how many dims and elements there are
    value        its elements, if they are those of the memory's first value
    """

    __slots__ = ("_generation", "_value", "dtype", "memory", "ndim", "offset", "shape", "size", "strides")

    def __init__(self, memory: Memory | RetypedMemory, shape: Ints, strides: Ints, offset: int = 0, value: Any = None) -> None:
        self.memory = memory
        self.dtype = memory.dtype
        self.shape = shape
        self.ndim = len(shape)
        self.size = prod(shape)
        self.strides = strides
        self.offset = offset
        self._generation = -1 if value is None else 0
        self._value = value

    @property
    def is_row_major(self) -> bool:
        """Whether its elements lie in the memory in their order, without gaps. A dim of length 1 may have any stride."""
        if self.strides == contiguous_strides(self.shape):
            return True
        long = [d for d, n in enumerate(self.shape) if n != 1]
        lengths = tuple([self.shape[d] for d in long])
        return tuple([self.strides[d] for d in long]) == contiguous_strides(lengths)

    def reshape(self, shape: Ints) -> FunctionalArray:
        """The same part of the memory, which is row-major, in another shape."""
        return FunctionalArray(self.memory, shape, contiguous_strides(shape), self.offset)

    def value(self) -> Any:
        """The elements, as an array of the backend's own. It is made anew if the memory has been written."""
        memory = self.memory
        generation = memory.generation
        if self._generation == generation:
            return self._value
        found = self._read(memory.value())
        if not isinstance(found, memory.backend.traced):
            self._value, self._generation = found, generation
        return found

    def write(self, value: Any) -> None:
        """Put a value of this shape and dtype into the memory."""
        if 0 in self.shape:
            return
        memory = self.memory
        with memory.backend.writing:  # other parts may be written at the same time
            memory.replace(value if self.is_whole else self._placed(memory.value(), value))

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the memory, as it lies there."""
        return not self.offset and self.shape == self.memory.shape and self.strides == contiguous_strides(self.shape)

    def _read(self, value: Any) -> Any:
        backend, shape = self.memory.backend, self.shape
        if 0 in shape:
            return backend.full(shape, self.memory.dtype, self.memory.device, 0)
        path = path_to(self.memory.shape, shape, self.strides, self.offset)
        if path is None:
            flat = backend.reshaped(value, (prod(self.memory.shape),))
            return backend.gathered(flat, shape, self.strides, self.offset)
        value = _in_shape(backend, value, path.grid)
        if path.cuts is not None:
            value = backend.sliced(value, path.cuts)
        if path.order != tuple(range(len(path.order))):
            value = backend.permuted(value, path.order)
        value = _in_shape(backend, value, path.single)
        return value if path.single == shape else backend.repeated(value, shape)

    def _placed(self, value: Any, new: Any) -> Any:
        """The memory's value with another one where this part is."""
        memory, shape, strides = self.memory, self.shape, self.strides
        backend = memory.backend
        if any(not s and n > 1 for n, s in zip(shape, strides, strict=True)):  # the last of the repeated elements stays
            new = backend.sliced(new, tuple([slice(0 if s else n - 1, n, 1) for n, s in zip(shape, strides, strict=True)]))
            shape = tuple([n if s else 1 for n, s in zip(shape, strides, strict=True)])
        path = path_to(memory.shape, shape, strides, self.offset)
        if path is None:
            flat = backend.reshaped(value, (prod(memory.shape),))
            return _in_shape(backend, backend.scattered(flat, shape, strides, self.offset, new), memory.shape)
        new = _in_shape(backend, new, path.permuted)
        if path.order != tuple(range(len(path.order))):
            new = backend.permuted(new, tuple([path.order.index(d) for d in range(len(path.order))]))
        if path.cuts is not None:
            new = backend.assigned(_in_shape(backend, value, path.grid), path.cuts, new)
        return _in_shape(backend, new, memory.shape)


def _in_shape(backend: FunctionalBackend, value: Any, shape: Ints) -> Any:
    return value if tuple(value.shape) == shape else backend.reshaped(value, shape)
