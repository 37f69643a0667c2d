"""The names of tensors' types, such as "turnout.FloatTensor", under which PyTorch's programs know dtypes and devices."""

from __future__ import annotations

from turnout.devices import Device
from turnout.dtypes import DTYPES, DType
from turnout.errors import ArgumentError, DeviceError
from turnout_aten.tensor.devices import device as device_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout_aten.tensor.devices import TensorDevice

# The dtypes whose names differ from "Float64Tensor" and the like.
_WORDS = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half",
    "bfloat16": "BFloat16", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64",
}  # fmt: skip
_DTYPES = {f"{word}Tensor": name for name, word in _WORDS.items()}


def type_name(dtype: DType, device_type: str) -> str:
    """The name of the type of tensors of a dtype on a device type."""
    place = "" if device_type == "cpu" else f"{device_type}."
    return f"turnout.{place}{_WORDS[dtype.name]}Tensor"


def named_type(name: object) -> tuple[str, DType]:
    """The device type and the dtype of the name of a type. Raises ArgumentError for another name."""
    root, _, rest = name.partition(".") if isinstance(name, str) else ("", "", "")
    place, _, last = rest.rpartition(".")
    if root != "turnout" or last not in _DTYPES or not (place or "cpu").isidentifier():
        raise ArgumentError(f"type: expected a dtype or a name such as 'turnout.FloatTensor', got {name!r}")
    return place or "cpu", DTYPES[_DTYPES[last]]


def cuda_device(device: str | Device | int | None) -> TensorDevice:
    """The device that `Tensor.cuda` moves to. Raises DeviceError for a device of another type."""
    if device is None:
        return device_named("cuda")
    if isinstance(device, int) and not isinstance(device, bool) and device >= 0:
        return device_named("cuda", device)
    wanted = device_named(device) if isinstance(device, (str, Device)) else None
    if wanted is None or wanted.type != "cuda":
        raise DeviceError(f"cuda: expected a device of type 'cuda' or its index, got {device!r}; use to(device) for others")
    return wanted
