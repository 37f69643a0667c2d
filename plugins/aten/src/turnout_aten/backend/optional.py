"""What a backend may have beside the memory of its tensors: four classes of methods with defaults, parts of `TensorBackend`.

A backend defines one of these methods if its default is not good enough.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from turnout.devices import Backend, Device
from turnout.errors import NoDataError
from turnout.errors.layout import report
from turnout_aten.errors.backends import MissingMethodError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from turnout.dtypes import DType
    from turnout.errors import TurnoutError
    from turnout_aten.tensor.tensor import Tensor

    Ints = tuple[int, ...]


def missing(backend: Backend, method: str) -> MissingMethodError:
    """The error of a method that a backend must define: how it is called, and what it is for."""
    from inspect import signature

    declared = next(vars(each)[method] for each in reversed(type(backend).__mro__) if method in vars(each))
    head = f"{type(backend).__name__}.{method}: the backend of device {backend.device_type!r} does not define it"
    purpose = (declared.__doc__ or "").partition("\n")[0]
    parameters = ", ".join(signature(declared).parameters)
    return MissingMethodError(report(head, ("it is", purpose), ("to fix", f"define `def {method}({parameters})`")))


class KernelCalls(Backend):
    """What surrounds kernels: contexts, errors of the library, results that are no arrays, profiles.

    silence         (call before a kernel of the general path, call after it with what the first returned, the first one's
                    argument), where this does what `kernel_context` does, at less cost. None: `kernel_context` does it
    wrapper_module  `__name__` of the generated wrappers, so that a warnings filter can distinguish them from user code
    """

    silence: tuple[Callable[[Any], Any], Callable[[Any], None], Any] | None = None
    wrapper_module: str = "turnout_aten.kernels"

    def fresh_result(self, result: str, inputs: list[tuple[str, bool]]) -> tuple[str, dict[str, Any]]:
        """The quick test of a custom kernel's result: a plain tensor without a storage record, whose array no input has."""
        from turnout_aten.kernels.custom import fresh_result

        return fresh_result(result, inputs)

    def as_array(self, value: Any) -> Any:
        """A kernel's result that is not an array (a scalar of the array library), as an array."""
        raise missing(self, "as_array")

    def error_kind(self, error: Exception) -> type[TurnoutError] | None:
        """The class of Turnout's error for an exception of the backend's own library; None for Python's exceptions."""
        return None

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


class OneStep(Backend):
    """Operators and copies in one step. By default each answers None or False: operators or `TensorBackend` do it then."""

    def native_dtype(self, dtype: DType) -> Any:
        """The dtype as `new_array` takes it."""
        raise missing(self, "native_dtype")

    def transposed(self, array: Any) -> Any:
        """A matrix transposed over the same memory, if this is faster than `strided`; else None."""
        return None

    def row_major_copy(self, array: Any) -> Any:
        """A row-major copy of an array of few elements in any order; None where `empty` and `copy` make it."""
        return None

    def duplicate(self, array: Any, dtype: DType) -> Any:
        """A row-major copy of a row-major array in a dtype, in one step; None where `empty` and `copy` are to make it."""
        return None

    def spread(self, array: Any, shape: Ints) -> Any:
        """A new array of this small shape with the elements of `array` repeated; None if a view is just as good."""
        return None

    def ramp(self, target: Any, start: Any, step: Any) -> bool:
        """Write start, start + step, ... into a contiguous array of 1 dim. Returns False to have it composed of operators."""
        return False

    def counted(self, start: int, end: int, step: int) -> Any:
        """An int64 array from start to before end, all of 62 bits, `arange` in one step; None to have it composed."""
        return None

    def spaced(self, start: float, end: float, steps: int, dtype: DType) -> Any:
        """A small array of floats from start to end, `linspace` in one step; None to have it composed of operators."""
        return None

    def identity(self, rows: int, columns: int, dtype: DType) -> Any:
        """A matrix with ones on its diagonal, `eye` in one step; None to have it composed of operators."""
        return None

    def from_numbers(self, values: list[Any], shape: Ints, dtype: DType) -> Any:
        """A row-major array of Python numbers, all of the type that the dtype stands for; None to have it made by `from_host`."""
        return None

    def tolist(self, array: Any) -> Any:
        """Nested lists of Python numbers, or the number of an array without dims; None to have them read from `to_host`."""
        return None

    def positions(self, mask: Any) -> Any:
        """The int64 arrays of the indices, one for each dim, of the true elements of a mask; None to have `nonzero` find them."""
        return None

    def uniform(self, shape: Ints, seed: int, offset: int, dtype: DType, device: Device) -> Any:
        """A small array of the uniform numbers that `random_bits` gives; None to have them composed of operators."""
        return None

    def normal(self, shape: Ints, seed: int, offset: int, dtype: DType, device: Device) -> Any:
        """A small array of normal numbers (Box and Muller) from twice as many words; None to have them composed of operators.

        Floats of two bytes are computed in float32, and rounded once.
        """
        return None

    def integers(self, shape: Ints, seed: int, offset: int, low: int, span: int, device: Device) -> Any:
        """An int64 array, from `low` on, of the remainders of 63 random bits by `span`, at most 2**32. None: compose it."""
        return None


class Exchange(Backend):
    """Memory that other libraries share, and arrays that come from them."""

    def is_read_only(self, array: Any) -> bool:
        """Whether the array's memory must not be written. Asked after a failed write, and before gradients add up in place."""
        return False

    def held_alone(self, array: Any, references: int) -> bool:
        """Whether nothing leads to the memory of an array but so many references to the array, and the argument. False where that
        cannot be told."""
        return False

    def data_ptr(self, array: Any) -> int:
        """The address of the first element of an array that has elements; 0 for a backend without memory."""
        raise NoDataError(f"data_ptr: the backend of device {self.device_type!r} does not have addresses")

    def adopt(self, value: Any) -> Any:
        """An array around `value` without a copy, if `value` is an array of the backend's library; else None."""
        return None

    def device_of(self, array: Any) -> Device:
        """The device that an adopted array is on."""
        return self.current_device()

    def over_buffer(self, data: memoryview, dtype: DType) -> Any:
        """A vector over the memory of bytes of the host, for the backend of `cpu`."""
        raise missing(self, "over_buffer")

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


class PinnedMemory(Backend):
    """Page-locked memory of the host: a device's backend allocates it, the host's lays arrays over it."""

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
