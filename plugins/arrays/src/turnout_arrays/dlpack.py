"""bfloat16 through DLPack, for array modules that do not exchange it: it travels as 16-bit integers, and its capsule is renamed.

The layout is that of dlpack.h: a capsule holds a DLManagedTensor, or a DLManagedTensorVersioned when it is called
"dltensor_versioned". Both contain a DLTensor, whose `dtype` is written here.
"""

from __future__ import annotations

import ctypes
from typing import Any

UINT, BFLOAT = 1, 4  # DLDataTypeCode

_TYPE_IN_TENSOR = 20  # after data (8 bytes), device (8) and ndim (4)
# Capsule name -> the position of the DLTensor. Before a versioned one stand version, context, deleter and flags, of 8 bytes.
_TENSOR_IN_CAPSULE = {b"dltensor": 0, b"dltensor_versioned": 32}


class DataType(ctypes.Structure):
    """DLDataType."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


def dlpack_type(capsule: Any) -> DataType:
    """The element type in a capsule; writing into it changes the capsule."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name: bytes = name_of(capsule)
    return DataType.from_address(pointer_of(capsule, name) + _TENSOR_IN_CAPSULE[name] + _TYPE_IN_TENSOR)


class Exporter:
    """Another exporter, whose bfloat16 elements become 16-bit integers. `is_bfloat16` is known after the export."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self.is_bfloat16 = False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._value.__dlpack__(**options)
        found = dlpack_type(capsule)
        self.is_bfloat16 = found.code == BFLOAT and found.bits == 16 and found.lanes == 1
        if self.is_bfloat16:
            found.code = UINT
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._value.__dlpack_device__()
