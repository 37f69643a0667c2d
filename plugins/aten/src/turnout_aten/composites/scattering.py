"""Writes by index, in terms of index_put and scatter_reduce."""

from __future__ import annotations

from typing import Any

from turnout.dtypes import bool_, int64
from turnout.errors import ArgumentError, DimError, DTypeError, IndexKindError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.assertions import holds, is_checked
from turnout_aten.composites.layouts import lying
from turnout_aten.dtypes import check_held
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import expands_to, numel, wrap_dim
from turnout_aten.shapes.layouts import as_operands
from turnout_aten.shapes.scattering import REDUCTIONS
from turnout_aten.tensor.tensor import Tensor

# ---- put: by index into the flattened tensor


def put(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """self with `source` written at indices into the flattened tensor; negative indices count from the end."""
    _check_put(self, index, source)
    flat = aten.reshape(self, (-1,))
    places, values = aten.reshape(index, (-1,)), aten.reshape(source, (-1,))
    if not places.numel():
        return aten.clone(self)
    put_in = aten.index_put(flat, [places], values, accumulate)
    return lying(aten.reshape(put_in, self.shape), as_operands(self.shape, self))


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """put, written into self."""
    aten.copy_(self, put(self, index, source, accumulate))
    return self


def _check_put(self: Tensor, index: Tensor, source: Tensor) -> None:
    if index.dtype is not int64:
        raise DTypeError(texts.not_int64("put", "index", index.dtype))
    if source.dtype is not self.dtype:
        raise DTypeError(texts.wrong_dtype("put", "source", self.dtype, source.dtype))
    if numel(index.shape) != numel(source.shape):
        raise ShapeError(f"put: 'index' has {numel(index.shape)} elements, 'source' has {numel(source.shape)}; they must agree")
    if numel(index.shape) and not numel(self.shape):
        raise DimError("put: cannot write elements into an empty tensor")


# ---- whole slices along a dim


def _at(name: str, self: Tensor, dim: int, index: Tensor) -> tuple[Tensor, list[Tensor | None]]:
    """self with at least one dim, and the indices of `index_put` that select along `dim`."""
    d = wrap_dim(dim, self.ndim)
    if index.dtype is not int64:
        raise IndexKindError(texts.not_int64(name, "index", index.dtype))
    if index.ndim > 1:
        raise DimError(texts.not_one_dim(name, "index", index.shape))
    return _at_least_1d(self), [*[None] * d, _at_least_1d(index)]


def _at_least_1d(self: Tensor) -> Tensor:
    return self if self.shape else aten.view(self, (1,))


def index_fill(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """self with one value in the slices at `index` along `dim`."""
    target, named = _named("index_fill", self, dim, index)
    made: Tensor = aten.masked_fill__Tensor(target, named, _filling(self, value))
    return lying(made, as_operands(target.shape, target)) if self.shape else aten.view(made, ())


def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """index_fill, written into self."""
    target, named = _named("index_fill_", self, dim, index)
    aten.masked_fill___Tensor(target, named, _filling(self, value))
    return self


def _named(name: str, self: Tensor, dim: int, index: Tensor) -> tuple[Tensor, Tensor]:
    """self with at least one dim, and a mask of the slices along `dim`, so that a repeated index counts once in gradients."""
    target, at = _at(name, self, dim, index)
    d = len(at) - 1
    none = aten.new_zeros(index, (target.shape[d],), dtype=bool_)
    mask = aten.index_put(none, at[d:], aten.new_ones(index, (), dtype=bool_))
    return target, aten.view(mask, (*(1,) * d, target.shape[d], *(1,) * (target.ndim - d - 1)))


def _filling(self: Tensor, value: Any) -> Tensor:
    """The value as a 0-dim tensor of self's dtype."""
    if not isinstance(value, Tensor):
        if isinstance(value, complex) and not self.is_complex():
            raise DTypeError(texts.complex_into("index_fill", self.dtype))
        check_held(self.dtype, value, "index_fill", "value")
        return aten.new_full(self, (), value)
    if value.shape:
        raise ShapeError(texts.no_number("index_fill", value.shape))
    if value.is_complex() and not self.is_complex():
        raise DTypeError(texts.complex_into("index_fill", self.dtype))
    return aten.to__dtype(value, self.dtype)


def index_copy(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """self with the slices of `source` written at `index` along `dim`."""
    target, at, values = _copied("index_copy", self, dim, index, source)
    made: Tensor = lying(aten.index_put(target, at, values))
    return made if self.shape else aten.view(made, ())


def index_copy_(self: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """index_copy, written into self."""
    target, at, values = _copied("index_copy_", self, dim, index, source)
    aten.index_put_(target, at, values)
    return self


def _copied(name: str, self: Tensor, dim: int, index: Tensor, source: Tensor) -> tuple[Tensor, list[Tensor | None], Tensor]:
    target, at = _at(name, self, dim, index)
    count = numel(index.shape)
    if source.dtype is not self.dtype:
        raise DTypeError(texts.wrong_dtype(name, "source", self.dtype, source.dtype))
    d = len(at) - 1
    shape = target.shape
    if self.shape and not source.shape and count != 1:
        raise DimError(f"{name}: a 0-dim 'source' needs an 'index' of one element, got {count}")
    if source.ndim != self.ndim and self.shape and source.shape:
        raise DimError(f"{name}: 'source' must have {self.ndim} dimensions, got shape {list(source.shape)}")
    values = _at_least_1d(source)
    wanted = (*shape[:d], count, *shape[d + 1 :])
    if values.shape != wanted:
        error = DimError if len(values.shape) == len(wanted) and values.shape[d] != count else ShapeError
        raise error(texts.wrong_shape(name, "source", wanted, source.shape))
    return target, at, values


# ---- by mask


def masked_scatter(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """self, broadcast with the mask, with the elements of `source` in order where the mask is true.

    Each true element reads `source` at the number of true elements before it. So shapes do not depend on values.
    """
    self, mask = aten.broadcast_tensors([self, mask])
    return lying(_scattered("masked_scatter", self, mask, source))


def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """masked_scatter, written into self, to which the mask is broadcast."""
    if not expands_to(mask.shape, self.shape):
        raise ShapeError(texts.not_expanded("masked_scatter_", "mask", mask.shape, self.shape))
    aten.copy_(self, _scattered("masked_scatter_", self, aten.expand(mask, self.shape), source))
    return self


def _scattered(name: str, self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    if mask.dtype is not bool_:
        raise DTypeError(texts.not_bool(name, "mask", mask.dtype))
    if source.dtype is not self.dtype:
        raise DTypeError(texts.wrong_dtype(name, "source", self.dtype, source.dtype))
    available = numel(source.shape)
    if not available or not numel(self.shape):
        if is_checked(self) and not holds(aten.logical_not(mask)):
            raise ShapeError(f"{name}: 'mask' has more true elements than 'source' has elements: 0")
        return aten.clone(self, memory_format="contiguous_format")
    order = aten.sub__Scalar(aten.cumsum(aten.reshape(mask, (-1,)), 0), 1)
    order = aten.clamp(order, 0)
    try:
        taken = aten.index_select(aten.reshape(source, (-1,)), 0, order)
    except IndexError:
        raise ShapeError(f"{name}: 'mask' has more true elements than 'source' has elements: {available}") from None
    return aten.where__self(mask, aten.reshape(taken, self.shape), self)


# ---- scattering with a reduction

BY_INDEX = tuple(word for word in REDUCTIONS if word != "sum")  # what `index_reduce` takes: `index_add` adds
OF_SCATTER = {"add": "sum", "multiply": "prod"}  # what `scatter` takes, and calls by other words


def scatter_with(self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """self with the elements of `src` added or multiplied in at `index` along `dim`."""
    return aten.scatter_reduce__two(self, dim, index, src, _reduction(reduce))


def scatter_with_(self: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str) -> Tensor:
    """scatter_with, written into self."""
    aten.scatter_reduce___two(self, dim, index, src, _reduction(reduce))
    return self


def scatter_value_with(self: Tensor, dim: int, index: Tensor, value: Any, *, reduce: str) -> Tensor:
    """scatter_with for a number."""
    return scatter_with(self, dim, index, aten.new_full(self, index.shape, value), reduce=reduce)


def scatter_value_with_(self: Tensor, dim: int, index: Tensor, value: Any, *, reduce: str) -> Tensor:
    """scatter_with for a number, written into self."""
    return scatter_with_(self, dim, index, aten.new_full(self, index.shape, value), reduce=reduce)


def _reduction(reduce: str) -> str:
    found = OF_SCATTER.get(reduce)
    if found is None:
        raise ArgumentError(texts.not_one_of("scatter", "reduce", OF_SCATTER, reduce))
    return found


def index_reduce(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """self with the slices of `source` reduced into the slices at `index` along `dim`."""
    places = _spread("index_reduce", self, dim, index, source, reduce)
    return aten.scatter_reduce__two(self, dim, places, source, reduce, include_self=include_self)


def index_reduce_(self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """index_reduce, written into self."""
    places = _spread("index_reduce_", self, dim, index, source, reduce)
    aten.scatter_reduce___two(self, dim, places, source, reduce, include_self=include_self)
    return self


def _spread(name: str, self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> Tensor:
    """`index` expanded to one index per element of `source`."""
    if reduce not in BY_INDEX:
        raise ArgumentError(texts.not_one_of(name, "reduce", BY_INDEX, reduce))
    target, at = _along(name, self, dim, index)
    shape = target.shape
    wanted = (*shape[:at], numel(index.shape), *shape[at + 1 :]) if self.shape else source.shape
    if source.shape != wanted:
        raise ShapeError(texts.wrong_shape(name, "source", wanted, source.shape))
    apart = [1] * len(wanted)
    if apart:
        apart[at] = -1
    return aten.expand(aten.view(index, apart), wanted) if numel(index.shape) else aten.new_empty(index, wanted)


def _along(name: str, self: Tensor, dim: int, index: Tensor) -> tuple[Tensor, int]:
    d = wrap_dim(dim, self.ndim)
    if index.dtype.name not in ("int64", "int32"):
        raise DTypeError(f"{name}: 'index' must be an int32 or int64 tensor, got {index.dtype.name}")
    if index.ndim > 1:
        raise DimError(texts.not_one_dim(name, "index", index.shape))
    return _at_least_1d(self), d
