"""OpenCL devices: one context and one in-order queue each, programs compiled once, kernels started under a lock.

The queue keeps the order of all work of all threads, so nothing waits but reads to the host.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from turnout.config.lock import new_lock
from turnout.errors import DeviceError, DTypeError
from turnout_opencl.memory import Memory
from turnout_opencl.programs import TYPES, source
from turnout_opencl.reports import Error, Reports
from turnout_opencl.tuning import Plan, plan_for

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_opencl.arrays import ClArray

GROUP = 64  # work-items of a group; one size for all calls, since PoCL compiles a kernel anew for every other
_FORKED: list[bool] = [False]

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _FORKED.__setitem__(0, True))


class ClDevice:
    """One OpenCL device. `double` says whether it computes in float64."""

    def __init__(self, device: cl.Device, index: int) -> None:
        self.device = device
        self.index = index
        self.name = f"{device.name.strip()} ({device.platform.name.strip()})"
        self.double = "cl_khr_fp64" in device.extensions.split() or bool(getattr(device, "double_fp_config", 0))
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.memory = Memory(self.queue)
        self._reports = Reports(self.queue)
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
            return self.memory.allocate(size)

    def kernel(self, template: str, dtype: DType, name: str) -> cl.Kernel:
        """A compiled kernel; the program is built when it is first needed. Needs the lock."""
        found = self._kernels.get((template, dtype, name))
        if found is None:
            if dtype.name == "float64" and not self.double:
                raise DTypeError(f"{self.name} does not compute in float64")
            program = self._programs.get((template, dtype))
            if program is None:
                text = source(template, dtype, self.double, self.plan.vector if template.startswith("loop:") else 1)
                program = self._programs[template, dtype] = cl.Program(self.context, text).build(options=["-w"])
            found = self._kernels[template, dtype, name] = cl.Kernel(program, name)
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
            cl.enqueue_nd_range_kernel(self.queue, kernel, grid, group)

    # ---- memory

    def read(self, array: ClArray) -> bytearray:
        """Read the bytes of a contiguous array, after all queued work."""
        data = bytearray(array.size * array.dtype.itemsize)
        if data:
            cl.enqueue_copy(self.queue, data, array.buffer, src_offset=array.offset * array.dtype.itemsize, is_blocking=True)
            self.report()
        return data

    def write(self, array: ClArray, data: bytes | memoryview) -> None:
        """Copy host bytes into a contiguous array; `data` may be reused afterwards."""
        if array.size:
            cl.enqueue_copy(self.queue, array.buffer, data, dst_offset=array.offset * array.dtype.itemsize, is_blocking=True)

    def fill(self, array: ClArray, pattern: bytes) -> None:
        """Fill a contiguous array with the bytes of one element."""
        width = array.dtype.itemsize
        if array.size:
            cl.enqueue_fill_buffer(self.queue, array.buffer, bytearray(pattern), array.offset * width, array.size * width)

    def copy_in(self, buffer: cl.Buffer, values: Any) -> None:
        """Copy a NumPy array into a buffer."""
        cl.enqueue_copy(self.queue, buffer, values, is_blocking=True)

    def copy_out(self, values: Any, buffer: cl.Buffer) -> None:
        """Copy a buffer into a NumPy array, after all queued work."""
        cl.enqueue_copy(self.queue, values, buffer, is_blocking=True)

    def finish(self) -> None:
        """Wait for all queued work. Raises what kernels reported."""
        self.queue.finish()
        self.report()

    def reported(self, error: Error) -> Any:
        """A buffer into which a kernel writes {1, number} if something is wrong. The next read raises `error(number)` then."""
        if self._reports.full:
            self.report()
        with self._lock:
            return self._reports.slot(error)

    def report(self) -> None:
        """Raise what kernels reported since the last time."""
        with self._lock:
            error = self._reports.read() if self._reports.pending else None
        if error is not None:
            raise error


def found_devices(platform: str = "") -> list[cl.Device]:
    """The OpenCL devices of the platforms whose name contains a text, in the driver's order. Empty without a driver."""
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return []
    found: list[cl.Device] = []
    for each in platforms:
        if platform.lower() in each.name.lower():
            try:
                found += each.get_devices()
            except cl.Error:  # a platform without devices
                continue
    return found
