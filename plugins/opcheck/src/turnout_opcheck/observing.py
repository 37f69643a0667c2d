"""What a call did: its results or its error, and the bytes and facts of its arguments before and after."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import turnout
from turnout import Tensor
from turnout.errors import TurnoutError
from turnout.operators import Operator
from turnout.operators.values import flat
from turnout_opcheck.derived import Args, tensors

# An error that says that arguments are not accepted. Others come from code that did not expect them.
REFUSALS = (TurnoutError, ValueError, TypeError, RuntimeError, NotImplementedError, OverflowError)


def run(op: Operator, args: Args) -> Any:
    """Call the operator through its stub, as a user would. Warnings are not shown."""
    given, keywords = op.schema.by_keyword(args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return op.call(*given, **keywords)


def refused(error: BaseException) -> bool:
    """Whether an error says that the arguments are not accepted, and is not one of code that fails."""
    if isinstance(error, TurnoutError):
        return True
    return isinstance(error, REFUSALS) and not isinstance(error, (LookupError, RecursionError))


def left_by(op: Operator, value: Any, args: Args) -> list[Any]:
    """The results of a call, and what became of its tensors."""
    return [*flat(value), *(t for _, t in tensors(op, args))]


def results(op: Operator, value: Any) -> Iterator[tuple[str, Any]]:
    """The results with names: "the result", "result 1", "result[1]" in a list."""
    several = len(op.schema.returns) > 1
    values = value if several and isinstance(value, (tuple, list)) else (value,)
    for i, each in enumerate(values):
        name = f"result {i}" if several else "the result"
        if isinstance(each, (tuple, list)):
            short = f"result {i}" if several else "result"
            yield from ((f"{short}[{k}]", element) for k, element in enumerate(each))
        else:
            yield name, each


def content(tensor: Tensor) -> bytes:
    """The bytes of a tensor's elements, in row-major order."""
    return bytes(tensor.device.backend.to_host(tensor.array))


def memory(tensor: Tensor) -> bytes:
    """The bytes of the whole memory that a tensor lies in."""
    root = tensor.array if tensor.storage is None else tensor.storage.memory.array
    return bytes(tensor.device.backend.to_host(root))


def around(tensor: Tensor) -> bytes | None:
    """The bytes of the memory around the elements; None where it cannot be told."""
    if tensor.storage is None:
        return b""
    root = tensor.storage.memory.array
    if not isinstance(root, np.ndarray) or not root.flags.c_contiguous or root.itemsize != tensor.array.itemsize:
        return None
    outside = np.ones(root.size, bool)
    steps = tuple(s for s in tensor.stride())
    places = (
        np.lib.stride_tricks.as_strided(outside[tensor.storage_offset() :], tuple(tensor.shape), steps)
        if tensor.numel()
        else outside[:0]
    )
    places[...] = False
    return root.reshape(-1)[outside].tobytes()


def share(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors lie in one memory, as tensors or as arrays that nobody told Turnout of."""
    if a is b or a.shares_memory_with(b):
        return True
    first, second = a.array, b.array
    return isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and bool(np.may_share_memory(first, second))


def overlap(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have an element in common, or may have: views of one memory need not."""
    if a is b or not share(a, b):
        return a is b
    if not isinstance(a.array, np.ndarray) or not isinstance(b.array, np.ndarray):
        return True
    try:
        return bool(np.shares_memory(a.array, b.array, max_work=10_000))  # type: ignore[arg-type] # any number of steps
    except np.exceptions.TooHardError:
        return True


class Before:
    """The arguments of a call as they were before it."""

    def __init__(self, op: Operator, args: Args) -> None:
        self.tensors = list(tensors(op, args))
        self.lists = [(a.name, v, list(v)) for a, v in zip(op.schema.arguments, args, strict=True) if isinstance(v, list)]
        self.facts = [facts(t) for _, t in self.tensors]
        self.content = [content(t) for _, t in self.tensors]
        self.memory = [memory(t) for _, t in self.tensors]
        self.around = [around(t) for _, t in self.tensors]
        self.versions = [t.version() for _, t in self.tensors]

    def changed(self) -> Iterator[tuple[int, str, str]]:
        """(position, name, what): "content", or "memory" around the elements."""
        for i, (name, tensor) in enumerate(self.tensors):
            if (tuple(tensor.shape) == self.facts[i]["shape"] and content(tensor) != self.content[i]) or (
                self.around[i] is None and memory(tensor) != self.memory[i]
            ):
                yield i, name, "content"
            if self.around[i] is not None and around(tensor) != self.around[i]:
                yield i, name, "memory"


def facts(tensor: Tensor) -> dict[str, Any]:
    """What a call must leave as it was, apart from the elements."""
    return {
        "shape": tuple(tensor.shape),
        "strides": tuple(tensor.stride()),
        "dtype": tensor.dtype,
        "requires_grad": tensor.requires_grad,
    }


def modes() -> dict[str, Any]:
    """The state of the process or thread that a call must leave as it was."""
    return {"the gradient mode": turnout.is_grad_enabled(), "the default dtype": turnout.get_default_dtype()}


def put_back(state: dict[str, Any]) -> None:
    """Set a state that `modes` returned."""
    turnout.set_grad_enabled(state["the gradient mode"])
    turnout.set_default_dtype(state["the default dtype"])
