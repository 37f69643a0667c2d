"""A stand-in for CuPy over NumPy, as strict as CuPy where the two differ: what the CUDA backend does can be tested without a GPU.

It has the names of `cupy_names.txt` and no others, and its functions take the parameters written there. Indices out of range wrap
around instead of raising. Arrays of the host are refused. Arrays have `data.ptr`, are made from a memory pointer, and belong to
the device that was current. Ufuncs reduce only sums and products, add at repeated indices only in CuPy's dtypes, and never return
NumPy scalars. `asnumpy` is the way to the host. Raw kernels run on the CPU, from the same text (`emulated_cuda`).
"""

from __future__ import annotations

import collections
import contextlib
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any

import emulated_cuda
import numpy as np
import pytest
from cupy_names import NAMES, check_call


def refuse_host_arrays(name: str, values: Any) -> None:
    """Raise TypeError where CuPy would for an array of NumPy among the operands."""
    if any(type(v) is np.ndarray for v in values):
        raise TypeError(f"{name}: Unsupported type <class 'numpy.ndarray'>")


class Pointer:
    """A position in an array's memory."""

    def __init__(self, owner: np.ndarray, ptr: int) -> None:
        self.owner = owner
        self.ptr = ptr

    @property
    def mem(self) -> Any:
        """The memory, which views share."""
        found: Any = self.owner
        while isinstance(found, np.ndarray) and found.base is not None:
            found = found.base
        return found.owner.data.mem if isinstance(found, Memory) else found

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
    """An array on a pretended device. `block` is its memory, which views share."""

    def __new__(cls, shape: Any, dtype: Any = float, memptr: Pointer | None = None, strides: Any = None) -> ndarray:
        if memptr is None:
            return placed(np.empty(shape, dtype).view(cls))
        made = np.asarray(Memory(memptr, shape, np.dtype(dtype), strides)).view(dtype)  # bfloat16 has no typestr
        found = made.view(cls)
        found.lies_on, found.block = memptr.owner.lies_on, memptr.owner.block
        return found

    def __array_finalize__(self, parent: Any) -> None:
        ours = isinstance(parent, ndarray)
        self.lies_on = parent.lies_on if ours else Device(cuda.current)
        self.block = parent.block if ours else None

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
        parts = key if isinstance(key, tuple) else (key,)
        if any(isinstance(part, (list, np.ndarray)) for part in parts):  # else it is a view
            return recorded(lambda: own(super(ndarray, self).__getitem__(wrapped(self.shape, key))), [], parts)
        return own(super().__getitem__(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        recorded(lambda: super(ndarray, self).__setitem__(wrapped(self.shape, key), value), [self])

    def astype(self, *args: Any, **kwargs: Any) -> Any:
        return recorded(lambda: super(ndarray, self).astype(*args, **kwargs))

    def copy(self, *args: Any, **kwargs: Any) -> Any:
        return recorded(lambda: super(ndarray, self).copy(*args, **kwargs))

    def sum(self, *args: Any, **kwargs: Any) -> Any:
        return recorded(lambda: own(super(ndarray, self).sum(*args, **kwargs)))

    def dot(self, other: Any, out: Any = None) -> Any:
        return recorded(lambda: own(super(ndarray, self).dot(other, out)), [] if out is None else [out])

    def set(self, value: np.ndarray, stream: Any = None) -> None:
        assert type(value) is np.ndarray
        assert (value.dtype, value.shape) == (self.dtype, self.shape)
        assert self.flags.c_contiguous
        queue = cuda.stream if stream is None else stream
        assert queue.graph is None, "a host's array is copied while work is recorded"
        assert self.device.id == cuda.current
        cuda.stream_of_sets.append(stream)
        queue.later(cuda.copying(self.view(np.ndarray), value))

    def fill(self, value: Any) -> None:
        recorded(lambda: super(ndarray, self).fill(value), [self])

    def get(self) -> np.ndarray:
        return Module.asnumpy(None, self)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method == "__call__" and "out" not in options:
            refuse_host_arrays(ufunc.__name__, inputs)

        def plain(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(plain(v) for v in value)
            return value.view(np.ndarray) if isinstance(value, ndarray) else value

        def run() -> Any:
            with np.errstate(all="ignore"):
                return own(getattr(ufunc, method)(*plain(inputs), **{k: plain(v) for k, v in options.items()}))

        result = recorded(run, [out for out in options.get("out") or () if out is not None], inputs)
        return options["out"][0] if options.get("out") else result

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

        def run() -> Any:
            with np.errstate(all="ignore"):
                return own(self.ufunc(*args, **{"order": "C"} | kwargs))  # in CuPy, what they make is row-major

        return recorded(run, [a for a in (*args[self.ufunc.nin :], kwargs.get("out")) if a is not None], args)

    def reduce(self, array: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if self.ufunc not in (np.add, np.multiply):
            raise NotImplementedError(f"`{self.__name__}.reduce` is not supported yet")
        return recorded(lambda: own(self.ufunc.reduce(array, axis, dtype, out, keepdims)), [] if out is None else [out])

    def at(self, array: Any, indices: Any, values: Any) -> None:
        if self.ufunc is not np.add or array.dtype.name not in (
            "int32", "uint32", "uint64", "float16", "float32", "float64", "complex64", "complex128",
        ):  # fmt: skip
            raise NotImplementedError(f"`{self.__name__}.at` is not supported yet for {array.dtype}")
        assert values.dtype == array.dtype
        recorded(lambda: self.ufunc.at(array, wrapped(array.shape, indices), values), [array])


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

        def run() -> None:
            with np.errstate(all="ignore"):
                exec(self.operation, {"fabs": np.fabs}, values)
            for name, array in zip(self.names[self.inputs :], args[self.inputs :], strict=True):
                array.view(np.ndarray)[...] = values[name]

        recorded(run, args[self.inputs :])
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
            launched.append((name, cuda.current))
            recorded(lambda: kernel(grid, block, args), (), args, makes=False)

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

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule


def waiting(name: str) -> Any:
    method = getattr(np.ndarray, name)

    def wait(self: ndarray, *args: Any) -> Any:
        refuse_capture()
        cuda.stream.catch_up()
        return method(self, *args)

    return wait


def making(name: str) -> Any:
    found = getattr(np.ndarray, name)
    return lambda self, *args, **options: recorded(lambda: own(found(self, *args, **options)))


for _name in ("tolist", "item", "__int__", "__float__", "__bool__", "__complex__", "__index__"):
    setattr(ndarray, _name, waiting(_name))
for _name in (
    "reshape",
    "ravel",
    "flatten",
    "take",
    "repeat",
    "max",
    "min",
    "mean",
    "prod",
    "cumsum",
    "conj",
    "any",
    "all",
    "argsort",
):
    setattr(ndarray, _name, making(_name))

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
        cuda.waits += 1
        cuda.waited.append(self.id)

    def use(self) -> None:
        cuda.current = self.id

    @property
    def mem_info(self) -> tuple[int, int]:
        return 1000 + self.id, 1 << 30


class Graph:
    """Work that was recorded: functions, each of which does a step again. `pools` are those that it has memory of."""

    def __init__(self) -> None:
        self.steps: list[Any] = []
        self.pools: list[weakref.ref[MemoryPool]] = []

    def launch(self, stream: Any = None) -> None:
        refuse_elsewhere()
        if any(pool() is None for pool in self.pools):
            raise CUDARuntimeError("cudaErrorIllegalAddress: the pool that the work was recorded with is gone")
        with cuda.one_step():
            for step in self.steps:
                step()


def recorded(run: Any, writes: Any = (), reads: Any = (), *, makes: bool = True) -> Any:
    """Run, or record: then nothing that lives is changed, and what comes out are places that a launch fills, if it `makes` any.

    What a step does by others is one step. All arrays lie on the current device, and new ones have memory of its pool.
    """
    if cuda.here.in_step:
        return run()
    for array in (*writes, *reads):
        if isinstance(array, ndarray) and array.device.id != cuda.current:
            raise ValueError(f"Array device must be same as the current device: {array.device.id} and {cuda.current}")
    graph = cuda.stream.graph
    if graph is None:
        refuse_elsewhere()
        with cuda.one_step():
            made = run()
        return placed(made)
    if not makes:
        graph.steps.append(run)
        return None
    before = [(array, np.array(array.view(np.ndarray))) for array in writes]
    with cuda.one_step(), np.errstate(all="ignore"):  # nothing is computed yet
        made = run()
        for array, values in before:
            np.copyto(array.view(np.ndarray), values)
    placed(made)

    def again() -> None:
        for old, new in zip(arrays_in(made), arrays_in(run()), strict=True):
            if not any(old is array for array, _ in before):
                np.copyto(old.view(np.ndarray), new.view(np.ndarray))

    graph.steps.append(again)
    return made


def placed(made: Any) -> Any:
    """What was made, whose arrays have memory of the current allocator unless they lie in that of others."""
    for array in arrays_in(made) if not cuda.here.in_step else ():
        low = array.__array_interface__["data"][0]
        if array.nbytes and (array.block is None or not array.block.has(low)):
            base: Any = array
            while isinstance(base.base, np.ndarray):
                base = base.base
            array.block = cuda.alloc(base.nbytes)
            array.block.lies_at(base.__array_interface__["data"][0])
            array.lies_on = Device(cuda.current)
    return made


def arrays_in(value: Any) -> list[ndarray]:
    """The arrays that a function returned."""
    return [a for v in value for a in arrays_in(v)] if isinstance(value, tuple) else [value] if isinstance(value, ndarray) else []


def refuse_capture() -> None:
    """Count that the host waits, and raise as CUDA does where it waits for work that is only recorded."""
    cuda.waits += 1
    refuse_elsewhere()


def refuse_elsewhere() -> None:
    """Raise where a thread that records a stream gives work to another one."""
    if cuda.here.capturing and not cuda.here.in_step:
        raise CUDARuntimeError("cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing")


class Stream:
    """A queue of work, which is done at once, or when somebody waits while the stream `dawdles`; current while entered."""

    dawdles = False

    def __init__(self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: int | None = None) -> None:
        self.ptr = 0 if null else id(self)
        self.device_id = -1 if null else cuda.current
        self.priority = priority
        self.queue: list[Any] = []
        self.journal: list[Any] = []
        self.graph: Graph | None = None

    def __enter__(self) -> Stream:
        if self.device_id not in (-1, cuda.current):
            raise RuntimeError(f"The device that the stream is created on ({self.device_id}) does not match {cuda.current}")
        cuda.here.entered.append((cuda.current, cuda.stream))
        cuda.here.streams[cuda.current] = self
        return self

    def __exit__(self, *exc_info: object) -> None:
        device, before = cuda.here.entered.pop()
        cuda.here.streams[device] = before

    @property
    def done(self) -> bool:
        return not self.queue

    def later(self, work: Any) -> None:
        if self.dawdles or self.queue:
            self.queue.append(work)
        else:
            work()

    def catch_up(self) -> None:
        while self.queue:
            self.queue.pop(0)()

    def synchronize(self) -> None:
        cuda.waits += 1
        if self.graph is not None:
            refuse_capture()
        self.journal.append("synchronize")
        self.catch_up()

    def wait_event(self, event: Any) -> None:
        self.journal.append(("wait", event))

    def is_capturing(self) -> bool:
        return self.graph is not None

    def begin_capture(self, mode: int | None = None) -> None:
        if self.graph is not None:
            raise CUDARuntimeError("cudaErrorIllegalState: the operation cannot be performed in the present state")
        assert self.ptr, "cannot capture on the default (legacy) stream"
        self.graph = Graph()
        cuda.here.capturing.append(self)

    def end_capture(self) -> Graph:
        made, self.graph = self.graph, None
        assert made is not None
        cuda.here.capturing.remove(self)
        return made


class PinnedMemory(bytearray):
    """A buffer of the host that the driver knows."""


class Event:
    """A mark, which is reached at once."""

    clock = 0.0

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        self.block = block
        self.timed = not disable_timing
        self.done = True
        self.at = 0.0

    def record(self, stream: Stream | None = None) -> None:
        Event.clock += 1.5
        self.at = Event.clock
        self.of = cuda.stream if stream is None else stream
        self.of.journal.append(("record", self))
        self.done = False
        self.of.later(lambda: setattr(self, "done", True))

    def synchronize(self) -> None:
        cuda.stream.journal.append("synchronize event")
        while not self.done:
            self.of.queue.pop(0)()


def elapsed_time(start: Event, end: Event) -> float:
    assert start.timed
    assert end.timed
    return end.at - start.at


class Block:
    """Memory of a pool, until nothing has it."""

    def __init__(self, pool: MemoryPool, size: int, device: int) -> None:
        self.pool, self.size, self.device_id = weakref.ref(pool), size, device
        self.first, self.length = -1, size

    def lies_at(self, address: int) -> None:
        self.first = address

    def has(self, address: int) -> bool:
        return self.first <= address < self.first + self.length

    def __del__(self) -> None:
        pool = self.pool()
        if pool is not None:
            pool.used[self.device_id] -= self.size


class MemoryPool:
    """Counts what is asked for on each device, in blocks of 512 bytes; what is freed stays. `limit` is the most."""

    def __init__(self) -> None:
        self.used: collections.Counter[int] = collections.Counter()
        self.total: collections.Counter[int] = collections.Counter()
        self.limit = 0

    def malloc(self, size: int) -> Block:
        at, graph = cuda.current, cuda.stream.graph
        if graph is not None:
            assert self is not cuda.pool, "memory of the pool for all is taken while work is recorded"
            graph.pools.append(weakref.ref(self))
        whole = -(-size // 512) * 512
        if self.limit and self.used[at] + whole > self.limit:
            raise OutOfMemoryError(whole, self.used[at], self.limit)
        made = Block(self, whole, at)
        self.used[at] += whole
        self.total[at] = max(self.total[at], self.used[at])
        return made

    def used_bytes(self) -> int:
        return self.used[cuda.current]

    def total_bytes(self) -> int:
        return self.total[cuda.current]

    def get_limit(self) -> int:
        return self.limit

    def free_all_blocks(self) -> None:
        self.total[cuda.current] = self.used[cuda.current]


class OutOfMemoryError(MemoryError):
    """CuPy's."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        super().__init__(
            f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes, limit set to: {limit:,} bytes)."
        )


class CUDARuntimeError(RuntimeError):
    """What the driver's errors are."""


class Here(threading.local):
    """What is current in a thread: the device, the stream of each, the allocator; and the streams that it records."""

    def __init__(self) -> None:
        self.current = 0
        self.streams: dict[int, Stream] = {}
        self.entered: list[tuple[int, Stream]] = []
        self.allocators: list[Any] = []
        self.capturing: list[Stream] = []
        self.in_step = False


class Cuda(types.SimpleNamespace):
    """`cupy.cuda`."""

    def __init__(self, count: int) -> None:
        self.waits = 0
        self.here = Here()
        self.waited: list[int] = []
        self.given: list[Any] = []  # (stream, max_version) of DLPack exports
        self.Device = Device
        self.Stream, self.Event, self.MemoryPool, self.get_elapsed_time = Stream, Event, MemoryPool, elapsed_time
        self.default = Stream(null=True)
        self.pool, self.pinned_pool = MemoryPool(), MemoryPool()
        self.memory = types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
        self.allocator: Any = self.pool.malloc
        self.pinned: dict[int, weakref.ref[PinnedMemory]] = {}  # address -> memory
        self.stream_of_sets: list[Any] = []  # of copies from the host

        def device_count() -> int:
            if count < 0:
                raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
            return count

        self.get_current_stream = lambda: self.stream
        self.get_cublas_handle = lambda: 1 + self.current
        self.runtime = types.SimpleNamespace(
            getDeviceProperties=lambda index: {
                "name": b"Pretended GPU",
                "major": 7 + index,
                "minor": 5,
                "totalGlobalMem": 1 << 30,
                "multiProcessorCount": 40,
                "warpSize": 32,
            },
            getDeviceCount=device_count,
            runtimeGetVersion=lambda: 12090,
            driverGetVersion=lambda: 13000,
            getDevice=lambda: self.current,
            CUDARuntimeError=CUDARuntimeError,
            pointerGetAttributes=lambda address: types.SimpleNamespace(type=int(self.is_pinned(address))),
        )

    def alloc_pinned_memory(self, size: int) -> PinnedMemory:
        made = PinnedMemory(size)
        self.pinned[np.frombuffer(made, np.uint8).ctypes.data] = weakref.ref(made)
        return made

    def is_pinned(self, address: int) -> bool:
        found = [(first, memory()) for first, memory in self.pinned.items()]
        return any(memory is not None and first <= address < first + len(memory) for first, memory in found)

    @property
    def current(self) -> int:
        return self.here.current

    @current.setter
    def current(self, index: int) -> None:
        self.here.current = index

    @property
    def stream(self) -> Stream:
        return self.here.streams.get(self.current, self.default)

    @contextlib.contextmanager
    def one_step(self) -> Iterator[None]:
        before, self.here.in_step = self.here.in_step, True
        try:
            yield
        finally:
            self.here.in_step = before

    def copying(self, target: np.ndarray, source: np.ndarray) -> Any:
        """A copy that reads the host's memory when it is done, and does not keep it."""
        address, dtype, shape = source.ctypes.data, source.dtype, source.shape
        owner = next((memory for first, memory in self.pinned.items() if first <= address < first + len(memory() or b"")), None)
        if owner is None:
            held = source.copy()  # the driver reads other memory before it returns
            return lambda: np.copyto(target, held)

        def copy() -> None:
            memory = owner()
            assert memory is not None, "page-locked memory was freed before it was read"
            offset = address - np.frombuffer(memory, "u1").ctypes.data
            np.copyto(target, np.frombuffer(memory, dtype, target.size, offset).reshape(shape))

        return copy

    def get_allocator(self) -> Any:
        return self.here.allocators[-1] if self.here.allocators else self.allocator

    def set_allocator(self, allocator: Any) -> None:
        self.allocator = allocator

    def alloc(self, size: int) -> Any:
        return self.get_allocator()(size)

    @contextlib.contextmanager
    def using_allocator(self, allocator: Any) -> Iterator[None]:
        self.here.allocators.append(allocator)
        try:
            yield
        finally:
            self.here.allocators.pop()


class Nowhere:
    """What stands for `cuda` while the first one is made."""

    current = 0
    here = types.SimpleNamespace(in_step=True)


cuda: Any = Nowhere()
cuda = Cuda(2)


class Module(types.ModuleType):
    """`cupy`: the names of `NAMES`. What it does not define is NumPy's, with results of its own class."""

    def __init__(self, count: int = 2) -> None:
        global cuda
        super().__init__("cupy")
        self.__version__ = "14.2.0"
        cuda = self.cuda = Cuda(count)
        self.ndarray = ndarray
        self.ElementwiseKernel = ElementwiseKernel
        self.RawModule = RawModule

    def get_default_memory_pool(self) -> MemoryPool:
        return cuda.pool

    def get_default_pinned_memory_pool(self) -> MemoryPool:
        return cuda.pinned_pool

    def array(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        given = value.view(np.ndarray) if isinstance(value, ndarray) else value
        return recorded(lambda: np.array(given, *args, **kwargs).view(ndarray))

    def asnumpy(self, array: Any) -> np.ndarray:
        refuse_capture()
        cuda.stream.catch_up()
        return array.view(np.ndarray)

    def asarray(self, value: Any, dtype: Any = None) -> Any:
        if isinstance(value, ndarray) and dtype in (None, value.dtype) and value.device.id == cuda.current:
            return value
        given = value.view(np.ndarray) if isinstance(value, ndarray) else value
        return recorded(lambda: np.array(given, dtype).view(ndarray))

    def amax(self, array: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        return recorded(lambda: own(np.amax(array, axis, out, keepdims)), [] if out is None else [out])

    def amin(self, array: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
        if out is not None:  # CuPy 14.2.0 takes it for the dtype where CUB reduces
            raise TypeError("operand type(s) all returned NotImplemented from __array_ufunc__")
        return recorded(lambda: own(np.amin(array, axis, None, keepdims)))

    def argwhere(self, array: Any) -> Any:
        refuse_capture()
        return own(np.ascontiguousarray(np.argwhere(array)))  # row-major, as CuPy's is

    def matmul(self, a: Any, b: Any, *, out: Any = None) -> Any:
        if cuda.stream.graph is not None:
            raise NotImplementedError("calling cuBLAS API during stream capture is currently unsupported")
        return recorded(lambda: own(np.matmul(a, b, out=out)), [] if out is None else [out])

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
            writes = [args[0]] if name == "copyto" else [kwargs["out"]] if kwargs.get("out") is not None else []

            def run() -> Any:
                with np.errstate(all="ignore"):
                    return own(found(*args, **kwargs))

            try:
                return recorded(run, writes, args)
            except np.linalg.LinAlgError:
                if STATE["linalg"] == "raise":
                    raise
                return own(np.full_like(args[0].view(np.ndarray), np.nan))

        return call
