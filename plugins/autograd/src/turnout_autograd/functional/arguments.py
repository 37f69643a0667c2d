"""Arguments of `turnout.autograd.functional`: a tensor or a tuple of them, and vectors that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from turnout.errors import ArgumentError, CallError
from turnout.registry import find_operator
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.transforms.arguments import of_dtype

Function = Callable[..., Any]
ones_like = find_operator("aten::ones_like").stub
REVERSE, FORWARD = "reverse-mode", "forward-mode"


def check_strategy(name: str, strategy: str, create_graph: bool, strict: bool, vectorize: bool) -> None:
    if strategy not in (REVERSE, FORWARD):
        raise ArgumentError(errors.transforms.strategy(name, strategy))
    if vectorize and strict:
        raise ArgumentError(errors.transforms.not_together(name, "strict=True", "vectorize=True"))
    if strategy == FORWARD and not vectorize:
        raise ArgumentError(errors.transforms.not_together(name, f"strategy='{FORWARD}'", "vectorize=False"))
    if strategy == FORWARD and create_graph:
        raise ArgumentError(errors.transforms.not_together(name, f"strategy='{FORWARD}'", "create_graph=True"))


RESULTS = "the results of the function"


def as_tuple(name: str, what: str, value: Any) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether it is a tuple, and it as one. Raises CallError for what is neither a tensor nor a tuple of tensors."""
    several = isinstance(value, tuple)
    values: tuple[Any, ...] = value if several else (value,)
    for each in values:
        if not isinstance(each, Tensor):
            raise CallError(errors.transforms.tensors_wanted(name, what, each if several else value))
    return several, values


def like_given(several: bool, values: Sequence[Any]) -> Any:
    return tuple(values) if several else values[0]


def fitting_vector(name: str, v: Any, like: Sequence[Tensor], whose: str) -> Sequence[Tensor]:
    """`v` as tensors that fit `like`; 1 where it is omitted and the function returns one number."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise errors.GradientError(errors.transforms.vector_needed(name, whose))
        return [ones_like(like[0].detach())]
    values = as_tuple(name, "v", v)[1]
    if len(values) != len(like):
        raise errors.GradientError(errors.transforms.vector_count(name, len(values), len(like)))
    fitted = []
    for i, (value, tensor) in enumerate(zip(values, like, strict=True)):
        if value.shape != tensor.shape:
            raise errors.GradientError(errors.transforms.vector_shape(name, i, value, tensor))
        fitted.append(of_dtype(name, f"tensor {i} of 'v'", value, tensor))
    return fitted
