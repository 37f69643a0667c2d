"""`FunctionalBackend`: the base class of backends whose arrays are values, which cannot be written and have no strides.

Its tensors hold parts of memories (`functional_arrays`). What Turnout asks of a `TensorBackend` is answered here, by operations
on values, which a derived class defines.
"""

from __future__ import annotations

from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from turnout.config.lock import new_lock
from turnout.errors import RegistrationError
from turnout.operators.kernels import ARRAY, Kernel
from turnout_aten.backend import overlap
from turnout_aten.backend.functional_arrays import FunctionalArray, Memory, RetypedMemory
from turnout_aten.backend.optional import missing
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.errors import backends as errors
from turnout_aten.shapes.extents import contiguous_strides, is_dense, reach_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.devices import Device
    from turnout.dtypes import DType
    from turnout.operators import Operator

    Ints = tuple[int, ...]
    Slices = tuple[slice, ...]


class FunctionalBackend(TensorBackend):
    """The base class of backends whose arrays are values.

    To use it: derive, set the class attributes, implement the methods that raise here, say `functional_only = true` in the
    manifest, and register the table of rows with `register_functional_kernels`. A value is an array of your library with an
    attribute `shape`. None of the methods may change one.

    `random_bits`, `item` and `reinterpreted` may wait: until they are there, the installed backend of lowest rank does the first
    two on the host, and `x.view(dtype)` is an error.
    """

    array_type = FunctionalArray
    memory_type: type[Memory] = Memory  # a class derived from it sees each new value
    traced: Any = ()  # classes of values without elements, of a program that your library traces: nothing keeps one
    is_functional = True
    keeps_answers = True
    raw_strides = attrgetter("strides")
    row_major = attrgetter("is_row_major")

    def __init__(self) -> None:
        self.writing = new_lock()  # held while a part of a memory is written

    # ---- values: what a derived class defines

    def full(self, shape: Ints, dtype: DType, device: Device, number: Any) -> Any:
        """A value in which every element is this Python number. Raises DTypeError for a dtype that the device does not have."""
        raise missing(self, "full")

    def dtype_of_value(self, value: Any) -> DType:
        """The type of a value's elements."""
        raise missing(self, "dtype_of_value")

    def as_value(self, made: Any) -> Any:
        """What a row returned, as a value, if it is a scalar of your library. By default it is one already."""
        return made

    def device_of_value(self, value: Any) -> Device:
        """Where a value is that a row or another library made."""
        return self.current_device()

    def converted(self, value: Any, dtype: DType) -> Any:
        """A value with its elements in another dtype, as `Tensor.to` converts them."""
        raise missing(self, "converted")

    def reshaped(self, value: Any, shape: Ints) -> Any:
        """The elements in row-major order in another shape."""
        raise missing(self, "reshaped")

    def permuted(self, value: Any, order: Ints) -> Any:
        """The dims in another order: dim i of the result is dim `order[i]`."""
        raise missing(self, "permuted")

    def sliced(self, value: Any, index: Slices) -> Any:
        """`value[index]`, where `index` has a slice for each dim, with a start, a stop and a positive step."""
        raise missing(self, "sliced")

    def assigned(self, value: Any, index: Slices, part: Any) -> Any:
        """The value with `part`, which has the shape of `sliced(value, index)`, in that place."""
        raise missing(self, "assigned")

    def repeated(self, value: Any, shape: Ints) -> Any:
        """A value whose dims of length 1 are repeated to this shape, which has as many dims."""
        raise missing(self, "repeated")

    def gathered(self, flat: Any, shape: Ints, strides: Ints, offset: int) -> Any:
        """The elements of a value of 1 dim at `positions(shape, strides, offset)`, in this shape."""
        raise missing(self, "gathered")

    def scattered(self, flat: Any, shape: Ints, strides: Ints, offset: int, part: Any) -> Any:
        """A value of 1 dim with the elements of `part` at these positions. Of several for one position, the last counts."""
        raise missing(self, "scattered")

    def reinterpreted(self, value: Any, dtype: DType) -> Any:
        """A value of 1 dim whose bytes are those of `value`, in row-major order, as elements of another dtype."""
        raise missing(self, "reinterpreted")

    def value_to_host(self, value: Any) -> bytes | memoryview:
        """The elements in row-major order as host bytes, little-endian. Waits for what is not computed."""
        raise missing(self, "value_to_host")

    def value_from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> Any:
        """A value from such bytes."""
        raise missing(self, "value_from_host")

    # ---- arrays: what Turnout asks

    def array_of(self, value: Any, dtype: DType, device: Device) -> FunctionalArray:
        """A value as the array of a new tensor."""
        shape = tuple(value.shape)
        return FunctionalArray(self.memory_type(self, shape, dtype, device, value), shape, contiguous_strides(shape), 0, value)

    def as_array(self, value: Any, device: Device | None = None) -> FunctionalArray:
        value = self.as_value(value)
        return self.array_of(value, self.dtype_of_value(value), device or self.device_of_value(value))

    def check_dtype(self, dtype: DType) -> None:
        """Raise DTypeError for a dtype that the device does not have. By default it has all."""

    def empty(self, shape: Ints, dtype: DType, device: Device, strides: Ints | None = None) -> FunctionalArray:
        self.check_dtype(dtype)
        if strides is None or 0 in shape:
            return FunctionalArray(self.memory_type(self, shape, dtype, device), shape, contiguous_strides(shape))
        if is_dense(shape, strides):
            order = sorted((d for d, n in enumerate(shape) if n != 1), key=lambda d: -strides[d])
            laid_out = tuple([shape[d] for d in order])
        else:
            laid_out = (reach_of(shape, strides),)
        return FunctionalArray(self.memory_type(self, laid_out, dtype, device), shape, strides)

    def strided(self, root: FunctionalArray, shape: Ints, strides: Ints, offset: int) -> FunctionalArray:
        return FunctionalArray(root.memory, shape, strides, root.offset + offset)

    def strides(self, array: FunctionalArray) -> Ints:
        return array.strides

    def dtype_of(self, array: FunctionalArray) -> DType:
        return array.memory.dtype

    def device_of(self, array: FunctionalArray) -> Device:
        return array.memory.device

    def retyped(self, root: FunctionalArray, dtype: DType) -> FunctionalArray:
        self.check_dtype(dtype)
        memory = RetypedMemory(root.memory, dtype)
        return FunctionalArray(memory, memory.shape, (1,), root.offset * root.dtype.itemsize // dtype.itemsize)

    def storage_size(self, root: FunctionalArray) -> int:
        return prod(root.memory.shape) - root.offset

    def partly_overlap(self, a: FunctionalArray, b: FunctionalArray) -> bool:
        return a.memory is b.memory and overlap.partly_overlap(overlap.of_elements(a), overlap.of_elements(b))

    def spread(self, array: FunctionalArray, shape: Ints) -> FunctionalArray:
        single = (1,) * (len(shape) - len(array.shape)) + array.shape
        value = self.repeated(self.reshaped(array.value(), single), shape)
        return self.array_of(value, array.dtype, array.memory.device)

    def copy(self, target: FunctionalArray, source: FunctionalArray) -> None:
        value = source.value()
        target.write(value if source.dtype is target.dtype else self.converted(value, target.dtype))

    def fill(self, target: FunctionalArray, value: Any) -> None:
        target.write(self.full(target.shape, target.dtype, target.memory.device, value))

    def to_host(self, array: FunctionalArray) -> bytes | memoryview:
        return self.value_to_host(array.value())

    def from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> FunctionalArray:
        self.check_dtype(dtype)
        return self.array_of(self.value_from_host(data, shape, dtype, device), dtype, device)

    def bind_array_kernel(self, op: Operator, kernel: Kernel) -> Callable[..., Any] | None:
        """The wrapper of a custom operator's kernel, which takes and returns values."""
        if op.schema.is_mutable:
            raise RegistrationError(errors.kernel_would_write(op.qualified_name, self.name))

        def on_values(*args: Any, **kwargs: Any) -> Any:
            made = kernel.fn(*[values_in(a) for a in args], **{name: values_in(a) for name, a in kwargs.items()})
            return type(made)(map(self.as_array, made)) if isinstance(made, (tuple, list)) else self.as_array(made)

        return super().bind_array_kernel(op, Kernel(on_values, ARRAY, library=kernel.library, label=kernel.name))


def values_in(given: Any) -> Any:
    """An argument of a row with values in place of arrays, also inside lists."""
    if given.__class__ is FunctionalArray:
        return given.value()
    if isinstance(given, (list, tuple)):
        return [values_in(each) for each in given]
    return given
