"""A backend whose arrays are PyTorch's tensors on its CPU: it holds no NumPy array. A pytest plugin that registers its device."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch

from turnout import plugins
from turnout.dtypes import DTYPES, uint64
from turnout.registry import Registrations
from turnout_aten.backend.host_fallback import host
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.kernels.tables import register_kernels

NATIVE = {dtype: getattr(torch, name) for name, dtype in DTYPES.items()}
OURS = {native: dtype for dtype, native in NATIVE.items()}


class TorchBackend(TensorBackend):
    """The device `pytorch`."""

    name = "PyTorch"
    device_type = "pytorch"
    array_type = torch.Tensor

    def empty(self, shape, dtype, device, strides=None):
        if strides is None:
            return torch.empty(shape, dtype=NATIVE[dtype])
        return torch.empty_strided(shape, strides, dtype=NATIVE[dtype])

    def strided(self, root, shape, strides, offset):
        return torch.as_strided(root, shape, strides, root.storage_offset() + offset)

    def strides(self, array):
        return array.stride()

    def dtype_of(self, array):
        return OURS[array.dtype]

    def retyped(self, root, dtype):
        flat = self.strided(root, (self.storage_size(root),), (1,), 0).view(torch.uint8)
        return flat[: len(flat) // dtype.itemsize * dtype.itemsize].view(NATIVE[dtype])

    def copy(self, target, source):
        target.copy_(source)

    def fill(self, target, value):
        target.fill_(value)

    def to_host(self, array):
        dense = array.contiguous()
        return ctypes.string_at(dense.data_ptr(), dense.nbytes) if dense.nbytes else b""

    def from_host(self, data, shape, dtype, device):
        if not len(data):
            return torch.empty(shape, dtype=NATIVE[dtype])
        return torch.frombuffer(bytearray(data), dtype=NATIVE[dtype]).reshape(shape)

    def item(self, array):
        return array.item()

    def as_array(self, value):
        return torch.as_tensor(value)

    def dlpack(self, array, options):
        return array.__dlpack__(**options)

    def dlpack_device(self, array):
        kind, index = array.__dlpack_device__()
        return int(kind), index

    def random_bits(self, shape, seed, offset, device):
        draw = torch.Generator().manual_seed(hash((seed, offset)))
        return torch.randint(-(2**63), 2**63 - 1, shape, generator=draw).view(NATIVE[uint64])


def added(self: Any, other: Any, alpha: Any, out: Any) -> None:
    torch.add(self, other, alpha=alpha, out=out)


KERNELS = {
    "abs.out": lambda self, out: torch.abs(self, out=out),
    "add.out": added,
    "exp.out": lambda self, out: torch.exp(self, out=out),
    "mm.out": lambda self, mat2, out: torch.mm(self, mat2, out=out),
    "mul.out": lambda self, other, out: torch.mul(self, other, out=out),
    "relu.out": lambda self, out: out.copy_(torch.relu(self)),
    "sigmoid.out": lambda self, out: torch.sigmoid(self, out=out),
    "tanh.out": lambda self, out: torch.tanh(self, out=out),
}  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    plugins.activate("aten")
    library = Registrations("pytorch")
    backend = TorchBackend()
    library.backend(backend)
    register_kernels(library, backend, KERNELS)
    library.fallback(backend.name, host("cpu"))
