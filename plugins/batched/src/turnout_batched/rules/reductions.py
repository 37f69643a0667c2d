"""Rules for reductions, softmax, sorting and whatever else works along dims of one tensor.

An example without dims counts as one of length 1 there, as the operators themselves have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod as product
from typing import Any

from turnout.generated import operators as aten
from turnout.tensors import Tensor
from turnout_batched.rules.alignment import Dims, at_least_1d, family, front, logical_ndim, wrapped_dim


def _dims(dim: Sequence[int] | None, x: Tensor, ndim: int) -> list[int]:
    """The dims of the batch to reduce; all of the example's for None or none."""
    if not dim:
        return list(range(1, len(x.array.shape)))
    return [wrapped_dim(d, ndim) + 1 for d in dim]


def _ready(size: int, dims: Dims, value: Tensor) -> tuple[Tensor, int]:
    """The batch in front, examples with a dim; and how many dims an example has in truth."""
    x = front(value, dims[0], size)
    ndim = len(x.array.shape) - 1
    return (x, ndim) if ndim else (aten.unsqueeze(x, 1), 0)


def _kept(x: Tensor, ndim: int) -> Tensor:
    """A result whose reduced dims were kept: none where the example has none."""
    return x if ndim else aten.squeeze__dim(x, 1)


@family
def over_dims(
    call: Any, size: int, dims: Dims, self: Tensor, dim: Any = None, keepdim: bool = False, *rest: Any
) -> tuple[Tensor, int]:
    """(self, dim[], keepdim, ...)."""
    x, ndim = _ready(size, dims, self)
    made = call(x, _dims(dim, x, ndim), keepdim, *rest)
    return (_kept(made, ndim) if keepdim else made), 0


def sum_all(size: int, dims: Dims, self: Tensor, dtype: Any) -> tuple[Tensor, int]:
    x, ndim = _ready(size, dims, self)
    return aten.sum__dim_IntList(x, _dims(None, x, ndim), False, dtype=dtype), 0


