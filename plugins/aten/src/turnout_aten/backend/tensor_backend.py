"""`TensorBackend`: the interface that a package implements so that a device can hold tensors. A dozen small methods on arrays.

A backend's arrays are opaque except for `array.shape`, a tuple of ints. Kernels are plain functions on arrays. The generated
wrappers (`turnout_aten.kernels`) unwrap tensors, call kernels, and wrap results.
"""

from __future__ import annotations

from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.devices import Backend, Device
from turnout.dtypes import uint64
from turnout.errors import NoDataError
from turnout.errors.layout import report
from turnout_aten.errors.backends import MissingMethodError
from turnout_aten.tensor.devices import device as device_named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from turnout.dtypes import DType
    from turnout.errors import TurnoutError
    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout_aten.tensor.devices import TensorDevice, TensorMode
    from turnout_aten.tensor.random import Generator
    from turnout_aten.tensor.tensor import Tensor

    Ints = tuple[int, ...]
    OfValues = Callable[[list[Any]], list[Any]]


class TensorBackend(Backend):
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
    zero_array      the same with zeros in it. None: `fill` writes them
    native          dtype -> what `native_dtype` gives, where `new_array` is there
    dtypes          what an array has as `dtype` -> its dtype, for all that `dtype_of` knows. None: `dtype_of` is asked
    row_major       whether an array lies in memory row by row, without gaps. None: its strides are asked for
    view_array      (shape, native dtype, root, start and strides in bytes) -> an array over the memory of a row-major root. None:
                    `strided` does that
    joined          joins few arrays of one dtype along a dim, and raises where they do not fit. None: `cat` has an output
    read_number     reads the number of an array of one element, and raises for any other. None: `item` reads it. Only for memory
                    that is at hand: a device that computes later raises in a read what went wrong, and only once
    silence         (call before a kernel of the general path, call after it with what the first returned, the first one's
                    argument), where this does what `kernel_context` does, at less cost. None: `kernel_context` does it
    replays         name -> what makes a function from one: both take a list of values and return one, and the made one is faster
                    when it is called again with values of the same kind. A traced graph gives its replay to it
    generator_type  the class of its devices' default generators. None: `Generator`
    wrapper_module  `__name__` of the generated wrappers, so that a warnings filter can distinguish them from user code
    """

    array_type: type | None = None
    keeps_answers = False
    is_functional: bool = False
    has_values: bool = True
    fake_mode: TensorMode | None = None
    new_array: Callable[[Ints, Any], Any] | None = None
    zero_array: Callable[[Ints, Any], Any] | None = None
    native: Mapping[DType, Any] = MappingProxyType({})
    dtypes: Mapping[Any, DType] | None = None
    row_major: Callable[[Any], bool] | None = None
    view_array: Callable[[Ints, Any, Any, int, Ints], Any] | None = None
    joined: Callable[[list[Any], int], Any] | None = None
    read_number: Callable[[Any], Any] | None = None
    silence: tuple[Callable[[Any], Any], Callable[[Any], None], Any] | None = None
    replays: Mapping[str, Callable[[OfValues], OfValues]] = MappingProxyType({})
    generator_type: type[Generator] | None = None
    wrapper_module: str = "turnout_aten.kernels"

    def bind_array_kernel(self, op: Operator, kernel: Kernel) -> Callable[..., Any] | None:
        """The wrapper of a custom operator's kernel on arrays."""
        from turnout_aten.kernels.custom import bind_array_kernel

        return bind_array_kernel(op, kernel, self)

    def path_of(self, op: Operator, kernel: Kernel, ks: int, args: Sequence[Any]) -> str:
        """Which path serves a call of an array kernel: a question to its wrapper."""
        from turnout_aten.kernels.paths import path_of

        return path_of(op, kernel, self, ks, args)

    def fresh_result(self, result: str, inputs: list[tuple[str, bool]]) -> tuple[str, dict[str, Any]]:
        """The quick test of a custom kernel's result: a plain tensor without a storage record, whose array no input has."""
        from turnout_aten.kernels.custom import fresh_result

        return fresh_result(result, inputs)

    if TYPE_CHECKING:

        def resolve_device(self, wanted: Device) -> TensorDevice: ...

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

    def native_dtype(self, dtype: DType) -> Any:
        """The dtype as `new_array` takes it."""
        raise missing(self, "native_dtype")

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

    def transposed(self, array: Any) -> Any:
        """A matrix transposed over the same memory, if this is faster than `strided`; else None."""
        return None

    def partly_overlap(self, a: Any, b: Any) -> bool:
        """Whether two arrays share some but not all of their elements, or share all in another order."""
        return False

    def data_ptr(self, array: Any) -> int:
        """The address of the first element of an array that has elements; 0 for a backend without memory."""
        raise NoDataError(f"data_ptr: the backend of device {self.device_type!r} does not have addresses")

    def held_alone(self, array: Any, references: int) -> bool:
        """Whether nothing leads to the memory of an array but so many references to the array, and the argument. False where that
        cannot be told."""
        return False

    def is_read_only(self, array: Any) -> bool:
        """Whether the array's memory must not be written. Asked after a failed write, and before gradients add up in place."""
        return False

    def error_kind(self, error: Exception) -> type[TurnoutError] | None:
        """The class of Turnout's error for an exception of the backend's own library; None for Python's exceptions."""
        return None

    # ---- values

    def copy(self, target: Any, source: Any) -> None:
        """Write `source`, of the same shape, into `target`, converting the dtype. Without warnings, like a kernel."""
        raise missing(self, "copy")

    def row_major_copy(self, array: Any) -> Any:
        """A row-major copy of an array of few elements in any order; None where `empty` and `copy` make it. Optional."""
        return None

    def duplicate(self, array: Any, dtype: DType) -> Any:
        """A row-major copy of a row-major array in a dtype, in one step; None where `empty` and `copy` are to make it."""
        return None

    def spread(self, array: Any, shape: Ints) -> Any:
        """A new array of this small shape with the elements of `array` repeated; None if a view is just as good."""
        return None

    def fill(self, target: Any, value: Any) -> None:
        """Write a Python number into every element."""
        there = self._host("fill")
        filled = there.backend.empty(target.shape, self.dtype_of(target), there)
        there.backend.fill(filled, value)
        data = there.backend.to_host(filled)
        self.copy(target, self.from_host(data, target.shape, self.dtype_of(target), self.current_device()))

    def ramp(self, target: Any, start: Any, step: Any) -> bool:
        """Write start, start + step, ... into a contiguous array of 1 dim. Returns False to have it composed of operators."""
        return False

    def tolist(self, array: Any) -> Any:
        """Nested lists of Python numbers, or the number of an array without dims; None to have them read from `to_host`."""
        return None

    def counted(self, start: int, end: int, step: int) -> Any:
        """An int64 array from start to before end, all of 62 bits, `arange` in one step; None to have it composed."""
        return None

    def identity(self, rows: int, columns: int, dtype: DType) -> Any:
        """A matrix with ones on its diagonal, `eye` in one step; None to have it composed of operators."""
        return None

    def from_numbers(self, values: list[Any], shape: Ints, dtype: DType) -> Any:
        """A row-major array of Python numbers, all of the type that the dtype stands for; None to have it made by `from_host`."""
        return None

    def spaced(self, start: float, end: float, steps: int, dtype: DType) -> Any:
        """A small array of floats from start to end, `linspace` in one step; None to have it composed of operators."""
        return None

    def positions(self, mask: Any) -> Any:
        """The int64 arrays of the indices, one for each dim, of the true elements of a mask; None to have `nonzero` find them."""
        return None

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

    def adopt(self, value: Any) -> Any:
        """An array around `value` without a copy, if `value` is an array of the backend's library; else None."""
        return None

    def device_of(self, array: Any) -> Device:
        """The device that an adopted array is on."""
        return self.current_device()

    def over_buffer(self, data: memoryview, dtype: DType) -> Any:
        """A vector over the memory of bytes of the host, for the backend of `cpu`."""
        raise missing(self, "over_buffer")

    def as_array(self, value: Any) -> Any:
        """A kernel's result that is not an array (a scalar of the array library), as an array."""
        raise missing(self, "as_array")

    def kernel_context(self) -> AbstractContextManager[object]:
        """The context in which the general path runs kernels (NumPy: without floating-point warnings). By default, none."""
        return nullcontext()

    def in_kernel_context(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        """A kernel that runs in `kernel_context` at each call."""
        if self.silence is not None:
            silenced, spoken, quiet = self.silence

            def run_silenced(*args: Any) -> Any:
                before = silenced(quiet)
                try:
                    return kernel(*args)
                finally:
                    spoken(before)

            return run_silenced
        context = self.kernel_context()
        if isinstance(context, nullcontext):
            return kernel
        if callable(context):  # NumPy's costs half of a block
            return context(kernel)

        def run(*args: Any) -> Any:
            with self.kernel_context():
                return kernel(*args)

        return run

    def describe(self, array: Any) -> str | None:
        """What printing shows in place of the elements, if they are not computed yet; else None."""
        return None

    def profile(self) -> AbstractContextManager[Any] | None:
        """A context that takes the times of its devices, for `turnout run --profile`; None where there are only the host's.

        What it gives has `log`, the calls as `turnout.trace_dispatch` records them, and `device_ns(call)`.
        """
        return None

    # ---- page-locked memory of the host: a device's backend allocates it, the host's lays arrays over it

    def pinned_memory(self, size: int) -> Any:
        """A writable buffer of that many bytes of the host's memory, page-locked for this backend's devices; None for none."""
        return None

    def is_pinned(self, address: int) -> bool:
        """Whether the host's memory at an address is page-locked for this backend's devices."""
        return False

    def receive_later(self, target: Any, source: Tensor) -> bool:
        """Queue a copy of a tensor of another device into an array of its shape, and return True; False to have it copied now."""
        return False

    def over_memory(self, memory: Any, shape: Ints, dtype: DType, strides: Ints | None = None) -> Any:
        """An array over a buffer of the host's memory, which it keeps alive; row-major without `strides`, in elements."""
        raise missing(self, "over_memory")

    # ---- other libraries

    def numpy(self, array: Any) -> Any:
        """A NumPy array over the same memory, or None if the host cannot reach the memory."""
        return None

    def dlpack(self, array: Any, options: dict[str, Any]) -> Any:
        """The array's DLPack capsule. `options` are the arguments that the caller gave to `__dlpack__`."""
        raise BufferError(f"tensors on {self.device_type} cannot be exported through DLPack")

    def dlpack_device(self, array: Any) -> tuple[int, int]:
        """The array's DLPack device, (type, index)."""
        raise BufferError(f"tensors on {self.device_type} cannot be exported through DLPack")

    def from_dlpack(self, value: Any) -> Any:
        """An array over the memory of a DLPack exporter on this backend's device."""
        raise BufferError(f"device {self.device_type} does not accept DLPack tensors")

    # ---- random numbers: the bits depend only on seed and offset, so results do not depend on thread timing

    def random_bits(self, shape: Ints, seed: int, offset: int, device: Device) -> Any:
        """A uint64 array of independent random bits, a pure function of seed, offset and shape."""
        there = self._host("random_bits")
        bits = there.backend.random_bits(shape, seed, offset, there)
        return self.from_host(there.backend.to_host(bits), shape, uint64, device)

    def uniform(self, shape: Ints, seed: int, offset: int, dtype: DType, device: Device) -> Any:
        """A small array of the uniform numbers that `random_bits` gives; None to have them composed of operators."""
        return None

    def normal(self, shape: Ints, seed: int, offset: int, dtype: DType, device: Device) -> Any:
        """A small array of normal numbers (Box and Muller) from twice as many words; None to have them composed of operators."""
        return None

    def _host(self, method: str) -> TensorDevice:
        """The device that stands in for a method: that of the installed backend of lowest rank."""
        there = device_named(plugins.default_device_type() or self.device_type)
        if there.type == self.device_type:
            raise missing(self, method)
        return there.backend.resolve_device(there)


def missing(backend: TensorBackend, method: str) -> MissingMethodError:
    """The error of a method that a backend must define: how it is called, and what it is for."""
    from inspect import signature

    declared = getattr(TensorBackend, method)
    head = f"{type(backend).__name__}.{method}: the backend of device {backend.device_type!r} does not define it"
    purpose = (declared.__doc__ or "").partition("\n")[0]
    parameters = ", ".join(signature(declared).parameters)
    return MissingMethodError(report(head, ("it is", purpose), ("to fix", f"define `def {method}({parameters})`")))
