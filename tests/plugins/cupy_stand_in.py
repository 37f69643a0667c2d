"""A stand-in for CuPy over NumPy, as strict as CuPy where the two differ: what the CUDA backend does can be tested without a GPU.

Arrays have `data.ptr`, are made from a memory pointer, and belong to the device that was current. Ufuncs reduce only sums and
products, add at repeated indices only in CuPy's dtypes, and never return NumPy scalars. `asnumpy` is the way to the host.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np


class Pointer:
    """A position in an array's memory."""

    def __init__(self, owner: np.ndarray, ptr: int) -> None:
        self.owner = owner
        self.ptr = ptr

    def __add__(self, offset: int) -> Pointer:
        return Pointer(self.owner, self.ptr + offset)


class Memory:
    """What NumPy makes an array over a pointer from."""

    def __init__(self, pointer: Pointer, shape: Any, dtype: np.dtype, strides: Any) -> None:
        self.owner = pointer.owner
        self.__array_interface__ = {
            "version": 3, "data": (pointer.ptr, False), "shape": tuple(shape), "strides": strides, "typestr": dtype.str,
        }  # fmt: skip


class ndarray(np.ndarray):  # CuPy's name
    """An array on a pretended device."""

    def __new__(cls, shape: Any, dtype: Any = float, memptr: Pointer | None = None, strides: Any = None) -> ndarray:
        made = np.empty(shape, dtype)
        if memptr is not None:
            made = np.asarray(Memory(memptr, shape, np.dtype(dtype), strides))
        return made.view(cls)

    def __array_finalize__(self, parent: Any) -> None:
        self.lies_on = parent.lies_on if isinstance(parent, ndarray) else Device(cuda.current)

    @property
    def device(self) -> Device:  # type: ignore[override]
        return self.lies_on

    @property
    def data(self) -> Pointer:  # type: ignore[override]
        return Pointer(self, self.__array_interface__["data"][0])

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")


class Ufunc:
    """A NumPy ufunc with CuPy's limits."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc
        self.__name__ = f"cupy_{ufunc.__name__}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        assert any(isinstance(a, ndarray) for a in args), f"{self.__name__}: no array among {args}"
        with np.errstate(all="ignore"):
            return own(self.ufunc(*args, **kwargs))

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.ufunc not in (np.add, np.multiply):
            raise NotImplementedError(f"`{self.__name__}.reduce` is not supported yet")
        return own(self.ufunc.reduce(array, axis, dtype, out, keepdims))

    def at(self, array: Any, indices: Any, values: Any) -> None:
        if self.ufunc is not np.add or array.dtype.name not in (
            "int32", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128",
        ):  # fmt: skip
            raise NotImplementedError(f"`{self.__name__}.at` is not supported yet for {array.dtype}")
        assert values.dtype == array.dtype
        self.ufunc.at(array, indices, values)


def own(value: Any) -> Any:
    """A NumPy result as CuPy returns it: arrays, 0-dim ones too."""
    if isinstance(value, ndarray):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value).view(ndarray)
    return tuple(own(v) for v in value) if isinstance(value, tuple) else value


class Device:
    """A device, current while entered."""

    def __init__(self, index: int) -> None:
        self.id = index
        self.before = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    __hash__ = None  # type: ignore[assignment]

    def __enter__(self) -> Device:
        self.before, cuda.current = cuda.current, self.id
        return self

    def __exit__(self, *exc_info: object) -> None:
        cuda.current = self.before

    def synchronize(self) -> None:
        cuda.waited.append(self.id)


class CUDARuntimeError(RuntimeError):
    """What the driver's errors are."""


class Cuda(types.SimpleNamespace):
    """`cupy.cuda`."""

    def __init__(self, count: int) -> None:
        self.current = 0
        self.waited: list[int] = []
        self.Device = Device

        def device_count() -> int:
            if count < 0:
                raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
            return count

        self.runtime = types.SimpleNamespace(
            getDeviceCount=device_count, getDevice=lambda: self.current, CUDARuntimeError=CUDARuntimeError
        )


cuda = Cuda(2)


class Module(types.ModuleType):
    """`cupy`. Everything that it does not define is NumPy's, with results of its own class."""

    def __init__(self, count: int = 2) -> None:
        global cuda
        super().__init__("cupy")
        cuda = self.cuda = Cuda(count)
        self.ndarray = ndarray

    def asnumpy(self, array: Any) -> np.ndarray:
        return array.view(np.ndarray)

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        return value if isinstance(value, ndarray) and dtype is None else np.array(value, dtype).view(ndarray)

    def amax(self, array: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return own(np.amax(array, axis, out, keepdims))

    def amin(self, array: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return own(np.amin(array, axis, out, keepdims))

    def matmul(self, a: Any, b: Any, *, out: Any = None) -> Any:
        return own(np.matmul(a, b, out=out))

    def errstate(self, **settings: Any) -> Any:
        raise TypeError("CuPy's errstate takes other settings")

    def frombuffer(self, *args: Any) -> Any:
        raise TypeError("a buffer of the host")

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, np.ufunc):
            return Ufunc(found)
        if isinstance(found, type) or not callable(found) or name == "dtype":
            return found
        return lambda *args, **kwargs: own(found(*args, **kwargs))
