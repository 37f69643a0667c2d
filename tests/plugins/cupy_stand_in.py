"""A stand-in for CuPy over NumPy, as strict as CuPy where the two differ: what the CUDA backend does can be tested without a GPU.

It has the names of `cupy_names.txt` and no others, and its functions take the parameters written there. Indices out of range wrap
around instead of raising. Arrays of the host are refused. Arrays have `data.ptr`, are made from a memory pointer, and belong to
the device that was current. Ufuncs reduce only sums and products, add at repeated indices only in CuPy's dtypes, and never return
NumPy scalars. `asnumpy` is the way to the host. Raw kernels run on the CPU, from the same text (`emulated_cuda`).
"""

from __future__ import annotations

import contextlib
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import emulated_cuda
import numpy as np
import pytest

LINE = re.compile(r"([\w.]+)(?:\((.*)\)| (ufunc))?")


def names() -> dict[str, list[str] | None]:
    """CuPy's names: a function's parameters, "*" before those that go by keyword only; None where they are not known."""
    text = Path(__file__).with_name("cupy_names.txt").read_text(encoding="utf-8")
    found: dict[str, list[str] | None] = {}
    for line in text.splitlines()[1:]:
        match = LINE.fullmatch(line)
        assert match is not None, line
        name, parameters, _ = match.groups()
        found[name] = parameters.split(", ") if parameters else None if parameters is None else []
    return found


NAMES = names()


def check_call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise TypeError where CuPy's function would."""
    parameters = NAMES[name]
    if parameters is None:
        return
    positional = parameters[: parameters.index("*")] if "*" in parameters else parameters
    wrong = [k for k in kwargs if k not in parameters]
    if len(args) > len(positional) or wrong:
        raise TypeError(f"cupy.{name}({', '.join(parameters)}) was called with {len(args)} arguments and {list(kwargs)}")


