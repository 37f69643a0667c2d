"""Calls of PyTorch's Core ATen operators (tag `core`), as samples of the operator database make them.

A dispatch mode below the public functions sees the operators themselves, with the arguments PyTorch gives them. What no sample
reaches has calls of its own in `OWN`.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
import torchgen
import yaml
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from op_db import judging
from op_db.bridge import tensors

CALLS_PER_OPERATOR = 24
SAMPLES = 12  # of each OpInfo
DTYPES = ("float32", "float64", "int64", "bool", "complex64", "bfloat16", "float16")


@functools.cache
def operators() -> tuple[str, ...]:
    """The names with overloads of all Core ATen operators, from torchgen's native_functions.yaml."""
    path = os.path.join(os.path.dirname(torchgen.__file__), "packaged/ATen/native/native_functions.yaml")
    with open(path, encoding="utf-8") as file:
        entries = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    tagged = (e for e in entries if "core" in ([e["tags"]] if isinstance(e.get("tags"), str) else e.get("tags") or []))
    return tuple(e["func"].partition("(")[0] for e in tagged)


class Call:
    """One call: arguments as they were before it."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args, self.kwargs = kept((args, kwargs))

    def __repr__(self) -> str:
        return " ".join(repr(tree_map(_brief, (self.args, self.kwargs))).split())[:300]


def kept(values: Any) -> Any:
    """A copy with the same strides, tensors inside lists and dicts too."""

    def copied(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        plain = value.detach().resolve_conj().resolve_neg()
        flat = torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage()).clone()
        return flat.as_strided(plain.shape, plain.stride(), plain.storage_offset())

    return tree_map(copied, values)


def _is_strided(values: Any) -> bool:
    """Whether no tensor is sparse: Turnout has the strided layout only."""
    return all(t.layout is torch.strided for t in tree_leaves(values) if isinstance(t, torch.Tensor))


def _brief(value: Any) -> Any:
    return f"{str(value.dtype)[6:]}{list(value.shape)}" if isinstance(value, torch.Tensor) else value


class Recorder(TorchDispatchMode):
    """Keeps the first calls of each core operator."""

    def __init__(self, calls: dict[str, list[Call]]) -> None:
        super().__init__()
        self.calls = calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._schema.name.removeprefix("aten::") + (f".{func._schema.overload_name}" if func._schema.overload_name else "")
        if torch.Tag.core in func.tags and len(self.calls[name]) < CALLS_PER_OPERATOR and _is_strided((args, kwargs)):
            self.calls[name].append(Call(args, kwargs or {}))
        return func(*args, **(kwargs or {}))


@functools.cache
def recorded(dtype_name: str) -> dict[str, list[Call]]:
    """Core operator -> calls, from every OpInfo that supports the dtype, forward and (for floating ones) backward."""
    dtype = getattr(torch, dtype_name)
    calls: dict[str, list[Call]] = defaultdict(list)
    for info in judging.infos(dtype):
        differentiable = info.supports_autograd and dtype.is_floating_point
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sample in judging.samples(info, dtype, requires_grad=differentiable, most=SAMPLES):
                try:
                    with Recorder(calls):
                        result = info.op(sample.input, *sample.args, **sample.kwargs)
                        outputs = [t for t in tensors(result) if t.requires_grad and t.dtype.is_floating_point]
                        if outputs:
                            torch.autograd.backward(outputs, [torch.ones_like(t) for t in outputs])
                except Exception:  # noqa: BLE001 - what PyTorch refuses says nothing here
                    continue
    return dict(calls)


def calls(name: str, dtype_name: str) -> list[Call]:
    """The calls of one operator in one dtype; none where PyTorch's cpu does not support it."""
    own = OWN.get(name)
    found = recorded(dtype_name).get(name, [])
    if own is None:
        return found
    dtype = getattr(torch, dtype_name)
    return found + [Call(args, kwargs) for args, kwargs in own(lambda *shape: make(dtype, *shape))]


