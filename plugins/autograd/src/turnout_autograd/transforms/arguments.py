"""Arguments of transforms: which of them are differentiated, and whether tangents and cotangents fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from turnout.dtypes import COMPLEX, FLOAT
from turnout_aten import trees
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors

Function = Callable[..., Any]
Argnums = int | Sequence[int]


def check_tensor(name: str, what: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise errors.GradientError(errors.transforms.not_a_tensor(name, what, value))
    return value


def check_floating(name: str, what: str, value: Any) -> Tensor:
    if check_tensor(name, what, value).dtype.category < FLOAT:
        raise errors.KindError(errors.transforms.not_differentiable(name, what, value))
    return value


def select_arguments(
    name: str, func: Function, argnums: Argnums, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], Function]:
    """The chosen arguments, and `func` as a function of only those."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    # differs from torch: the argument `argnums` of function transforms may be a list as well as a tuple.
    if not isinstance(numbers, (tuple, list)) or not numbers or not all(isinstance(n, int) for n in numbers):
        raise errors.GradientError(errors.transforms.argnums_kind(name, argnums))
    if any(not -len(args) <= n < len(args) for n in numbers):
        raise errors.GradientError(errors.transforms.argnums(name, argnums, len(args)))
    at = [n % len(args) for n in numbers]
    if len(set(at)) < len(at):
        raise errors.GradientError(errors.transforms.argnums_twice(name, argnums))

    def function(*chosen: Any) -> Any:
        given = list(args)
        for n, value in zip(at, chosen, strict=True):
            given[n] = value
        return func(*given, **kwargs)

    return [args[n] for n in at], function


def picked(argnums: Argnums, found: tuple[Any, ...]) -> Any:
    return found[0] if isinstance(argnums, int) else tuple(found)


def fitting(name: str, what: str, given: Any, structure: Any, like: Sequence[Tensor]) -> list[Tensor]:
    """Tangents or cotangents, in the structure, shapes and dtypes of what they belong to."""
    leaves, found = trees.flatten(given)
    if found != structure:
        raise errors.GradientError(errors.transforms.other_structure(name, what))
    fitted = []
    for i, (leaf, tensor) in enumerate(zip(leaves, like, strict=True)):
        check_tensor(name, "a " + what, leaf)
        if leaf.shape != tensor.shape:
            raise errors.GradientError(errors.transforms.other_shape(name, what, i, leaf, tensor))
        fitted.append(of_dtype(name, f"{what} {i}", leaf, tensor))
    return fitted


def of_dtype(name: str, place: str, value: Tensor, tensor: Tensor) -> Tensor:
    """`value` in the dtype of the tensor that it belongs to. Raises GradientError for complex numbers where that is real."""
    if value.dtype is tensor.dtype:
        return value
    if value.dtype.category == COMPLEX and tensor.dtype.category != COMPLEX:
        # differs from torch: a complex tangent of a real tensor is an error in `turnout.func.jvp`. PyTorch drops its
        # imaginary part.
        raise errors.GradientError(errors.transforms.other_kind(name, place, value, tensor))
    return value.to(dtype=tensor.dtype)