def refuse_host_arrays(name: str, values: Any) -> None:
    """Raise TypeError where CuPy would for an array of NumPy among the operands."""
    if any(type(v) is np.ndarray for v in values):
        raise TypeError(f"{name}: Unsupported type <class 'numpy.ndarray'>")


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
            made = np.asarray(Memory(memptr, shape, np.dtype(dtype), strides)).view(dtype)  # bfloat16 has no typestr
        found = made.view(cls)
        if memptr is not None:
            found.lies_on = memptr.owner.lies_on
        return found

    def __array_finalize__(self, parent: Any) -> None:
        self.lies_on = parent.lies_on if isinstance(parent, ndarray) else Device(cuda.current)

    @property
    def device(self) -> Device:  # type: ignore[override]
        return self.lies_on

    @property
    def data(self) -> Pointer:  # type: ignore[override]
        return Pointer(self, self.__array_interface__["data"][0])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.__array_interface__, "version": 3, "stream": 1}

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.lies_on.id

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None) -> Any:
        cuda.given.append((stream, max_version))
        return self.view(np.ndarray).__dlpack__(max_version=max_version)

    def __getitem__(self, key: Any) -> Any:
        return own(super().__getitem__(wrapped(self.shape, key)))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(wrapped(self.shape, key), value)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and "out" not in options:
            refuse_host_arrays(ufunc.__name__, inputs)

        def plain(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(plain(v) for v in value)
            return value.view(np.ndarray) if isinstance(value, ndarray) else value

        with np.errstate(all="ignore"):
            result = getattr(ufunc, method)(*plain(inputs), **{k: plain(v) for k, v in options.items()})
        return options["out"][0] if options.get("out") else own(result)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")


def wrapped(shape: tuple[int, ...], key: Any) -> Any:
    """An index whose integer arrays wrap around at the end of their dims."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if not any(isinstance(p, ndarray) and p.dtype.kind in "iu" for p in parts) or Ellipsis in map(type, parts):
        return key
    dim = 0
    for i, part in enumerate(parts):
        if isinstance(part, ndarray) and part.dtype.kind in "iu" and shape[dim]:
            parts[i] = np.mod(part.view(np.ndarray), shape[dim])
        dim += part.ndim if isinstance(part, ndarray) and part.dtype.kind == "b" else part is not None
    return tuple(parts)


class Ufunc:
    """A NumPy ufunc with CuPy's limits."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self.ufunc = ufunc
        self.__name__ = f"cupy_{ufunc.__name__}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        assert any(isinstance(a, ndarray) for a in args), f"{self.__name__}: no array among {args}"
        assert not kwargs.keys() - {"out", "dtype", "casting"}, f"{self.__name__}: {list(kwargs)}"
        refuse_host_arrays(self.__name__, args)
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
        self.ufunc.at(array, wrapped(array.shape, indices), values)


class ElementwiseKernel:
    """A kernel whose operation is Python as well as C++, such as "out = x / (1 + fabs(x))", in NumPy's functions."""

    def __init__(self, in_params: str, out_params: str, operation: str, name: str = "kernel") -> None:
        declared = [part.split() for params in (in_params, out_params) for part in params.split(",")]
        self.types = [kind for kind, _ in declared]
        self.names = [name for _, name in declared]
        self.inputs = len(in_params.split(","))
        self.operation = compile(operation, name, "exec")

    def __call__(self, *args: Any) -> Any:
        refuse_host_arrays("ElementwiseKernel", args)
        assert len(args) in (self.inputs, len(self.names)), f"Wrong number of arguments: {len(args)}"
        if len(args) == self.inputs:  # CuPy's results are row-major
            args = (*args, *[np.empty(args[0].shape, args[0].dtype).view(ndarray) for _ in self.names[self.inputs :]])
        dtypes: dict[str, np.dtype] = {}
        for kind, array in zip(self.types, args, strict=True):
            assert dtypes.setdefault(kind, array.dtype) == array.dtype, f"Type is mismatched. {kind} {array.dtype}"
        values = {name: array.view(np.ndarray) for name, array in zip(self.names[: self.inputs], args, strict=False)}
        with np.errstate(all="ignore"):
            exec(self.operation, {"fabs": np.fabs}, values)
        for name, array in zip(self.names[self.inputs :], args[self.inputs :], strict=True):
            array.view(np.ndarray)[...] = values[name]
        return args[-1] if len(self.names) == self.inputs + 1 else args[self.inputs :]


class RawModule:
    """Kernels of a text. What was launched is in `launched`, as (kernel, device)."""

    def __init__(self, *, code: str, options: tuple[str, ...] = ()) -> None:
        self.code = code
        self.options = options

    def get_function(self, name: str) -> Any:
        if emulated_cuda.COMPILER is None:
            pytest.skip("g++ is not installed: raw kernels cannot run on the CPU")
        kernel = emulated_cuda.program(self.code, self.options)[name]

        def launch(grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
            refuse_host_arrays(name, args)
            for each in args:
                assert not isinstance(each, ndarray) or each.device.id == cuda.current, f"{name}: an array of another device"
            launched.append((name, cuda.current))
            kernel(grid, block, args)

        return launch


launched: list[tuple[str, int]] = []


def own(value: Any) -> Any:
    """A NumPy result as CuPy returns it: arrays, 0-dim ones too."""
    if isinstance(value, ndarray):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value).view(ndarray)
    return tuple(own(v) for v in value) if isinstance(value, tuple) else value


class Exported:
    """A capsule that NumPy reads as the host's."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule


STATE = {"linalg": "ignore"}


@contextlib.contextmanager
def errstate(*, linalg: str) -> Iterator[None]:
    """CuPyX's: whether a solver that fails raises."""
    before, STATE["linalg"] = STATE["linalg"], linalg
    try:
        yield
    finally:
        STATE["linalg"] = before


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


class Stream:
    """A queue of work, which is done at once."""

    def is_capturing(self) -> bool:
        return False


class CUDARuntimeError(RuntimeError):
    """What the driver's errors are."""


class Cuda(types.SimpleNamespace):
    """`cupy.cuda`."""

    def __init__(self, count: int) -> None:
        self.current = 0
        self.waited: list[int] = []
        self.given: list[Any] = []  # (stream, max_version) of DLPack exports
        self.Device = Device
        self.stream = Stream()

        def device_count() -> int:
            if count < 0:
                raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
            return count

        self.get_current_stream = lambda: self.stream
        self.runtime = types.SimpleNamespace(
            getDeviceCount=device_count, getDevice=lambda: self.current, CUDARuntimeError=CUDARuntimeError
        )


cuda = Cuda(2)


class Module(types.ModuleType):
    """`cupy`: the names of `NAMES`. What it does not define is NumPy's, with results of its own class."""

    def __init__(self, count: int = 2) -> None:
        global cuda
        super().__init__("cupy")
        cuda = self.cuda = Cuda(count)
        self.ndarray = ndarray
        self.ElementwiseKernel = ElementwiseKernel
        self.RawModule = RawModule

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

    def from_dlpack(self, array: Any) -> Any:
        kind, index = array.__dlpack_device__()
        assert kind == 2, "CuPy takes CUDA memory only"
        with Device(index):
            return own(np.from_dlpack(Exported(array.__dlpack__(stream=7, max_version=(1, 0)))))

    def frombuffer(self, *args: Any) -> Any:
        raise TypeError("a buffer of the host")

    def __getattr__(self, name: str) -> Any:
        if name not in NAMES:
            raise AttributeError(f"module 'cupy' has no attribute {name!r}")
        return self.numpys(name, getattr(np, name))

    def numpys(self, name: str, found: Any) -> Any:
        """A name of NumPy's as CuPy has it."""
        if isinstance(found, np.ufunc):
            return Ufunc(found)
        if name == "lib":
            as_strided = found.stride_tricks.as_strided
            tricks = types.SimpleNamespace(as_strided=lambda x, shape=None, strides=None: as_strided(x, shape, strides, True))
            return types.SimpleNamespace(stride_tricks=tricks)
        if isinstance(found, types.ModuleType):
            return types.SimpleNamespace(
                **{n: self.numpys(f"{name}.{n}", getattr(found, n)) for n in dir(found) if f"{name}.{n}" in NAMES}
            )
        if isinstance(found, type) or not callable(found) or name == "dtype":
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            check_call(name, args, kwargs)
            refuse_host_arrays(name, args)
            try:
                with np.errstate(all="ignore"):
                    return own(found(*args, **kwargs))
            except np.linalg.LinAlgError:
                if STATE["linalg"] == "raise":
                    raise
                return own(np.full_like(args[0].view(np.ndarray), np.nan))

        return call