def make(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Numbers from a fixed seed."""
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(-5, 6, shape, generator=generator, dtype=dtype)
    return torch.randn(shape, generator=generator, dtype=torch.float32).to(dtype)


def _args(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, kwargs


Own = Callable[[Callable[..., torch.Tensor]], list[tuple[tuple[Any, ...], dict[str, Any]]]]
# ruff: noqa: E501 - rows of a table
# fmt: off
OWN: dict[str, Own] = {
    "native_dropout": lambda x: [_args(x(4, 5), 0.5, True), _args(x(4, 5), 0.3, False), _args(x(0), 0.5, True)],
    "avg_pool1d": lambda x: [_args(x(2, 3, 8), [3]), _args(x(3, 8), [2], [1], [1], True, False)],
    "adaptive_avg_pool1d": lambda x: [_args(x(2, 3, 8), [5]), _args(x(3, 8), [1])],
    "copy": lambda x: [_args(x(2, 3), x(3)), _args(x(2, 3), torch.ones(2, 1))],
    "div.Scalar_mode": lambda x: [_args(x(3, 4), n, rounding_mode=m) for n in (2, -0.75) for m in (None, "floor", "trunc")],
    "_native_batch_norm_legit_no_training": lambda x: [
        _args(x(4, 3, 2), x(3), x(3) + 1, x(3), x(3) * x(3), 0.1, 1e-5), _args(x(4, 3), None, None, x(3), x(3) * x(3), 0.1, 1e-5),
    ],
    "randperm": lambda x: [_args(7), _args(0), _args(5, dtype=torch.int32)],
    "sym_size.int": lambda x: [_args(x(2, 3), -1), _args(x(2, 3).t(), 0)],
    "sym_stride.int": lambda x: [_args(x(2, 3), -1), _args(x(2, 3).t(), 0)],
    "sym_numel": lambda x: [_args(x(2, 3)), _args(x(0, 3)), _args(x())],
    "sym_storage_offset": lambda x: [_args(x(2, 3)), _args(x(4, 3)[2:])],
    "sym_is_contiguous": lambda x: [_args(x(2, 3)), _args(x(2, 3).t())],
    "var.dim": lambda x: [_args(x(3, 4), [1]), _args(x(3, 4), [0, 1], False), _args(x(3, 4), None, True, True)],
    "bitwise_and.Scalar": lambda x: [_args(x(3, 4), 6), _args(x(3, 4), True)],
    "bitwise_or.Scalar": lambda x: [_args(x(3, 4), 6), _args(x(3, 4), True)],
    "bitwise_xor.Scalar": lambda x: [_args(x(3, 4), 6), _args(x(3, 4), True)],
    "bitwise_or.Tensor": lambda x: [_args(x(3, 4), x(4)), _args(x(3, 1), x(4))],
    "bitwise_xor.Tensor": lambda x: [_args(x(3, 4), x(4)), _args(x(3, 1), x(4))],
    "atan2.out": lambda x: [_args(x(3, 4), x(4), out=torch.empty(3, 4, dtype=x(1).dtype))],
    "fmod.Scalar": lambda x: [_args(x(3, 4), 2), _args(x(3, 4), -0.75)],
    "upsample_bilinear2d.vec": lambda x: [
        _args(x(2, 3, 4, 5), [6, 7], False, None), _args(x(2, 3, 4, 5), None, True, [2.0, 1.5]), _args(x(1, 1, 4, 4), [2, 2], True, None),
    ],
    "upsample_nearest2d.vec": lambda x: [_args(x(2, 3, 4, 5), [6, 7], None), _args(x(2, 3, 4, 5), None, [2.0, 1.5])],
    "convolution": lambda x: [
        _args(x(2, 4, 7), x(6, 2, 3), x(6), [2], [1], [1], False, [0], 2),
        _args(x(2, 4, 5, 6), x(4, 3, 2, 3), None, [2, 1], [0, 1], [1, 2], True, [1, 0], 1),
    ],
    "embedding": lambda x: [_args(x(5, 3), torch.tensor([[1, 0], [4, 4]]))],
    "embedding_dense_backward": lambda x: [_args(x(2, 2, 3), torch.tensor([[1, 0], [4, 4]]), 5, 4, False), _args(x(3, 2), torch.tensor([1, 1, 0]), 3, -1, True)],
    "gt.Scalar": lambda x: [_args(x(3, 4), 1), _args(x(3, 4), 0.5)],
    "lt.Scalar": lambda x: [_args(x(3, 4), 1), _args(x(3, 4), 0.5)],
    "pow.Scalar": lambda x: [_args(2, x(3, 4)), _args(0, x(2)), _args(1.5, x(2))],
    "scatter.value": lambda x: [_args(x(3, 4), 1, torch.tensor([[0, 3], [1, 1]]), 2)],
    "alias": lambda x: [_args(x(3, 4)), _args(x(3, 4).t())],
}
# fmt: on
