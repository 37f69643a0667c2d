"""How rules bring values into one form: the batch dim in front, and as many dims behind it as the call needs.

A rule is `rule(size, dims, *values) -> (value, bdim)`: `values` are the call's arguments in schema order with batched tensors
replaced by their values, `dims` says where each one's batch dim is (None where there is none, a list for a list of tensors). For
several results `value` is a list or tuple. Rules call operators and nothing else, so they can be differentiated, cast and traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from turnout_aten import operators as aten
from turnout_aten.kernels.binding import shape_function
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.levels import moved
from turnout_batched.values import example

Rule = Callable[..., tuple[Any, Any]]
Dims = Sequence[Any]


def family(rule: Callable[..., tuple[Any, Any]]) -> Any:
    """Mark a rule that serves several operators. It gets the operator's call as its first argument."""
    rule.takes_call = True  # type: ignore[attr-defined]
    return rule


def front(value: Tensor, bdim: int | None, size: int) -> Tensor:
    """Move the batch dim to the front, or repeat the tensor if it has none."""
    if bdim is None:
        return aten.expand(value, (size, *value.array.shape))
    return value if bdim == 0 else moved(value, bdim, 0)


def logical_ndim(value: Tensor, bdim: int | None) -> int:
    """How many dims one example has."""
    return len(value.array.shape) - (bdim is not None)


def logical_shape(value: Tensor, bdim: int | None) -> tuple[int, ...]:
    """The shape of one example."""
    shape: tuple[int, ...] = value.array.shape
    return shape if bdim is None else shape[:bdim] + shape[bdim + 1 :]


def padded(value: Tensor, bdim: int | None, ndim: int) -> Tensor:
    """Make a tensor broadcast with batches of `ndim`-dim examples: the batch dim in front, then dims of length 1."""
    shape = value.array.shape
    if bdim is None:
        return value
    if bdim:
        value = moved(value, bdim, 0)
        shape = value.array.shape
    missing = ndim + 1 - len(shape)
    if missing > 0:
        value = aten.view(value, (shape[0], *(1,) * missing, *shape[1:]))
    return value


def wrapped_dim(dim: int, ndim: int) -> int:
    """The dim counted from the front. An example without dims counts as having 1. Raises DimError if the dim is out of range."""
    ndim = ndim or 1
    if not -ndim <= dim < ndim:
        from turnout_aten.shapes.extents import wrap_dim

        return wrap_dim(dim, ndim)
    return dim + ndim if dim < 0 else dim


def at_least_1d(value: Tensor) -> tuple[Tensor, bool]:
    """The batch with examples of at least one dim, and whether that dim was added."""
    if len(value.array.shape) > 1:
        return value, False
    made: Tensor = aten.unsqueeze(value, 1)
    return made, True


def places(size: int, like: Tensor, ndim: int) -> Tensor:
    """The index of each example: 0 to size - 1 along dim 0 of a tensor with `ndim` dims."""
    from turnout.dtypes import int64

    return aten.view(aten.arange(size, dtype=int64, device=like.device), (size, *(1,) * (ndim - 1)))


# ---- what the operator refuses for one example: a batch of such examples may look like something that it takes


def examples(dims: Dims, values: Sequence[Any]) -> list[Any]:
    """What stands for one example of each value, for functions that read only shapes and dtypes."""
    return [
        examples(d, v) if isinstance(d, list) else v if d is None else example(v, d) for v, d in zip(values, dims, strict=True)
    ]


def fits(variant: str, dims: Dims, values: Sequence[Any]) -> Any:
    """What the shape function of a structured operator, named by its out variant, says or raises for one example.

    For rules that compute by something that takes more than the operator.
    """
    return shape_function(f"aten::{variant}")(*examples(dims, values))


def tried(call: Any, size: int, dims: Dims, values: Sequence[Any]) -> None:
    """Call the operator for one example, to see whether it refuses that, in its own words."""

    def one(value: Any, bdim: int | None) -> Any:
        if bdim is None:
            return value
        return aten.select__int(value, bdim, 0) if size else aten.new_zeros(value, logical_shape(value, bdim))

    call(*[one(v, d) for v, d in zip(values, dims, strict=True)])


def refused(call: Any, size: int, dims: Dims, values: Sequence[Any]) -> NoReturn:
    """Let the operator refuse one example of this rank."""
    tried(call, size, dims, values)
    raise AssertionError("the operator takes a rank that its batching rule does not know")
