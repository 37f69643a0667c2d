"""`TensorBackend`: the interface that a package implements so that a device can hold tensors. A dozen small methods on arrays.

A backend's arrays are opaque except for `array.shape`, a tuple of ints. Kernels are plain functions on arrays. The generated
wrappers (`turnout_aten.kernels`) unwrap tensors, call kernels, and wrap results. What only some define stands in `optional`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.devices import Device
from turnout.dtypes import uint64
from turnout_aten.backend.optional import Exchange, KernelCalls, OneStep, PinnedMemory, missing
from turnout_aten.tensor.devices import device as device_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turnout.dtypes import DType
    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout_aten.tensor.devices import TensorDevice, TensorMode
    from turnout_aten.tensor.random import Generator
    from turnout_aten.tensor.tensor import Tensor

    Ints = tuple[int, ...]
    OfValues = Callable[[list[Any]], list[Any]]


class TensorBackend(KernelCalls, OneStep, Exchange, PinnedMemory):
    """The base class of tensor backends.

    To use it: derive, set the class attributes, implement the methods that raise here, and register an instance with
    `Registrations.backend`.

    `random_bits`, `fill` and `item` may wait: until they are there, the installed backend of lowest rank does it on the host.

    keeps_answers   whether what shape functions answer is kept though there is no `new_array`: its arrays show `shape`,
                    `strides` and `dtype`
    array_type      the class of its arrays, required if kernels may allocate results (`Row(..., allocates=...)`)
    is_functional   its arrays cannot be written: set by `FunctionalBackend`
    has_values      False for arrays without elements: checks of values are left out
    fake_mode       the mode of a backend of fake tensors
    new_array       makes a row-major array of a shape and what `native_dtype` gives, wherever the call runs. None: `empty` does
                    that, and shape functions are asked at each call. Where it is NumPy's `empty`, arrays are also filled and
                    duplicated as NumPy does, without `fill` and `duplicate`
    guarded_array   the same on the current device, for what is made under the guard of a call. Only with `keeps_answers`
    zero_array      `new_array` with zeros in it. None: `fill` writes them
    native          dtype -> what `native_dtype` gives, where `new_array` or `guarded_array` is there
    dtypes          what an array has as `dtype` -> its dtype, for all that `dtype_of` knows. None: `dtype_of` is asked
    raw_strides     what an array says of its strides, in units of its own: arrays of one shape and dtype that say the same have
                    the same strides. None: `strides` is asked
    row_major       whether an array lies in memory row by row, without gaps. None: its strides are asked for
    view_array      (shape, native dtype, root, start and strides in bytes) -> an array over the memory of a row-major root. None:
                    `strided` does that
    joined          joins few arrays of one dtype along a dim, and raises where they do not fit. None: `cat` has an output
    read_number     reads the number of an array of one element, and raises for any other. None: `item` reads it. Only for memory
                    that is at hand: a device that computes later raises in a read what went wrong, and only once
    replays         name -> what makes a function from one: both take a list of values and return one, and the made one is faster
                    when it is called again with values of the same kind. A traced graph gives its replay to it
    generator_type  the class of its devices' default generators. None: `Generator`
    """

    array_type: type | None = None
    keeps_answers = False
    is_functional: bool = False
    has_values: bool = True
    fake_mode: TensorMode | None = None
    new_array: Callable[[Ints, Any], Any] | None = None
    guarded_array: Callable[[Ints, Any], Any] | None = None
    zero_array: Callable[[Ints, Any], Any] | None = None
    native: Mapping[DType, Any] = MappingProxyType({})
    dtypes: Mapping[Any, DType] | None = None
    raw_strides: Callable[[Any], Ints] | None = None
    row_major: Callable[[Any], bool] | None = None
    view_array: Callable[[Ints, Any, Any, int, Ints], Any] | None = None
    joined: Callable[[list[Any], int], Any] | None = None
    read_number: Callable[[Any], Any] | None = None
    replays: Mapping[str, Callable[[OfValues], OfValues]] = MappingProxyType({})
    generator_type: type[Generator] | None = None

    if TYPE_CHECKING:

        def resolve_device(self, wanted: Device) -> TensorDevice: ...

    def bind_array_kernel(self, op: Operator, kernel: Kernel) -> Callable[..., Any] | None:
        """The wrapper of a custom operator's kernel on arrays."""
        from turnout_aten.kernels.custom import bind_array_kernel

        return bind_array_kernel(op, kernel, self)

    def path_of(self, op: Operator, kernel: Kernel, ks: int, args: Sequence[Any]) -> str:
        """Which path serves a call of an array kernel: a question to its wrapper."""
        from turnout_aten.kernels.paths import path_of

        return path_of(op, kernel, self, ks, args)

    # ---- memory

    def empty(self, shape: Ints, dtype: DType, device: Device, strides: Ints | None = None) -> Any:
        """A new array, contiguous unless `strides` (in elements, without overlap) asks for another order."""
        raise missing(self, "empty")

    def strided(self, root: Any, shape: Ints, strides: Ints, offset: int) -> Any:
        """A view of `root`'s memory: shape, strides and offset in elements, the offset counted from root's first element."""
        raise missing(self, "strided")

    def strides(self, array: Any) -> Ints:
        """The strides in elements."""
        raise missing(self, "strides")

    def dtype_of(self, array: Any) -> DType:
        """The element type."""
        raise missing(self, "dtype_of")

    def retyped(self, root: Any, dtype: DType) -> Any:
        """All of `root`'s memory as a contiguous array of 1 dim and another dtype, without the remainder at the end."""
        raise missing(self, "retyped")

    def storage_size(self, root: Any) -> int:
        """The number of elements that `strided` may reach, counted from root's first element."""
        size = 1
        for length, stride in zip(root.shape, self.strides(root), strict=True):
            if length == 0:
                return 0
            size += (length - 1) * stride
        return size

    def partly_overlap(self, a: Any, b: Any) -> bool:
        """Whether two arrays share some but not all of their elements, or share all in another order."""
        return False

    # ---- values. The random bits depend only on seed and offset, so results do not depend on thread timing

    def copy(self, target: Any, source: Any) -> None:
        """Write `source`, of the same shape, into `target`, converting the dtype. Without warnings, like a kernel."""
        raise missing(self, "copy")

    def fill(self, target: Any, value: Any) -> None:
        """Write a Python number into every element."""
        there = self._host("fill")
        filled = there.backend.empty(target.shape, self.dtype_of(target), there)
        there.backend.fill(filled, value)
        data = there.backend.to_host(filled)
        self.copy(target, self.from_host(data, target.shape, self.dtype_of(target), self.current_device()))

    def to_host(self, array: Any) -> bytes | memoryview:
        """The elements in row-major order as host bytes, little-endian. Waits for pending work."""
        raise missing(self, "to_host")

    def from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> Any:
        """A new array from such bytes."""
        raise missing(self, "from_host")

    def received(self, source: Tensor, device: Device) -> Any:
        """A new array with the elements of a tensor on another device."""
        return self.from_host(source.device.backend.to_host(source.array), source.array.shape, source.dtype, device)

    def item(self, array: Any) -> bool | int | float | complex:
        """The value of an array of one element."""
        there = self._host("item").backend
        return there.item(there.from_host(self.to_host(array), array.shape, self.dtype_of(array), there.current_device()))

    def random_bits(self, shape: Ints, seed: int, offset: int, device: Device) -> Any:
        """A uint64 array of independent random bits, a pure function of seed, offset and shape."""
        there = self._host("random_bits")
        bits = there.backend.random_bits(shape, seed, offset, there)
        return self.from_host(there.backend.to_host(bits), shape, uint64, device)

    def _host(self, method: str) -> TensorDevice:
        """The device that stands in for a method: that of the installed backend of lowest rank."""
        there = device_named(plugins.default_device_type() or self.device_type)
        if there.type == self.device_type:
            raise missing(self, method)
        return there.backend.resolve_device(there)
