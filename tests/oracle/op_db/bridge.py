"""Between the two libraries: tensors and arguments there and back, and Turnout's function for a function of PyTorch.

An OpInfo calls functions of `torch`, often inside a lambda. Arguments go in as `Stand`s, which PyTorch's argument parser takes
for tensors; what is then called lands in `call`, which runs Turnout's function of that name.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

import turnout

NAMESPACES = (
    (torch.nn.functional, "nn.functional"),
    (torch.linalg, "linalg"),
    (torch.fft, "fft"),
    (torch.special, "special"),
    (torch.signal.windows, "signal.windows"),
    (torch.masked, "masked"),
    (torch, ""),
)

BITS = {torch.bfloat16: torch.int16, torch.complex32: torch.int32}


class Missing(NotImplementedError):
    """Turnout has no function under this name."""


# ---- values


def dtype_here(dtype: torch.dtype) -> Any:
    """Turnout's dtype of the same name."""
    name = str(dtype).removeprefix("torch.")
    if not hasattr(turnout, name):
        raise Missing(f"dtype {name}")
    return getattr(turnout, name)


def tensor_here(tensor: torch.Tensor, device: str) -> Any:
    """The tensor with the same numbers, strides and offset, in a storage of its own."""
    if tensor.layout is not torch.strided:
        raise Missing(f"layout {tensor.layout}")
    plain = tensor.detach().resolve_conj().resolve_neg()
    dtype_here(plain.dtype)
    flat = torch.empty(0, dtype=plain.dtype).set_(plain.untyped_storage())
    if plain.dtype is torch.bfloat16:
        import ml_dtypes

        array = flat.view(torch.int16).numpy().copy().view(ml_dtypes.bfloat16)
    else:
        array = flat.numpy().copy()
    made = turnout.from_numpy(array)
    if device != "cpu":
        made = made.to(device)
    made = turnout.as_strided(made, plain.shape, plain.stride(), plain.storage_offset())
    return made.requires_grad_() if tensor.requires_grad else made


