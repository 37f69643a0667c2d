"""Arrangements of elements: grids, combinations, diagonals, rolls, rotations, repetitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.dtypes import int32, int64
from turnout.errors import ArgumentError, DimError, DTypeError, ShapeError
from turnout_aten import operators as aten
from turnout_aten.composites.assertions import holds
from turnout_aten.composites.conversions import converted
from turnout_aten.composites.endings import shortcut
from turnout_aten.errors import arguments as texts
from turnout_aten.kernels.standing import Standing
from turnout_aten.shapes.extents import wrap_dim
from turnout_aten.tensor.checks import are_postponed
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


# ---- grids


def meshgrid(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Matrix indexing: tensor i varies along dim i."""
    return meshgrid_indexing(tensors, indexing="ij")


def meshgrid_indexing(tensors: Sequence[Tensor], *, indexing: str) -> list[Tensor]:
    """The coordinates of a grid: for each axis, a tensor with the shape of the grid. "xy" exchanges the first two dims."""
    if indexing not in ("ij", "xy"):
        raise ArgumentError(f'meshgrid: indexing must be "ij" or "xy", got {indexing!r}')
    if not tensors:
        raise ShapeError(texts.needs_a_tensor("meshgrid"))
    for i, t in enumerate(tensors):
        if t.ndim > 1:
            raise ShapeError(f"meshgrid: tensors[{i}] must have at most 1 dimension, got shape {list(t.shape)}")
        if t.dtype is not tensors[0].dtype:
            raise DTypeError(texts.different_dtypes("meshgrid", tensors[0].dtype, t.dtype))
    swap = indexing == "xy" and len(tensors) > 1
    axes = [tensors[1], tensors[0], *tensors[2:]] if swap else list(tensors)
    shape = [t.numel() for t in axes]
    made = []
    for i, t in enumerate(axes):
        apart = [1] * len(shape)
        apart[i] = -1 if shape[i] else 0
        made.append(aten.expand(aten.view(t, apart), shape))
    if swap:
        made[0], made[1] = made[1], made[0]
    return made


def cartesian_prod(tensors: Sequence[Tensor]) -> Tensor:
    """All combinations of one element from each vector, one per row. A single vector is returned as it is."""
    if not tensors:
        raise ShapeError(texts.needs_a_tensor("cartesian_prod"))
    for i, t in enumerate(tensors):
        if t.ndim != 1:
            raise ShapeError(f"cartesian_prod: tensors[{i}] must have 1 dimension, got shape {list(t.shape)}")
        if t.dtype is not tensors[0].dtype:
            raise DTypeError(texts.different_dtypes("cartesian_prod", tensors[0].dtype, t.dtype))
    if len(tensors) == 1:
        return tensors[0]
    return aten.stack([aten.flatten__using_ints(g) for g in meshgrid(tensors)], 1)


