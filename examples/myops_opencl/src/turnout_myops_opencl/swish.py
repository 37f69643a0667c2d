"""The kernel on the arrays of the device: it compiles `swish.cl` once for each device and element type, and queues it."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import pyopencl as cl

from turnout.config.lock import new_lock
from turnout.dtypes import float32, float64
from turnout.errors import DTypeError
from turnout_opencl.arrays import ClArray, new_array
from turnout_opencl.backend import contiguous

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_opencl.devices import ClDevice

SOURCE = files(__package__).joinpath("swish.cl").read_text(encoding="utf-8")
TYPES = {float32: "float", float64: "double"}

# A kernel object holds its arguments until it is queued, so one thread at a time may use it.
_LOCK = new_lock()
_KERNELS: WeakKeyDictionary[ClDevice, dict[DType, cl.Kernel]] = WeakKeyDictionary()


def kernel(x: ClArray, beta: float) -> ClArray:
    """Queue the kernel; nothing waits for its result. Float16 and bfloat16 are computed in float32."""
    if x.dtype.name in ("float16", "bfloat16"):
        return contiguous(kernel(contiguous(x, float32), beta), x.dtype)
    if x.dtype not in TYPES or not x.place.supports(x.dtype):
        raise DTypeError(f"swish: opencl computes in floating-point types that the device has, got {x.dtype.name}")
    x = contiguous(x)
    out = new_array(x.place, x.shape, x.dtype)
    if x.size:
        number = np.float32(beta) if x.dtype is float32 else np.float64(beta)
        with _LOCK:
            compiled = built(x.place, x.dtype)
            compiled.set_args(x.buffer, np.int64(x.offset), number, out.buffer)
            cl.enqueue_nd_range_kernel(x.place.queue, compiled, (x.size,), None)
    return out


def built(place: ClDevice, dtype: DType) -> cl.Kernel:
    """The compiled kernel for one device and element type. Needs the lock."""
    kernels = _KERNELS.setdefault(place, {})
    if dtype not in kernels:
        options = [f"-DT={TYPES[dtype]}", f"-DDOUBLE={int(dtype is float64)}"]
        kernels[dtype] = cl.Kernel(cl.Program(place.context, SOURCE).build(options=options), "swish")
    return kernels[dtype]