def here(value: Any, device: str = "cpu") -> Any:
    """An argument of PyTorch's as one of Turnout's; tensors inside lists and dicts too."""
    if isinstance(value, Stand):
        return value.tensor
    if isinstance(value, torch.Tensor):
        return tensor_here(value, device)
    if isinstance(value, torch.dtype):
        return dtype_here(value)
    if isinstance(value, torch.device):
        return device if value.type == "cpu" else str(value)
    if isinstance(value, torch.memory_format | torch.layout):
        name = str(value).removeprefix("torch.")
        return getattr(turnout, name, name)
    if isinstance(value, torch.Generator):
        return turnout.Generator().manual_seed(value.initial_seed())
    if isinstance(value, slice):
        return slice(here(value.start, device), here(value.stop, device), here(value.step, device))
    if isinstance(value, tuple | list):
        items = [here(v, device) for v in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {k: here(v, device) for k, v in value.items()}
    if isinstance(value, torch.nn.Module | types.FunctionType):
        return _function_here(value, device)
    return value


def _function_here(function: Any, device: str) -> Any:
    """A function of PyTorch's tensors that is an argument, as one of Turnout's."""

    def called(*args: Any) -> Any:
        with Redirect(device):
            return here(function(*stand(args)), device)

    return called


def mapped(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """The value with what `leaf` gives for each part of its lists, tuples and dicts."""
    if type(value) in (tuple, list):
        return type(value)(mapped(v, leaf) for v in value)
    if isinstance(value, dict):
        return {k: mapped(v, leaf) for k, v in value.items()}
    return leaf(value)


def tensors(value: Any) -> list[Any]:
    """The tensors of either library inside a value, in order."""
    if isinstance(value, torch.Tensor | turnout.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors(v)] if isinstance(value, tuple | list) else []


def stand(value: Any) -> Any:
    """Tensors of Turnout as `Stand`s."""
    return mapped(value, lambda v: Stand(v) if isinstance(v, turnout.Tensor) else v)


def array_of(tensor: Any) -> torch.Tensor:
    """A cpu tensor of Turnout as PyTorch's, for comparison."""
    array = tensor.detach().contiguous().numpy()
    if tensor.dtype is turnout.bfloat16:
        import numpy

        return torch.from_numpy(array.view(numpy.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


# ---- functions


def _names() -> dict[int, str]:
    names: dict[int, str] = {}
    for module, prefix in NAMESPACES:
        for name in dir(module):
            function = getattr(module, name)
            if callable(function) and not isinstance(function, type | types.ModuleType) and not name.startswith("__"):
                known = names.get(id(function), "_")
                if known.rpartition(".")[2].startswith("_"):  # a public name is better than a private one
                    names[id(function)] = f"{prefix}.{name}" if prefix else name
    return names


_NAMES = _names()  # now: a test may have put another function in the place of one


# The public name is another thing's: `turnout.trace` records calls.
ELSEWHERE = {
    "trace": "ops.aten.trace", "_segment_reduce": "segment_reduce",
    "_native_batch_norm_legit": "ops.aten._native_batch_norm_legit",
}  # fmt: skip


def named(dotted: str) -> Any:
    """`turnout.<dotted>`. Raises Missing."""
    found: Any = turnout
    # Names with an underscore are functions in torch, and operators only here.
    dotted = f"ops.aten.{dotted}" if dotted.startswith("_") else ELSEWHERE.get(dotted, dotted)
    for part in dotted.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise Missing(f"turnout.{dotted}") from error
    return found


def find(function: Any) -> Any:
    """Turnout's function for one of PyTorch's, or None where PyTorch's name for it is not public. Raises Missing."""
    if isinstance(function, torch._ops.OpOverload):
        return _operator(function.overloadpacket.__name__, function._overloadname)
    if isinstance(function, torch._ops.OpOverloadPacket):
        return _operator(function.__name__, None)
    name = _NAMES.get(id(function))
    if name is not None:
        return named(name)
    if isinstance(function, types.WrapperDescriptorType | types.MethodDescriptorType | types.MethodWrapperType) or (
        getattr(function, "__name__", None) in vars(torch._C.TensorBase) or _is_method(function)
    ):
        method = function.__name__
        if method == "__get__":  # the getter of a property
            attribute = function.__self__.__name__
            return lambda tensor: getattr(tensor, attribute)
        if not hasattr(turnout.Tensor, method):
            raise Missing(f"Tensor.{method}")
        return getattr(turnout.Tensor, method)
    return None


def _is_method(function: Any) -> bool:
    return getattr(torch.Tensor, getattr(function, "__name__", ""), None) is function


def _operator(name: str, overload: str | None) -> Any:
    try:
        packet = getattr(turnout.ops.aten, name)
        return packet if overload is None else getattr(packet, overload or "default")
    except AttributeError as error:
        raise Missing(f"operator aten::{name}") from error


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], device: str = "cpu") -> Any:
    """What Turnout gives for a call of PyTorch's function with Stands or PyTorch's tensors as arguments."""
    if function is torch._C._set_grad_enabled:
        with torch._C.DisableTorchFunction():
            return function(*args)
    found = find(function)
    if found is None:
        raise Missing(f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', function)}")
    return found(*here(args, device), **here(kwargs, device))


class Stand(torch.Tensor):
    """A tensor of Turnout where PyTorch expects one of its own: no data, and every function called on it runs as Turnout's."""

    tensor: Any

    @staticmethod
    def __new__(cls, tensor: Any) -> Stand:
        with torch._C.DisableTorchFunction():
            made = torch.Tensor._make_subclass(cls, torch.empty(0))
        made.tensor = tensor
        return made

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return stand(call(function, args, kwargs or {}))


class Redirect(TorchFunctionMode):
    """Every function of PyTorch's called inside runs as Turnout's, factories included."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return stand(call(function, args, kwargs or {}, self.device))


def run(function: Any, sample: Any, device: str = "cpu") -> Any:
    """An OpInfo's function on one of its samples, computed by Turnout; tensors of Turnout. Raises what Turnout raises."""
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    found = find(function)
    if found is not None:
        return found(*here(args, device), **here(kwargs, device))
    args, kwargs = mapped((args, kwargs), lambda v: Stand(tensor_here(v, device)) if isinstance(v, torch.Tensor) else v)
    with Redirect(device):
        return here(function(*args, **kwargs), device)


def taking_stands(function: Any) -> Any:
    """The function where its arguments are Stands, inside a Redirect."""
    found = find(function)
    return function if found is None else lambda *args, **kwargs: stand(found(*here(args), **here(kwargs)))
