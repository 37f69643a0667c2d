"""Inputs and outputs of a checked function: as real numbers, as random ones, as lists of floats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

import turnout
from turnout.dtypes import FLOAT
from turnout.errors import ArgumentError
from turnout.state import below_adinplaceorview
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.errors import GradientError


class GradcheckError(GradientError):
    """A gradient differs from the difference quotient."""


def listed(values: Any) -> tuple[Any, ...]:
    return (values,) if isinstance(values, Tensor) else tuple(values)


def in_real_numbers(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function and its arguments with a last dim of two real numbers for every complex one that is checked."""
    replaced = [is_checked(a) and a.is_complex() for a in args]

    def call(*values: Any) -> Any:
        found = func(*[turnout.view_as_complex(v) if r else v for v, r in zip(values, replaced, strict=True)])
        each = [found] if isinstance(found, Tensor) else list(found)
        return [turnout.view_as_real(t) if isinstance(t, Tensor) and t.is_complex() else t for t in each]

    return call, tuple([real_leaf(a) if r else a for a, r in zip(args, replaced, strict=True)])


def real_leaf(value: Tensor) -> Tensor:
    """A complex tensor as a leaf of real numbers, any other as it is."""
    return turnout.view_as_real(value.detach()).requires_grad_() if value.is_complex() else value


def random_like(tensor: Tensor, random: Random, spread: bool = False) -> Tensor:
    values = [random.uniform(-1, 1) for _ in range(tensor.numel())]
    made = turnout.tensor(values, dtype=tensor.dtype, device=tensor.device).reshape(tensor.shape)
    if spread:
        made = turnout.stack([made, made], -1)[..., 0]
    return made.detach().requires_grad_()


def is_checked(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def check_tracked(name: str, args: Sequence[Any]) -> None:
    if not any(map(is_checked, args)):
        raise ArgumentError(f"{name}: no input requires a gradient")


def floating_outputs(func: Callable[..., Any], args: Sequence[Any]) -> list[Tensor]:
    """The outputs of float or complex dtype."""
    found = func(*args)
    each = [found] if isinstance(found, Tensor) else list(found)
    return [t for t in each if isinstance(t, Tensor) and t.dtype.category >= FLOAT]


def write_uncounted(place: Tensor, value: Tensor) -> None:
    """Write without counting it: the memory is restored in the end, so graphs that were recorded before may still use it."""
    with below_adinplaceorview():
        place.copy_(value)


def flat(gradient: Tensor | None, like: Tensor) -> list[float]:
    if gradient is None:
        return [0.0] * like.numel()
    return gradient.detach().reshape((-1,)).tolist()


def near(a: list[float], b: list[float]) -> bool:
    """Whether two ways to the same gradient agree, up to rounding; NaN only with NaN."""
    return all(abs(x - y) <= 1e-9 + 1e-9 * abs(y) or (x != x and y != y) for x, y in zip(a, b, strict=True))


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def cells(tensor: Tensor) -> Iterator[Tensor]:
    """A 0-dim view per element, in row-major order."""
    for position in product(*map(range, tensor.shape)):
        cell = tensor
        for at in position:
            cell = cell.select(0, at)
        yield cell