def sum_dims(size: int, dims: Dims, self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> tuple[Tensor, int]:
    x, ndim = _ready(size, dims, self)
    made = aten.sum__dim_IntList(x, _dims(dim, x, ndim), keepdim, dtype=dtype)
    return (_kept(made, ndim) if keepdim else made), 0


def mean_all(size: int, dims: Dims, self: Tensor, dtype: Any) -> tuple[Tensor, int]:
    x, ndim = _ready(size, dims, self)
    return aten.mean__dim(x, _dims(None, x, ndim), False, dtype=dtype), 0


def mean_dims(size: int, dims: Dims, self: Tensor, dim: Any, keepdim: bool, dtype: Any) -> tuple[Tensor, int]:
    x, ndim = _ready(size, dims, self)
    made = aten.mean__dim(x, _dims(dim, x, ndim), keepdim, dtype=dtype)
    return (_kept(made, ndim) if keepdim else made), 0


def flat(size: int, dims: Dims, value: Tensor) -> Tensor:
    """[size, elements of an example]."""
    x = front(value, dims[0], size)
    shape = x.array.shape
    return x if len(shape) == 2 else aten.reshape(x, (shape[0], product(shape[1:])))


def prod_all(size: int, dims: Dims, self: Tensor, dtype: Any) -> tuple[Tensor, int]:
    return aten.prod__dim_int(flat(size, dims, self), 1, False, dtype=dtype), 0


def prod_dim(size: int, dims: Dims, self: Tensor, dim: int, keepdim: bool, dtype: Any) -> tuple[Tensor, int]:
    x, ndim = _ready(size, dims, self)
    made = aten.prod__dim_int(x, wrapped_dim(dim, ndim) + 1, keepdim, dtype=dtype)
    return (_kept(made, ndim) if keepdim else made), 0


def max_all(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    return aten.amax(flat(size, dims, self), (1,)), 0


def min_all(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    return aten.amin(flat(size, dims, self), (1,)), 0


def any_all(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    return aten.any__dim(flat(size, dims, self), 1), 0


def all_all(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    return aten.all__dim(flat(size, dims, self), 1), 0


@family
def over_one_dim(call: Any, size: int, dims: Dims, self: Tensor, dim: int, keepdim: bool) -> tuple[Any, int]:
    """(self, dim, keepdim): one result or several."""
    x, ndim = _ready(size, dims, self)
    made = call(x, wrapped_dim(dim, ndim) + 1, keepdim)
    if keepdim and not ndim:
        made = [_kept(t, 0) for t in made] if isinstance(made, (list, tuple)) else _kept(made, 0)
    return made, 0


@family
def position(call: Any, size: int, dims: Dims, self: Tensor, dim: int | None, keepdim: bool) -> tuple[Tensor, int]:
    """argmax, argmin: the position in the whole example without a dim."""
    if dim is None:
        made = call(flat(size, dims, self), 1, False)
        return (aten.view(made, (size, *(1,) * (len(self.array.shape) - 1))) if keepdim else made), 0
    x, ndim = _ready(size, dims, self)
    made = call(x, wrapped_dim(dim, ndim) + 1, keepdim)
    return (_kept(made, ndim) if keepdim else made), 0


@family
def spread(
    call: Any, size: int, dims: Dims, self: Tensor, dim: Any = None, correction: Any = None, keepdim: bool = False
) -> tuple[Tensor, int]:
    """var and std."""
    x, ndim = _ready(size, dims, self)
    made = call(x, _dims(dim, x, ndim), correction, keepdim)
    return (_kept(made, ndim) if keepdim else made), 0


@family
def along_dim(call: Any, size: int, dims: Dims, self: Tensor, dim: int, *rest: Any) -> tuple[Tensor, int]:
    """(self, dim, ...) with a result in self's shape."""
    x, ndim = _ready(size, dims, self)
    return _kept(call(x, wrapped_dim(dim, ndim) + 1, *rest), ndim), 0


@family
def running(call: Any, size: int, dims: Dims, self: Tensor, dim: int, dtype: Any) -> tuple[Tensor, int]:
    """cumsum and cumprod."""
    x, ndim = _ready(size, dims, self)
    return _kept(call(x, wrapped_dim(dim, ndim) + 1, dtype), ndim), 0


@family
def running_extreme(call: Any, size: int, dims: Dims, self: Tensor, dim: int) -> tuple[list[Tensor], int]:
    """cummax and cummin: (values, indices)."""
    x, ndim = _ready(size, dims, self)
    return [_kept(t, ndim) for t in call(x, wrapped_dim(dim, ndim) + 1)], 0


def aminmax(size: int, dims: Dims, self: Tensor, dim: int | None, keepdim: bool) -> tuple[list[Tensor], int]:
    if dim is None:
        made = aten.aminmax(flat(size, dims, self), dim=1)
        shape = (size, *(1,) * (len(self.array.shape) - 1)) if keepdim else (size,)
        return [aten.view(t, shape) for t in made], 0
    x, ndim = _ready(size, dims, self)
    made = aten.aminmax(x, dim=wrapped_dim(dim, ndim) + 1, keepdim=keepdim)
    return [_kept(t, ndim) if keepdim else t for t in made], 0


def kthvalue(size: int, dims: Dims, self: Tensor, k: int, dim: int, keepdim: bool) -> tuple[list[Tensor], int]:
    x, ndim = _ready(size, dims, self)
    made = aten.kthvalue(x, k, wrapped_dim(dim, ndim) + 1, keepdim)
    return [_kept(t, ndim) if keepdim else t for t in made], 0


def vector_norm(
    size: int, dims: Dims, self: Tensor, ord: Any, dim: Any, keepdim: bool, dtype: Any
) -> tuple[Tensor, int]:
    x, ndim = _ready(size, dims, self)
    made = aten.linalg_vector_norm(x, ord, _dims(dim, x, ndim), keepdim, dtype=dtype)
    return (_kept(made, ndim) if keepdim else made), 0


def nonzero_static(size: int, dims: Dims, self: Tensor, wanted: int, fill_value: int) -> tuple[Tensor, int]:
    """Example by example: each one's indices are counted and cut off on their own."""
    x = front(self, dims[0], size)
    examples = [aten.nonzero_static(aten.select__int(x, 0, i), size=wanted, fill_value=fill_value) for i in range(size)]
    return aten.stack(examples), 0


def searchsorted(
    size: int, dims: Dims, sequence: Tensor, values: Any, out_int32: bool, right: bool, side: Any, sorter: Any
) -> tuple[Tensor, int]:
    """One row of values for each sequence: an example's values are one row where its sequence has one dim."""
    kwargs = {"out_int32": out_int32, "right": right, "side": side}
    several = logical_ndim(sequence, dims[0]) > 1
    s = front(sequence, dims[0], size)
    order = None if sorter is None else aten.contiguous(front(sorter, dims[-1], size))
    if not isinstance(values, Tensor):
        values = aten.scalar_tensor(values, dtype=sequence.dtype, device=sequence.device)
    v = front(values, dims[1], size)
    shape = v.array.shape
    rows = v if several else aten.reshape(v, (size, product(shape[1:])))
    found = aten.searchsorted__Tensor(aten.contiguous(s), aten.contiguous(rows), sorter=order, **kwargs)
    return aten.reshape(found, shape), 0


@family
def softmax_backward(
    call: Any, size: int, dims: Dims, grad_output: Tensor, output: Tensor, dim: int, dtype: Any
) -> tuple[Tensor, int]:
    g, added = at_least_1d(front(grad_output, dims[0], size))
    y, _ = at_least_1d(front(output, dims[1], size))
    made = call(g, y, wrapped_dim(dim, len(g.array.shape) - 1) + 1, dtype)
    return (aten.squeeze__dim(made, 1) if added else made), 0


def topk(
    size: int, dims: Dims, self: Tensor, k: int, dim: int, largest: bool, sorted: bool
) -> tuple[list[Tensor], int]:
    x, ndim = _ready(size, dims, self)
    made = aten.topk(x, k, wrapped_dim(dim, ndim) + 1, largest, sorted)
    return [_kept(t, ndim) for t in made], 0


def sort(size: int, dims: Dims, self: Tensor, stable: Any, dim: int, descending: bool) -> tuple[list[Tensor], int]:
    x, ndim = _ready(size, dims, self)
    made = aten.sort__stable(x, stable=stable, dim=wrapped_dim(dim, ndim) + 1, descending=descending)
    return [_kept(t, ndim) for t in made], 0


def flip(size: int, dims: Dims, self: Tensor, over: Sequence[int]) -> tuple[Tensor, int]:
    x, ndim = _ready(size, dims, self)
    return _kept(aten.flip(x, [wrapped_dim(d, ndim) + 1 for d in over]), ndim), 0


@family
def triangle(call: Any, size: int, dims: Dims, self: Tensor, diagonal: int) -> tuple[Tensor, int]:
    """The last two dims: the batch in front is one more batch dim. An example of fewer dims is refused by the operator."""
    x = front(self, dims[0], size)
    return call(x if len(x.array.shape) > 2 else aten.select__int(x, 0, 0), diagonal), 0
