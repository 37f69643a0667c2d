"""`Backend`: what a package implements to give Turnout a device. A dozen small methods on its own arrays.

A backend's arrays are opaque except for `array.shape`, a tuple of ints. Kernels are plain functions on arrays; the generated
wrappers (`turnout.native.wrappers`) unwrap tensors, call them, and wrap results.
"""

from __future__ import annotations

from functools import cached_property

from turnout.devices import Device, device
from turnout.errors import DeviceError
from turnout.errors import calls as texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from turnout.dtypes import DType
    from turnout.operators import Operator
    from turnout.registry import Library

    Call = Callable[..., Any]
    Ints = tuple[int, ...]


class Backend:
    """Derive, set the class attributes, implement the methods that raise here, register with `Library.backend`.

    name             in dispatch keys: "CPU" gives the keys CPU, AutogradCPU, AutocastCPU
    device_type      the device string: "cpu"
    functional_only  it cannot write in place: left out of CompositeExplicitAutogradNonFunctional
    indexed          it has several devices: calls are checked for one index and run under `guard`
    array_type       the class of its arrays, when kernels may allocate results themselves (`Row(..., allocates=...)`)
    wrapper_module   `__name__` of the generated wrappers, which a warnings filter can then tell from user code
    """

    name: str = ""
    device_type: str = ""
    functional_only: bool = False
    indexed: bool = False
    array_type: type | None = None
    wrapper_module: str = "turnout.native.wrappers"
    keys: int = 0  # the key set of its plain tensors, set when it is registered
    dense: int = 0  # the part of it that picks the backend's own slot

    # ---- memory

    def empty(self, shape: Ints, dtype: DType, device: Device, strides: Ints | None = None) -> Any:
        """A new array, contiguous unless `strides` (in elements, without overlap) asks for another order."""
        raise NotImplementedError(f"{type(self).__name__}.empty")

    def strided(self, root: Any, shape: Ints, strides: Ints, offset: int) -> Any:
        """A view of `root`'s memory: shape, strides and offset in elements, the offset counted from root's first element."""
        raise NotImplementedError(f"{type(self).__name__}.strided")

    def strides(self, array: Any) -> Ints:
        """The strides in elements."""
        raise NotImplementedError(f"{type(self).__name__}.strides")

    def dtype_of(self, array: Any) -> DType:
        """The element type."""
        raise NotImplementedError(f"{type(self).__name__}.dtype_of")

    def retyped(self, root: Any, dtype: DType) -> Any:
        """All of `root`'s memory as a contiguous array of 1 dim and another dtype; what is left over at the end is cut off."""
        raise NotImplementedError(f"{type(self).__name__}.retyped")

    def storage_size(self, root: Any) -> int:
        """How many elements `strided` may reach from root's first one."""
        size = 1
        for length, stride in zip(root.shape, self.strides(root), strict=True):
            if length == 0:
                return 0
            size += (length - 1) * stride
        return size

    def transposed(self, array: Any) -> Any:
        """A matrix with its dims exchanged over the same memory, where that is quicker than `strided`; else None."""
        return None

    def partly_overlap(self, a: Any, b: Any) -> bool:
        """Whether two arrays share some but not all of their elements, or the same ones in another order."""
        return False

    # ---- values

    def copy(self, target: Any, source: Any) -> None:
        """Write `source`, of the same shape, into `target`, converting the dtype."""
        raise NotImplementedError(f"{type(self).__name__}.copy")

    def spread(self, array: Any, shape: Ints) -> Any:
        """A new array of this small shape with the elements of `array` repeated; None where a view of it does as well."""
        return None

    def fill(self, target: Any, value: Any) -> None:
        """Write a Python number everywhere."""
        raise NotImplementedError(f"{type(self).__name__}.fill")

    def ramp(self, target: Any, start: Any, step: Any) -> bool:
        """Write start, start + step, ... into a contiguous array of 1 dim; False where core is to compose it of operators."""
        return False

    def to_host(self, array: Any) -> bytes | memoryview:
        """The elements in row-major order as host bytes, little-endian; finishes pending work first."""
        raise NotImplementedError(f"{type(self).__name__}.to_host")

    def from_host(self, data: bytes | memoryview, shape: Ints, dtype: DType, device: Device) -> Any:
        """A new array from such bytes."""
        raise NotImplementedError(f"{type(self).__name__}.from_host")

    def item(self, array: Any) -> bool | int | float | complex:
        """The value of an array of one element."""
        raise NotImplementedError(f"{type(self).__name__}.item")

    def adopt(self, value: Any) -> Any:
        """An array around `value` without a copy when `value` is this backend's own kind of array, else None."""
        return None

    def as_array(self, value: Any) -> Any:
        """What a kernel returned instead of an array (a scalar of the array library) as an array."""
        raise NotImplementedError(f"{type(self).__name__}.as_array")

    def kernel_context(self) -> AbstractContextManager[object] | None:
        """Entered around kernels on the general path (NumPy: no floating-point warnings); None for nothing."""
        return None

    # ---- other libraries

    def numpy(self, array: Any) -> Any:
        """A NumPy array over the same memory, or None where the host cannot reach it."""
        return None

    def dlpack(self, array: Any, options: dict[str, Any]) -> Any:
        """The array's DLPack capsule; `options` are those of `__dlpack__` that the caller gave."""
        raise BufferError(f"tensors on {self.device_type} cannot be exported through DLPack")

    def dlpack_device(self, array: Any) -> tuple[int, int]:
        """The array's DLPack device, (type, index)."""
        raise BufferError(f"tensors on {self.device_type} cannot be exported through DLPack")

    def from_dlpack(self, value: Any) -> Any:
        """An array over the memory of a DLPack exporter on this backend's device."""
        raise BufferError(f"device {self.device_type} takes no DLPack tensors")

    # ---- random numbers: 64 fresh bits for a seed and offset, so that results do not depend on thread timing

    def random_bits(self, shape: Ints, seed: int, offset: int, device: Device) -> Any:
        """A uint64 array of independent random bits, a pure function of seed, offset and shape."""
        raise NotImplementedError(f"{type(self).__name__}.random_bits")

    # ---- devices

    def device_count(self) -> int:
        """How many devices there are."""
        return 1

    def current_device(self) -> Device:
        """Where a tensor goes when only the device type is named."""
        return device(self.device_type, 0) if self.indexed else self.place

    @cached_property
    def place(self) -> Device:
        """The one device of a backend that is not indexed."""
        return device(self.device_type)

    def guard(self, device: Device) -> AbstractContextManager[object] | None:
        """Makes a device current while entered; None where there is nothing to do."""
        return None

    def synchronize(self, device: Device) -> None:
        """Wait until all work queued on the device is done."""

    def resolve_device(self, wanted: Device) -> Device:
        """The device a tensor is made on when `wanted` is named. Raises DeviceError for an index that does not exist."""
        if wanted.index is None:
            return self.current_device() if self.indexed else wanted
        if not self.indexed and wanted.index == 0:
            return self.place
        if wanted.index >= self.device_count():
            raise DeviceError(f"{wanted} does not exist: {self.device_type} has {self.device_count()} device(s)")
        return wanted

    def registered(self, library: Library) -> None:
        """Called when a library has registered the backend; what it sets up is to be undone with `library.on_undo`."""

    def __repr__(self) -> str:
        return f"<Backend {self.name} ({self.device_type})>"


