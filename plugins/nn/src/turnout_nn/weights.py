"""`load_safetensors` and `save_safetensors`: weights in files that other libraries read and write too.

A file is a length of 8 bytes, a JSON header with name, dtype, shape and place of each tensor, and the tensors' bytes one after
the other. The safetensors library checks a file that is loaded: it knows every way in which a header can lie. Here the bytes are
mapped, which it does for some frameworks only.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import turnout
from turnout import Tensor
from turnout.dtypes import bool_
from turnout.errors import ArgumentError, CallError, FileFormatError
from turnout.plugins import effect
from turnout_aten.plugin_api import replacing

if TYPE_CHECKING:
    from turnout.dtypes import DType

    FilePath = str | os.PathLike[str]

# fmt: off
_DTYPES = {
    "F64": turnout.float64, "F32": turnout.float32, "F16": turnout.float16, "BF16": turnout.bfloat16,
    "I64": turnout.int64, "I32": turnout.int32, "I16": turnout.int16, "I8": turnout.int8,
    "U64": turnout.uint64, "U32": turnout.uint32, "U16": turnout.uint16, "U8": turnout.uint8,
    "BOOL": bool_, "C64": turnout.complex64,
}
# fmt: on
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_ALIGNED = 8  # the data begins at a multiple of this


def load_safetensors(filename: FilePath, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, in the order of the file.

    On the cpu they are over the file's memory: nothing is read before it is used, and a write changes the tensor and not the
    file. Raises FileFormatError for a damaged file, for a file of another kind, and for a dtype that Turnout does not have.

    Arguments:
        filename: the path of the file
        device: where the tensors are made

    Example:
        >>> turnout.nn.save_safetensors({"weight": turnout.ones(2, dtype=turnout.bfloat16)}, "weights.safetensors")
        >>> turnout.nn.load_safetensors("weights.safetensors")
        {'weight': tensor([1., 1.], dtype=turnout.bfloat16)}
    """
    effect("load_safetensors()")
    open_checked, error = _library()
    with open(filename, "rb") as file:
        first = file.read(8)
        _refuse_other_kinds(filename, first)
        start = 8 + int.from_bytes(first, "little")
        try:
            with open_checked(os.fspath(filename), framework="np") as opened:
                slices = [(name, opened.get_slice(name)) for name in opened.offset_keys()]
                rows = [(name, found.get_dtype(), tuple(found.get_shape())) for name, found in slices]
        except error as problem:
            raise FileFormatError(f"load_safetensors: {os.fspath(filename)} is damaged: {problem}") from None
        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    found: dict[str, Tensor] = {}
    for name, kind, shape in rows:
        dtype = _DTYPES.get(kind)
        if dtype is None:
            raise FileFormatError(
                f"load_safetensors: {os.fspath(filename)}: {name!r} has dtype {kind}, which Turnout does not have"
            )
        count = math.prod(shape)
        found[name] = _over(memory, dtype, shape, count, start).to(device)
        start += count * dtype.itemsize
    return found


def save_safetensors(tensors: Mapping[str, Tensor], filename: FilePath, metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors to a safetensors file, which is replaced whole or not at all.

    Each tensor is written with the elements that it has; tensors that share memory do not share it in the file. Raises CallError
    for what is not a name and a tensor, and ArgumentError for a dtype that the format does not have.

    Arguments:
        tensors: tensors by name, such as the `state_dict()` of a module
        filename: the path of the file
        metadata: text by name, which is kept with them
    """
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise CallError(f"save_safetensors: expected tensors by name, got {type(tensor).__name__} at {name!r}")
        if tensor.dtype not in _NAMES:
            raise ArgumentError(f"save_safetensors: {name!r} has dtype {tensor.dtype}, which safetensors files do not have")
    header: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(text, str) for item in metadata.items() for text in item):
            raise CallError("save_safetensors: metadata must be text by name")
        header["__metadata__"] = dict(metadata)
    # Large elements first, so that each tensor is aligned.
    order = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    end = 0
    for name in order:
        tensor = tensors[name]
        begin, end = end, end + tensor.numel() * tensor.dtype.itemsize
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % _ALIGNED)
    with replacing(filename) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            if tensors[name].numel():
                file.write(_bytes_of(tensors[name]))


def _over(memory: mmap.mmap, dtype: DType, shape: tuple[int, ...], count: int, start: int) -> Tensor:
    if not count:
        return turnout.empty(shape, dtype=dtype)
    if start % dtype.itemsize:  # an array's elements are aligned; other writers may place them anywhere
        size = count * dtype.itemsize
        return turnout.frombuffer(bytearray(memory[start : start + size]), dtype=dtype).reshape(shape)
    return turnout.frombuffer(memory, dtype=dtype, count=count, offset=start).reshape(shape)


def _bytes_of(tensor: Tensor) -> memoryview:
    """The elements of a tensor in order, without a copy where they are so already."""
    flat = tensor.detach().cpu().resolve_conj().contiguous().reshape(-1)
    return memoryview(flat.view(turnout.uint8).numpy())


def _refuse_other_kinds(filename: FilePath, first: bytes) -> None:
    # As the length of a header, these would have zeros at the end.
    if first.startswith((b"PK\x03\x04", b"\x80")) and first[4:] != bytes(4):
        raise FileFormatError(
            f"load_safetensors: {os.fspath(filename)} is a pickle or an archive of one, as torch.save writes\n"
            "  to fix  convert it once, where PyTorch is: safetensors.torch.save_file(torch.load(path), new_path)"
        )


def _library() -> tuple[Any, type[Exception]]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise ImportError(
            "load_safetensors: the package safetensors, which checks files, is not installed\n  to fix  pip install safetensors"
        ) from None
    return safe_open, SafetensorError
