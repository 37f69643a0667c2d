"""What is said about a dtype or a device that does not fit."""

from __future__ import annotations

from rows import refused

test_a_dtype_or_device_is_refused = refused("""
turnout.device(3)
    DeviceError: a device is named by a string such as 'cpu' or 'cuda:0', got 3
turnout.dtypes.dtype_named("float33")
    DTypeError: no dtype is named 'float33'; the dtypes are float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, bool, complex64, complex128
turnout.set_default_dtype(int64)
    DTypeError: the default dtype must be a floating-point dtype, got turnout.int64
turnout.promote_types(turnout.uint16, int32)
    DTypeError: uint16 and int32 have no common dtype: unsigned integers wider than 8 bits mix with floats only
ones(2, dtype=turnout.uint16) + ones(2, dtype=int32)
    DTypeError: add: uint16 and int32 have no common dtype: unsigned integers wider than 8 bits mix with floats only
turnout.result_type(None, None)
    DTypeError: result_type needs at least one tensor or number
zeros(2, out=ones(2), dtype=float64)
    CallError: aten::zeros.out: dtype float64 was given, but out has dtype float32; omit dtype
zeros(2, out=ones(2), device="meta")
    CallError: aten::zeros.out: device meta was given, but out is on cpu; omit device
turnout.complex(ones(2), ones(2, dtype=float64))
    DTypeError: complex: imag must have the dtype of real, float32, got float64
turnout.polar(ones(2), ones(2, dtype=float64))
    DTypeError: polar: angle must have the dtype of abs, float32, got float64
turnout.view_as_complex(ones(2, 2, dtype=int64))
    DTypeError: view_as_complex is defined for float32 and float64 tensors, this one is int64
turnout.view_as_real(ones(2))
    DTypeError: view_as_real is defined for complex tensors, this one is float32
""")
