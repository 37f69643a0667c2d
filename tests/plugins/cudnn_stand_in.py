"""A stand-in for cuDNN's Python front end: graphs of one convolution, as strict about their order of calls, computed on cpu.

The names and parameters are those of nvidia-cudnn-frontend 1.32.
"""

from __future__ import annotations

import types
from typing import Any

import ml_dtypes
import numpy as np

import turnout

data_type = types.SimpleNamespace(HALF="float16", BFLOAT16="bfloat16", FLOAT="float32", DOUBLE="float64")
heur_mode = types.SimpleNamespace(A="A", FALLBACK="FALLBACK")
numerical_note = types.SimpleNamespace(DOWN_CONVERT_INPUTS="DOWN_CONVERT_INPUTS", TENSOR_CORE="TENSOR_CORE")
graphs: list[Graph] = []
streams: list[tuple[int, int]] = []  # (handle, stream)
ORDER = ["validate", "build_operation_graph", "create_execution_plans", "check_support", "build_plans"]


def backend_version() -> int:
    return 91400


def create_handle() -> int:
    create_handle.made += 1
    return create_handle.made


create_handle.made = 0


def destroy_handle(handle: int) -> None:
    destroyed.append(handle)


destroyed: list[int] = []


def set_stream(*, handle: int, stream: int) -> None:
    streams.append((handle, stream))


class Tensor:
    """The description of a tensor."""

    def __init__(self, dim: list[int], stride: list[int], data_type: str) -> None:
        self.dim, self.stride, self.data_type, self.output = dim, stride, data_type, False

    def set_output(self, value: bool) -> Tensor:
        self.output = value
        return self

    def set_data_type(self, value: str) -> Tensor:
        self.data_type = value
        return self

    def set_dim(self, value: list[int]) -> Tensor:
        self.dim = value
        return self

    def set_stride(self, value: list[int]) -> Tensor:
        self.stride = value
        return self


def array_at(address: int, tensor: Tensor) -> Any:
    """The memory that a description and an address name."""
    words = {"float16": "<u2", "bfloat16": "<u2", "float32": "<u4"}[tensor.data_type]
    strides = tuple(step * int(words[-1]) for step in tensor.stride)
    interface = {"version": 3, "data": (address, False), "shape": tuple(tensor.dim), "strides": strides, "typestr": words}
    found = np.asarray(types.SimpleNamespace(__array_interface__=interface))
    return found.view(ml_dtypes.bfloat16 if tensor.data_type == "bfloat16" else tensor.data_type)


class Graph:
    """`pygraph`."""

    def __init__(self, *, handle: int, io_data_type: str, intermediate_data_type: str, compute_data_type: str) -> None:
        assert intermediate_data_type == compute_data_type == "float32"
        self.elements = io_data_type
        self.steps: list[str] = []
        self.excluded: list[str] = []
        graphs.append(self)

    def tensor(self, *, dim: list[int], stride: list[int], data_type: str) -> Tensor:
        assert len(dim) == len(stride) in (4, 5)
        assert data_type == self.elements
        return Tensor(dim, stride, data_type)

    def conv_fprop(self, *, image: Tensor, weight: Tensor, padding: list[int], stride: list[int], dilation: list[int]) -> Tensor:
        return self.described("fprop", (image, weight), padding, stride, dilation)

    def conv_dgrad(self, *, loss: Tensor, filter: Tensor, padding: list[int], stride: list[int], dilation: list[int]) -> Tensor:
        return self.described("dgrad", (loss, filter), padding, stride, dilation)

    def conv_wgrad(self, *, image: Tensor, loss: Tensor, padding: list[int], stride: list[int], dilation: list[int]) -> Tensor:
        return self.described("wgrad", (image, loss), padding, stride, dilation)

    def described(self, kind: str, inputs: tuple[Tensor, Tensor], *window: list[int]) -> Tensor:
        assert all(len(each) == len(inputs[0].dim) - 2 for each in window)
        if len(inputs[0].dim) != len(inputs[1].dim):
            raise RuntimeError("nb_tensor_dims != yDesc.getNbDims()")
        self.kind, self.inputs, self.window = kind, inputs, window
        self.result = Tensor([], [], "")
        return self.result

    def validate(self) -> None:
        self.steps.append("validate")

    def build_operation_graph(self) -> None:
        self.steps.append("build_operation_graph")

    def create_execution_plans(self, modes: list[str]) -> None:
        assert modes == ["A", "FALLBACK"]
        self.steps.append("create_execution_plans")

    def deselect_numeric_notes(self, notes: list[str]) -> None:
        assert self.steps[-1] == "create_execution_plans"
        self.excluded += notes

    def check_support(self) -> None:
        self.steps.append("check_support")

    def build_plans(self) -> None:
        self.steps.append("build_plans")
        assert self.steps == ORDER

    def get_workspace_size(self) -> int:
        return 64

    def execute(self, tensors: dict[Tensor, int], workspace: int, *, handle: int) -> None:
        assert self.steps == ORDER
        assert workspace
        assert self.result.output
        if any(address % 16 for address in tensors.values()):
            raise RuntimeError("CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER")
        a, b = (turnout.from_numpy(array_at(tensors[t], t)) for t in self.inputs)
        out = array_at(tensors[self.result], self.result)
        padding, stride, dilation = self.window
        spread = (stride, padding, dilation, False, [0] * len(stride))
        back = turnout.ops.aten.convolution_backward
        if self.kind == "fprop":
            made = turnout.convolution(a, b, None, *spread, a.shape[1] // b.shape[1])
        elif self.kind == "dgrad":
            x = turnout.zeros(*out.shape, dtype=a.dtype)
            made = back(a, x, b, None, *spread, x.shape[1] // b.shape[1], [True, False, False])[0]
        else:
            w = turnout.zeros(*out.shape, dtype=a.dtype)
            made = back(b, a, w, None, *spread, a.shape[1] // w.shape[1], [False, True, False])[1]
        out[...] = made.numpy()


pygraph = Graph