def named_tensors(op: Operator, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """The tensors of a call with their argument names, list elements numbered."""
    found: list[tuple[str, Any]] = []
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if isinstance(value, (list, tuple)):
            found += [
                (f"{argument.name}[{i}]", v) for i, v in enumerate(value) if type(getattr(v, "keys", None)) is int
            ]
        elif type(getattr(value, "keys", None)) is int and hasattr(value, "shape"):
            found.append((argument.name, value))
    return found


def one_device(op: Operator, args: tuple[Any, ...]) -> Device | None:
    """The device of a call; 0-dim tensors on cpu mix with any. Raises DeviceError that names two devices."""
    tensors = named_tensors(op, args)
    main = next(((n, t) for n, t in tensors if not _mixes(t)), tensors[0] if tensors else None)
    if main is None:
        return None
    for name, tensor in tensors:
        if tensor.device != main[1].device and (not _mixes(tensor) or _is_written(op, name)):
            raise DeviceError(texts.two_devices(op, [(main[0], main[1].device), (name, tensor.device)]))
    place: Device = main[1].device
    return place


def _mixes(tensor: Any) -> bool:
    return bool(tensor.shape == () and tensor.device.type == "cpu")


def _is_written(op: Operator, name: str) -> bool:
    """Whether an argument is mutated: a copy of it on another device would take the write."""
    return any(a.is_write for a in op.schema.arguments if a.name == name.partition("[")[0])


def mixed(op: Operator) -> Call:
    """The callable of a key set with several backends: all tensors are on one device, but for 0-dim ones on cpu."""

    def call_mixed(ks: int, *args: Any) -> Any:
        place = one_device(op, args)
        if place is None:
            raise DeviceError(texts.generator_elsewhere(op, args))
        moved = tuple(_move(a, place) for a in args)
        keys = op.registry.keys
        ks = ks & ~keys.backend_mask | keys.backend_bit(place.backend.name)
        return op.lookup(ks)(ks, *moved)

    return call_mixed


def _move(value: Any, place: Device) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_move(v, place) for v in value)
    if type(getattr(value, "keys", None)) is int and hasattr(value, "shape") and value.device != place:
        return value.to(place)
    return value


def checked(op: Operator, backend: Backend, call: Call) -> Call:
    """For backends with several devices: check that a call names one, and run under its guard."""

    def call_on_device(ks: int, *args: Any) -> Any:
        place = one_device(op, args) if op.device_check else next((t.device for _, t in named_tensors(op, args)), None)
        guard = backend.guard(place) if place is not None and op.device_guard else None
        if guard is None:
            return call(ks, *args)
        with guard:
            return call(ks, *args)

    return call_on_device
