"""The kernel on the arrays of the device: it compiles `swish.cl` once for each device and element type, and queues it."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import pyopencl as cl

from turnout.dtypes import float32, float64
from turnout.errors import DTypeError
from turnout.plugins import new_lock
from turnout_aten.plugin_api import iterated_strides
from turnout_opencl.plugin_api import ClArray, copy, new_array

if TYPE_CHECKING:
    from turnout.dtypes import DType
    from turnout_opencl.plugin_api import ClDevice

SOURCE = files(__package__).joinpath("swish.cl").read_text(encoding="utf-8")
TYPES = {float32: "float", float64: "double"}

# A kernel object holds its arguments until it is queued, so one thread at a time may use it.
_LOCK = new_lock()
_KERNELS: WeakKeyDictionary[ClDevice, dict[DType, cl.Kernel]] = WeakKeyDictionary()


def kernel(x: ClArray, beta: float) -> ClArray:
    """Queue the kernel; nothing waits for its result. Float16 and bfloat16 are computed in float32."""
    dtype = float32 if x.dtype.name in ("float16", "bfloat16") else x.dtype
    if dtype not in TYPES or not x.place.supports(dtype):
        raise DTypeError(f"swish: opencl computes in floating-point types that the device has, got {x.dtype.name}")
    made = packed(x, dtype)
    if made.size:
        number = np.float32(beta) if dtype is float32 else np.float64(beta)
        with _LOCK:
            compiled = built(made.place, dtype)
            made.place.start_kernel(compiled, (made.buffer, number), (made.size,))
    return made if dtype is x.dtype else packed(made, x.dtype)


def packed(x: ClArray, dtype: DType) -> ClArray:
    """A copy of another dtype, without gaps, whose dims lie in memory in the order of those of `x`, as `empty_like` has them."""
    made = new_array(x.place, x.shape, dtype, iterated_strides(x.shape, [x.strides]))
    copy(made, x)
    return made


def built(place: ClDevice, dtype: DType) -> cl.Kernel:
    """The compiled kernel for one device and element type. Needs the lock."""
    kernels = _KERNELS.setdefault(place, {})
    if dtype not in kernels:
        options = [f"-DT={TYPES[dtype]}", f"-DDOUBLE={int(dtype is float64)}"]
        kernels[dtype] = cl.Kernel(cl.Program(place.context, SOURCE).build(options=options), "swish")
    return kernels[dtype]
