"""Operators on lists of tensors, `_foreach_add_(parameters, gradients)`: one kernel for all of them.

The operator without `_foreach_` is called for each element of the lists; arguments that are no lists are the same in each call.
The few operators that call something else are in `_OF_ELEMENTS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import ArgumentError
from turnout.registry import REGISTRY
from turnout_aten import operators as aten

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator
    from turnout_aten.tensor.tensor import Tensor

    Call = Callable[..., Any]


def each(op: Operator, ks: int, args: tuple[Any, ...]) -> list[Any] | None:
    """The results of all elements, or None where the first list is written.

    Raises ArgumentError for lists of different lengths and for empty ones.
    """
    given = [_numbers(a.name, a.type.canonical, value) for a, value in zip(op.schema.arguments, args, strict=True)]
    lists = {a.name: v for a, v in zip(op.schema.arguments, given, strict=True) if isinstance(v, (list, tuple))}
    counts = {len(v) for v in lists.values()}
    if counts == {0} or len(counts) != 1:
        facts = " and ".join(f"{len(v)} in {name!r}" for name, v in lists.items())
        raise ArgumentError(f"{op.name}: expected lists of one length, which is at least 1, got {facts}")
    (count,) = counts
    of_element = _of_element(op)
    keywords = {a.name for a in op.schema.arguments if a.kwarg_only}
    made: list[Any] = []
    for i in range(count):
        element = {a.name: v[i] if a.name in lists else v for a, v in zip(op.schema.arguments, given, strict=True)}
        made.append(of_element(*[v for n, v in element.items() if n not in keywords], **{n: element[n] for n in keywords}))
    return None if op.schema.arguments[0].is_write else made


def _numbers(name: str, kind: str, value: Any) -> Any:
    """The argument, and a tensor of numbers, one for each element, as a list of them."""
    return value.tolist() if name == "scalars" and kind == "Tensor" else value


def _of_element(op: Operator) -> Call:
    """What is called for each element."""
    name = op.name.removeprefix("_foreach_")
    stem = name.removesuffix("_")
    call = REGISTRY.packet_handle("aten", name)
    if stem in ("addcmul", "addcdiv"):
        return lambda self, tensor1, tensor2, value: call(self, tensor1, tensor2, value=value)
    if stem in _OF_NUMBERS and op.overload in ("Scalar", "ScalarList"):
        return REGISTRY.packet_handle("aten", name.replace(stem, _OF_NUMBERS[stem]))
    return _OF_ELEMENTS.get(name, call)


def _norm(self: Tensor, ord: Any, dtype: Any) -> Any:
    return aten.linalg_vector_norm(self, ord, None, False, dtype=dtype)


def _power_sum(self: Tensor, ord: Any, dtype: Any) -> Any:
    return aten.sum(aten.pow__Tensor_Scalar(aten.abs(self), ord), dtype=dtype)


def _maximum_(self: Tensor, other: Tensor) -> Any:
    return aten.copy_(self, aten.maximum(self, other))


def _minimum_(self: Tensor, other: Tensor) -> Any:
    return aten.copy_(self, aten.minimum(self, other))


# Operators that take no number are called by the name of those that do.
_OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}
_OF_ELEMENTS: dict[str, Call] = {"norm": _norm, "powsum": _power_sum, "maximum_": _maximum_, "minimum_": _minimum_}