def combinations(self: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, one per row, in the order of their indices."""
    if self.ndim != 1:
        raise ShapeError(f"combinations: needs a tensor of 1 dimension, got shape {list(self.shape)}")
    if r < 0:
        raise ArgumentError(texts.negative("combinations", "r", r))
    if r == 0:
        return aten.new_empty(self, (0,))
    from itertools import combinations as chosen
    from itertools import combinations_with_replacement as repeated

    n = self.shape[0]
    places = [p for row in (repeated if with_replacement else chosen)(range(n), r) for p in row]
    made = aten.index_select(self, 0, _places(self, places))
    return aten.view(made, (-1 if places else 0, r))


def _places(like: Tensor, numbers: Sequence[int]) -> Tensor:
    """An int64 tensor of numbers on the device of `like`."""
    from array import array

    from turnout_aten.tensor.tensor import wrap

    raw = array("q", numbers).tobytes()
    return wrap(like.device.backend.from_host(raw, (len(numbers),), int64, like.device), like.device)


# ---- diagonals


def diag(self: Tensor, diagonal: int = 0) -> Tensor:
    """For a vector, a matrix with it on a diagonal and zeros elsewhere. For a matrix, a copy of its diagonal."""
    if self.ndim == 1:
        return aten.diag_embed(self, diagonal)
    if self.ndim == 2:
        return aten.diagonal_copy(self, diagonal)
    raise ShapeError(f"diag: needs a tensor of 1 or 2 dimensions, got shape {list(self.shape)}")


def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dim as the diagonal of two new dims, with zeros elsewhere."""
    n = self.ndim + 1
    a, b = wrap_dim(dim1, n), wrap_dim(dim2, n)
    if a == b:
        raise ShapeError(f"diag_embed: dim1 and dim2 must differ, got {dim1} and {dim2} for {n} dimensions")
    length = self.shape[-1] + abs(offset)
    shape = list(self.shape[:-1])
    for d in sorted((a, b)):
        shape.insert(d, length)
    return aten.diagonal_scatter(aten.new_zeros(self, shape), self, offset, a, b)


def diagflat(self: Tensor, offset: int = 0) -> Tensor:
    """All elements on the diagonal of a matrix."""
    return aten.diag(aten.reshape(self, (-1,)), offset)


# ---- rolls and rotations


_ROLLS = Standing(slice__Tensor="view", cat="join")
_FEW = 1 << 10  # elements


def _roll_at_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """The two parts of few elements in one dim, joined by the array module: nobody sees the views."""

    def roll(ks: int, self: Tensor, shifts: Sequence[int], dims: Sequence[int]) -> Any:
        array, device = self.array, self.device
        backend = device.backend
        plain = self.__class__ is Tensor and ks is self.keys is backend.keys
        ours, join = array.__class__ is backend.array_type, backend.joined
        vector = ours and len(array.shape) == 1 and len(shifts) == 1 and not dims
        if plain and vector and join is not None and backend.view_array is not None and 0 < array.size <= _FEW and _ROLLS(ks):
            at = array.size - shifts[0] % array.size
            return wrap(join([array[at:], array[:at]], 0), device)
        return call(ks, self, shifts, dims)

    return roll


@shortcut(_roll_at_once)
def roll(self: Tensor, shifts: Sequence[int], dims: Sequence[int] = ()) -> Tensor:
    """The elements shifted along dims, wrapping around at the ends. Without dims, shifts the flattened tensor."""
    if not dims and len(shifts) == 1:
        if len(self.array.shape) == 1:
            return _rolled(self, shifts[0], 0)
        return aten.reshape(_rolled(aten.reshape(aten.contiguous(self), (-1,)), shifts[0], 0), self.shape)
    if not shifts or len(shifts) != len(dims):
        raise ShapeError(f"roll: shifts {list(shifts)} and dims {list(dims)} must have the same length, at least 1")
    made = self
    for shift, dim in zip(shifts, dims, strict=True):
        if not self.shape:
            raise DimError(f"roll: dim {dim} is out of range for a 0-dim tensor")
        made = _rolled(made, shift, wrap_dim(dim, self.ndim))
    return made


def _rolled(self: Tensor, shift: int, dim: int) -> Tensor:
    n = self.array.shape[dim]
    at = n - shift % n if n else 0
    return aten.cat([aten.slice__Tensor(self, dim, at, n, 1), aten.slice__Tensor(self, dim, 0, at, 1)], dim)


def rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """The tensor rotated k times by 90 degrees in the plane of two dims, from the first towards the second."""
    if len(dims) != 2:
        raise ShapeError(f"rot90: dims must name two dimensions, got {list(dims)}")
    if self.ndim < 2:
        raise ShapeError(texts.needs_dims("rot90", 2, self.shape))
    a, b = wrap_dim(dims[0], self.ndim), wrap_dim(dims[1], self.ndim)
    if a == b:
        raise ShapeError(texts.named_twice("rot90", dims))
    if k % 4 == 1:
        return aten.transpose__int(aten.flip(self, (b,)), a, b)
    if k % 4 == 2:
        return aten.flip(self, (a, b))
    if k % 4 == 3:
        return aten.transpose__int(aten.flip(self, (a,)), a, b)
    return aten.clone(self, memory_format="contiguous_format")


def fliplr(self: Tensor) -> Tensor:
    """Dim 1 reversed."""
    if self.ndim < 2:
        raise ShapeError(texts.needs_dims("fliplr", 2, self.shape))
    return aten.flip(self, (1,))


def flipud(self: Tensor) -> Tensor:
    """Dim 0 reversed."""
    if self.ndim < 1:
        raise ShapeError("flipud: needs at least 1 dimension, got a 0-dim tensor")
    return aten.flip(self, (0,))


# ---- repetitions


def tile(self: Tensor, dims: Sequence[int]) -> Tensor:
    """repeat that allows fewer repetitions than dims: missing leading ones count as 1."""
    return aten.repeat(self, (*(1,) * (self.ndim - len(dims)), *dims))


def check_repeats(repeats: Tensor) -> None:
    """Raise ShapeError or DTypeError for numbers of repetitions that are no vector of integers."""
    if repeats.ndim != 1:
        raise ShapeError(f"repeat_interleave: 'repeats' must have 1 dimension, got shape {list(repeats.shape)}")
    if repeats.dtype not in (int32, int64):
        raise DTypeError(f"repeat_interleave: 'repeats' must be int32 or int64, got {repeats.dtype.name}")


def repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Tensor:
    """0 repeats[0] times, then 1 repeats[1] times, ...

    Marks where each number begins, and sums the marks.
    """
    check_repeats(repeats)
    if not repeats.numel():
        return aten.new_empty(repeats, (0,))
    total = output_size
    if total is not None and are_postponed():
        holds(aten.ge__Scalar(repeats, 0))
        holds(aten.eq__Scalar(aten.sum(repeats), total))
    elif total is None or repeats.device.backend.has_values:
        if aten._local_scalar_dense(aten.min(repeats)) < 0:
            raise ArgumentError("repeat_interleave: repeats must not be negative")
        total = aten._local_scalar_dense(aten.sum(repeats))
        if output_size not in (None, total):
            raise ShapeError(f"repeat_interleave: output_size is {output_size}, but the result has length {total}")
    # Number i ends where i + 1 begins. Numbers that begin at the end are not in the result.
    begins = aten.slice__Tensor(aten.cumsum(repeats, 0), 0, 0, -1, 1)
    marks = aten.new_zeros(repeats, (total + 1,))
    marks = aten.index_add(marks, 0, begins, aten.new_ones(repeats, begins.shape))
    made: Tensor = aten.cumsum(aten.slice__Tensor(marks, 0, 0, total, 1), 0)
    return converted(made, repeats.dtype)


def repeat_interleave_Tensor(self: Tensor, repeats: Tensor, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each slice along a dim repeated. `repeats` has one number, or one per slice. Without a dim, flattens self first."""
    if dim is None:
        self, dim = aten.reshape(self, (-1,)), 0
    d = wrap_dim(dim, self.ndim)
    length = self.shape[d] if self.shape else 1
    if repeats.ndim > 1 or (repeats.ndim == 1 and repeats.shape[0] not in (1, length)):
        raise ShapeError(
            f"repeat_interleave: 'repeats' must have one number or {length}, the length of dim {d}, "
            f"got shape {list(repeats.shape)}"
        )
    if repeats.ndim == 0 or repeats.shape[0] != length:
        repeats = aten.expand(aten.reshape(repeats, (1,)), (length,))
    places = aten.repeat_interleave__Tensor(repeats, output_size=output_size)
    return aten.index_select(self if self.shape else aten.reshape(self, (1,)), d, places)


def repeat_interleave_int(self: Tensor, repeats: int, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each slice along a dim `repeats` times. Without a dim, flattens self first."""
    if dim is None:
        self, dim = aten.reshape(self, (-1,)), 0
    elif not self.shape:
        self = aten.reshape(self, (1,))
    if repeats < 0:
        raise ArgumentError(texts.negative("repeat_interleave", "repeats", repeats))
    d = wrap_dim(dim, self.ndim)
    shape = self.shape
    total = shape[d] * repeats
    if output_size is not None and output_size != total:
        raise ShapeError(f"repeat_interleave: output_size is {output_size}, but the result has length {total}")
    laid: Any = aten.expand(aten.unsqueeze(self, d + 1), (*shape[: d + 1], repeats, *shape[d + 1 :]))
    laid = aten.clone(laid, memory_format="contiguous_format")
    return aten._unsafe_view(laid, (*shape[:d], total, *shape[d + 1 :]))
