"""Rules for reductions, softmax, sorting and other operators along dims of one tensor.

Reductions along dims have their rule in `classes`.

An example without dims counts as one of length 1 there, as the operators themselves have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from math import prod as product
from typing import Any

from turnout.dtypes import FLOAT
from turnout_aten import operators as aten
from turnout_aten.tensor.tensor import Tensor
from turnout_batched.rules.alignment import Dims, at_least_1d, family, front, wrapped_dim


def example_dims(dim: Sequence[int] | None, x: Tensor, ndim: int) -> list[int]:
    """The dims of the batch to reduce: all dims of the example for None and ()."""
    if not dim:
        return list(range(1, len(x.array.shape)))
    return [wrapped_dim(d, ndim) + 1 for d in dim]


def ready(size: int, dims: Dims, value: Tensor) -> tuple[Tensor, int]:
    """The batch in front with examples of at least one dim, and the number of dims an example really has."""
    x = front(value, dims[0], size)
    ndim = len(x.array.shape) - 1
    return (x, ndim) if ndim else (aten.unsqueeze(x, 1), 0)


def kept(x: Tensor, ndim: int) -> Tensor:
    """Remove the kept dim of a result if the example has no dims."""
    return x if ndim else aten.squeeze__dim(x, 1)


def sum_all(size: int, dims: Dims, self: Tensor, dtype: Any) -> tuple[Tensor, int]:
    x, ndim = ready(size, dims, self)
    return aten.sum__dim_IntList(x, example_dims(None, x, ndim), False, dtype=dtype), 0


def mean_all(size: int, dims: Dims, self: Tensor, dtype: Any) -> tuple[Tensor, int]:
    x, ndim = ready(size, dims, self)
    return aten.mean__dim(x, example_dims(None, x, ndim), False, dtype=dtype), 0


def flat(size: int, dims: Dims, value: Tensor) -> Tensor:
    """[size, elements of an example]."""
    x = front(value, dims[0], size)
    shape = x.array.shape
    return x if len(shape) == 2 else aten.reshape(x, (shape[0], product(shape[1:])))


def prod_all(size: int, dims: Dims, self: Tensor, dtype: Any) -> tuple[Tensor, int]:
    return aten.prod__dim_int(flat(size, dims, self), 1, False, dtype=dtype), 0


def max_all(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    return aten.amax(flat(size, dims, self), (1,)), 0


def min_all(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    return aten.amin(flat(size, dims, self), (1,)), 0


def median_all(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    return _median(flat(size, dims, self), aten.median, aten.median__dim), 0


def nanmedian_all(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    return _median(flat(size, dims, self), aten.nanmedian, aten.nanmedian__dim), 0


def _median(x: Tensor, of_all: Any, of_dim: Any) -> Tensor:
    """The largest of the elements that equal the median, so that they share its gradient."""
    if not x.array.shape[1]:
        return aten.expand(of_all(aten.reshape(x, (-1,))), (x.array.shape[0],))
    found = of_dim(x, 1, True)[0]
    if x.dtype.category < FLOAT:
        return aten.squeeze__dim(found, 1)
    taken = aten.logical_or(aten.eq__Tensor(x, found), aten.ne__Tensor(found, found))
    return aten.amax(aten.where__ScalarOther(taken, x, -inf), (1,))


def any_all(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    return aten.any__dim(flat(size, dims, self), 1), 0


def all_all(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    return aten.all__dim(flat(size, dims, self), 1), 0


@family
def asserted(call: Any, size: int, dims: Dims, self: Tensor, *message: str) -> tuple[None, None]:
    """What holds for every example. An example has one element, or the operator refuses it."""
    x = flat(size, dims, self)
    call(aten.all(x) if x.array.shape[1] == 1 else aten.select__int(x, 0, 0), *message)
    return None, None


@family
def along_dim(call: Any, size: int, dims: Dims, self: Tensor, dim: int, *rest: Any) -> tuple[Any, int]:
    """(self, dim, ...) with results in self's shape."""
    x, ndim = ready(size, dims, self)
    made = call(x, wrapped_dim(dim, ndim) + 1, *rest)
    return ([kept(t, ndim) for t in made] if isinstance(made, (list, tuple)) else kept(made, ndim)), 0


@family
def softmax_backward(
    call: Any, size: int, dims: Dims, grad_output: Tensor, output: Tensor, dim: int, dtype: Any
) -> tuple[Tensor, int]:
    g, added = at_least_1d(front(grad_output, dims[0], size))
    y, _ = at_least_1d(front(output, dims[1], size))
    made = call(g, y, wrapped_dim(dim, len(g.array.shape) - 1) + 1, dtype)
    return (aten.squeeze__dim(made, 1) if added else made), 0


def topk(size: int, dims: Dims, self: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> tuple[list[Tensor], int]:
    x, ndim = ready(size, dims, self)
    made = aten.topk(x, k, wrapped_dim(dim, ndim) + 1, largest, sorted)
    return [kept(t, ndim) for t in made], 0


def sort(size: int, dims: Dims, self: Tensor, stable: Any, dim: int, descending: bool) -> tuple[list[Tensor], int]:
    x, ndim = ready(size, dims, self)
    made = aten.sort__stable(x, stable=stable, dim=wrapped_dim(dim, ndim) + 1, descending=descending)
    return [kept(t, ndim) for t in made], 0


def flip(size: int, dims: Dims, self: Tensor, over: Sequence[int]) -> tuple[Tensor, int]:
    x, ndim = ready(size, dims, self)
    return kept(aten.flip(x, [wrapped_dim(d, ndim) + 1 for d in over]), ndim), 0


@family
def triangle(call: Any, size: int, dims: Dims, self: Tensor, diagonal: int) -> tuple[Tensor, int]:
    """Operators on the last two dims: the batch is one more dim in front. Examples with fewer dims are refused."""
    x = front(self, dims[0], size)
    return call(x if len(x.array.shape) > 2 else aten.select__int(x, 0, 0), diagonal), 0
