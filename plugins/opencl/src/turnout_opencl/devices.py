"""OpenCL devices: a context and in-order queues each, programs compiled once, work queued under a lock.

There is one queue, which keeps the order of all work of all threads, unless the user makes streams. So nothing waits but reads to
the host.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

from turnout.config.lock import new_lock
from turnout.errors import DeviceError, DTypeError
from turnout_opencl.memory import Memory
from turnout_opencl.programs import TYPES, source
from turnout_opencl.queues import SPECIAL, STREAMS, Queue, active_profiles
from turnout_opencl.reports import Error
from turnout_opencl.threads import on_own_cores
from turnout_opencl.tuning import Plan, plan_for

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_opencl.arrays import ClArray

GROUP = 64  # work-items of a group; one size for all calls, since PoCL compiles a kernel anew for every other
_FORKED: list[bool] = [False]
_BYTES = np.dtype(np.void)

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _FORKED.__setitem__(0, True))


class ClDevice:
    """One OpenCL device.

    double  whether it computes in float64
    main    the queue of work outside of the user's streams
    units   its cores
    joins   whether work-groups see what others have written before they count up: cores do, OpenCL does not promise it
    """

    def __init__(self, device: cl.Device, index: int) -> None:
        self.device = device
        self.index = index
        self.name = f"{device.name.strip()} ({device.platform.name.strip()})"
        self.double = "cl_khr_fp64" in device.extensions.split() or bool(getattr(device, "double_fp_config", 0))
        self.units = device.max_compute_units
        self.joins = bool(device.type & cl.device_type.CPU)
        self.context = cl.Context([device])
        self.memory = Memory(self.context)
        self.main = Queue(self.context, self.memory, 0)
        self._queues = [self.main]
        self._idle: list[Queue] = []  # of streams that are gone
        self._lock = new_lock()
        self._plan: Plan | None = None
        self._programs: dict[tuple[str, DType], cl.Program] = {}
        self._kernels: dict[tuple[str, DType, str], cl.Kernel] = {}

    @property
    def plan(self) -> Plan:
        """How it walks through large arrays; found when it is first needed."""
        if self._plan is None:
            self._plan = plan_for(self.device)
        return self._plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        self._plan = plan

    def supports(self, dtype: DType) -> bool:
        """Whether kernels compute in this dtype here."""
        return TYPES[dtype].kind != "moved" and (self.double or dtype.name != "float64")

    def allocate(self, size: int) -> Any:
        """A buffer of at least that many bytes. Raises MemoryError without room, DeviceError in a forked process."""
        if _FORKED[0]:
            raise DeviceError(
                "opencl cannot be used in a forked process: its driver's threads stayed behind; start it with the 'spawn' method"
            )
        with self._lock:
            if not SPECIAL:
                return self.memory.allocate(size, self.main.pool)
            self.memory.let_go()
            queue = self.current()
            buffer = queue.allocated(self.memory, size)
            if queue is not self.main:
                buffer.home = queue
            return buffer

    def kernel(self, template: str, dtype: DType, name: str) -> cl.Kernel:
        """A compiled kernel; the program is built when it is first needed. Needs the lock."""
        found = self._kernels.get((template, dtype, name))
        if found is None:
            if dtype.name == "float64" and not self.double:
                raise DTypeError(f"{self.name} does not compute in float64")
            program = self._programs.get((template, dtype))
            if program is None:
                text = source(template, dtype, self.double, self.plan.vector if template.startswith("loop:") else 1)
                program = self._programs[template, dtype] = _built(cl.Program(self.context, text))
            found = self._kernels[template, dtype, name] = cl.Kernel(program, name)
            # Else each start tries the call as a buffer, a sampler and a queue before it takes it for bytes: 9 us, a fifth of a
            # small call, and 25 us where a kernel has swept the caches.
            found.set_arg_types([_BYTES, *[None] * (found.num_args - 1)])
        return found

    def start(self, template: str, dtype: DType, name: str, call: bytes, buffers: Sequence[Any], count: int) -> None:
        """Queue a kernel over `count` positions. A buffer of None is an operand that is absent."""
        if count:
            groups = -(-count // GROUP)
            self.start_grid(template, dtype, name, call, buffers, (groups * GROUP,), (GROUP,))

    def start_grid(
        self, template: str, dtype: DType, name: str, call: bytes, buffers: Sequence[Any], grid: Any, group: Any
    ) -> None:
        """Queue a kernel over a grid of its own."""
        if _FORKED[0]:
            self.allocate(0)
        with self._lock:
            kernel = self.kernel(template, dtype, name)
            kernel.set_args(call, *buffers)
            if SPECIAL:
                self._watch(f"{template}.{name}", dtype.name, kernel, buffers, grid, group)
            else:
                self.main.last = cl.enqueue_nd_range_kernel(self.main.commands, kernel, grid, group)

    def start_kernel(self, kernel: cl.Kernel, arguments: Sequence[Any], grid: Any, group: Any = None) -> None:
        """Queue a kernel that was compiled elsewhere, for `context`. Its arguments are buffers of arrays and scalars of NumPy."""
        if _FORKED[0]:
            self.allocate(0)
        with self._lock:
            kernel.set_args(*arguments)
            buffers = [each for each in arguments if isinstance(each, cl.MemoryObjectHolder)]
            self._watch(kernel.function_name, "", kernel, buffers, grid, group)

    def _watch(self, name: str, dtype: str, kernel: cl.Kernel, buffers: Sequence[Any], grid: Any, group: Any) -> None:
        """Queue a kernel where this context wants it, hold what belongs to other queues, and note it in profiles."""
        queue = self._current_for_profiles()
        event = cl.enqueue_nd_range_kernel(queue.commands, kernel, grid, group)
        queue.note(event)
        foreign = [each for each in buffers if each is not None and getattr(each, "home", self.main) is not queue]
        if foreign:
            queue.commands.flush()  # else nothing says that it is done before something waits
            self.memory.let_go()
            self.memory.hold(queue, event, foreign)
        self._note(queue, name, dtype, event)

    def _note(self, queue: Queue, name: str, dtype: str, event: cl.Event) -> None:
        for profile in active_profiles():
            profile.record(self, queue.number, name, dtype, event)

    # ---- queues

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue of this context. What is queued there otherwise than by `start_kernel` is not in profiles."""
        queue = self.current()
        queue.is_lent = True
        return queue.commands

    def is_idle(self, queue: Queue) -> bool:
        """Whether all that is queued in `queue` is done; does not wait."""
        with self._lock:
            return queue.is_idle()

    def current(self) -> Queue:
        """The queue that work of this context goes to."""
        found = STREAMS.get()[0].get(self) if SPECIAL else None
        return self.main if found is None else found[0]

    def counts(self) -> Any:
        """`Queue.counts` of this context's queue; None where a second kernel must join what the pieces of a result leave."""
        return self.current().counts if self.joins else None

    def _current_for_profiles(self) -> Queue:
        queue = self.current()
        if active_profiles():
            queue.take_times(True)
        return queue

    def new_queue(self) -> Queue:
        """A queue for a stream: that of one that is gone, else a new one."""
        if _FORKED[0]:
            self.allocate(0)
        with self._lock:
            if self._idle:
                return self._idle.pop()
            queue = Queue(self.context, self.memory, len(self._queues))
            self._queues.append(queue)
            SPECIAL.add(queue)
        return queue

    def give_back(self, queue: Queue) -> None:
        """Let the next stream have a queue. Without the lock: a stream may be collected at any time."""
        self._idle.append(queue)

    def mark(self, queue: Queue, with_time: bool) -> cl.Event:
        """An event that is done when all that is queued in `queue` is done."""
        with self._lock:
            return queue.mark(with_time)

    def wait_for(self, queue: Queue, event: cl.Event) -> None:
        """Let what is queued from now on in `queue` wait for an event of this device."""
        with self._lock:
            queue.note(cl.enqueue_barrier(queue.commands, wait_for=[event]))

    def take_no_times(self) -> None:
        """Let all queues be plain ones again."""
        with self._lock:
            for queue in self._queues:
                queue.take_times(False)

    def close(self) -> None:
        """Finish what is queued, and give memory back that no array uses."""
        for queue in self._queues:
            queue.finish()
            SPECIAL.discard(queue)
        self.release()

    # ---- memory

    def memory_stats(self) -> dict[str, int]:
        """Bytes and buffers: see `Memory.statistics`."""
        with self._lock:
            return self.memory.statistics()

    def reset_peaks(self) -> None:
        """Let the peaks start from what is in use now."""
        with self._lock:
            self.memory.reset_peaks()

    def release(self) -> None:
        """Give buffers that no array uses back to the driver."""
        with self._lock:
            self.memory.release()

    def read(self, array: ClArray) -> bytearray:
        """Read the bytes of a contiguous array, after all work that this context has queued."""
        data = bytearray(array.size * array.dtype.itemsize)
        if data:
            self._transfer("copy to the host", data, array.buffer, src_offset=array.offset * array.dtype.itemsize)
            self.report()
        return data

    def write(self, array: ClArray, data: bytes | memoryview) -> None:
        """Copy host bytes into a contiguous array; `data` may be reused afterwards."""
        if array.size:
            self._transfer("copy to the device", array.buffer, data, dst_offset=array.offset * array.dtype.itemsize)

    def fill(self, array: ClArray, pattern: bytes) -> None:
        """Fill a contiguous array with the bytes of one element."""
        width = array.dtype.itemsize
        if array.size:
            with self._lock:
                queue = self._current_for_profiles()
                place = array.offset * width, array.size * width
                event = cl.enqueue_fill_buffer(queue.commands, array.buffer, bytearray(pattern), *place)
                queue.note(event)
                if getattr(array.buffer, "home", self.main) is not queue:
                    self.memory.hold(queue, event, (array.buffer,))
                self._note(queue, "fill", array.dtype.name, event)

    def copy_in(self, buffer: cl.Buffer, values: Any) -> None:
        """Copy a NumPy array into a buffer."""
        self._transfer("copy to the device", buffer, values)

    def copy_out(self, values: Any, buffer: cl.Buffer) -> None:
        """Copy a buffer into a NumPy array, after all work that this context has queued."""
        self._transfer("copy to the host", values, buffer)

    def _transfer(self, name: str, target: Any, source: Any, **options: Any) -> None:
        """Copy between host and device, and wait for that without the lock."""
        with self._lock:
            queue = self._current_for_profiles()
            event = cl.enqueue_copy(queue.commands, target, source, is_blocking=False, **options)
            queue.note(event)
            self._note(queue, name, "", event)
        event.wait()

    def finish(self) -> None:
        """Wait for all queued work. Raises what kernels reported."""
        for queue in self._queues:
            self.finish_queue(queue)
        with self._lock:
            self.memory.let_go()

    def finish_queue(self, queue: Queue) -> None:
        """Wait for all work of a queue. Raises what its kernels reported."""
        queue.finish()
        self.raise_reports(queue)

    @contextmanager
    def reported(self, error: Error) -> Iterator[Any]:
        """A buffer into which a kernel that the block starts writes {1, number} if something is wrong.

        The next read raises `error(number)` then.
        """
        queue = self.current()
        with queue.reports.lock:  # nobody may read the answer before the kernel is queued
            if queue.reports.full:
                self._raise_answers(queue)
            yield queue.reports.slot(error)

    def report(self) -> None:
        """Raise what kernels reported since the last time: those of this context's queue, and those of others that are done."""
        here = self.current()
        for queue in self._queues:
            if queue.reports.pending and (queue is here or self._any_wrong(queue, here)):
                self.raise_reports(queue)

    def _any_wrong(self, queue: Queue, here: Queue) -> bool:
        with queue.reports.lock, self._lock:
            return queue.reports.any_wrong(here.commands)

    def raise_reports(self, queue: Queue) -> None:
        """Raise what kernels of a queue reported; waits for them."""
        with queue.reports.lock:
            self._raise_answers(queue)

    def _raise_answers(self, queue: Queue) -> None:
        with self._lock:
            error = queue.reports.read(queue.commands) if queue.reports.pending else None
        if error is not None:
            raise error


def _built(program: cl.Program) -> cl.Program:
    """Compile it. For drivers that keep no programs pyopencl does, and what it keeps may be damaged."""
    try:
        return program.build(options=["-w"])
    except KeyError:  # which pyopencl 2026.1 raises then: it looks for a variable of the environment
        return program.build(options=["-w"], cache_dir=False)  # type: ignore[arg-type] # False means none


def found_devices(platform: str = "") -> list[cl.Device]:
    """The OpenCL devices of the platforms whose name contains a text, in the driver's order. Empty without a driver."""
    found: list[cl.Device] = []
    with on_own_cores():
        try:
            platforms = cl.get_platforms()
        except cl.Error:
            return []
        for each in platforms:
            if platform.lower() in each.name.lower():
                try:
                    found += each.get_devices()
                except cl.Error:  # a platform without devices
                    continue
    return found
