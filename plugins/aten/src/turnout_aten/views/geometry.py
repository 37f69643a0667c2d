"""The geometry of view operators.

A geometry function takes shape, strides and offset (in elements) and the operator's arguments. It returns the same three for the
view, or a list of such triples for an operator with several outputs. `kernels` makes kernels of these functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import DimError, ShapeError
from turnout.operators.values import is_symbol
from turnout_aten.composites.endings import element
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import contiguous_strides, numel, reach_of, wrap_dim, wrap_dims
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_aten.views.kernels import nothing, one_view, several_views, view_in_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    Ints = tuple[int, ...]
    Geometry = tuple[Ints, Ints, int]


# ---- the same elements in another shape


@element("alias")
def alias(ks: int, self: Tensor) -> Tensor:
    """Another handle on the same array, so no geometry is needed."""
    return self.new_alias(self.array, self.storage_offset())


def viewed_strides(shape: Ints, strides: Ints, wanted: Ints) -> Ints | None:
    """The strides of shape `wanted` over the same elements, or None if no strides give them in that order.

    Both shapes have the same number of elements. Adjacent dims of the old shape that leave no gap in memory form a block; every
    block must split into whole new dims.

    # differs from torch: the stride of a dim of length 1, on which no element depends, may be another number after `expand`,
    `view` and `reshape`.
    """
    row_major = contiguous_strides(shape)
    if strides == row_major or 0 in shape:
        return contiguous_strides(wanted)
    made = [1] * len(wanted)
    d = len(wanted) - 1
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    i = len(old) - 1
    while i >= 0:
        length, step = old[i]
        while i > 0 and old[i - 1][1] == old[i][0] * old[i][1]:
            i -= 1
            length *= old[i][0]
        while length > 1 or (d >= 0 and wanted[d] == 1):
            if d < 0 or length % wanted[d]:
                return None
            made[d] = step
            step *= wanted[d]
            length //= wanted[d]
            d -= 1
        i -= 1
    # The remaining leading dims have length 1; they get row-major strides, as in a new tensor.
    while d >= 0:
        made[d] = made[d + 1] * wanted[d + 1] if d + 1 < len(wanted) else 1
        d -= 1
    return tuple(made)


def inferred_shape(size: Sequence[int], count: int, name: str = "view") -> Ints:
    """The shape with -1 replaced by the inferred length. Raises ShapeError if the shape cannot hold `count` elements."""
    known = 1
    unknown = None
    for d, n in enumerate(size):
        if n >= 0:
            known *= n
        elif n == -1 and unknown is None:
            unknown = d
        else:
            why = "only one length can be -1" if n == -1 else f"{n} is not a length"
            raise ShapeError(f"{name}: shape {list(size)}: {why}")
    if unknown is None:
        if known != count:
            raise ShapeError(f"{name}: shape {list(size)} does not hold {count} elements")
        return tuple(size)
    if known == 0:
        raise ShapeError(f"{name}: shape {list(size)}: -1 can be any length when another one is 0")
    if count % known:
        raise ShapeError(f"{name}: shape {list(size)} does not hold {count} elements")
    return (*size[:unknown], count // known, *size[unknown + 1 :])


@one_view("view")
def view(shape: Ints, strides: Ints, offset: int, size: Sequence[int]) -> Geometry:
    """The elements in another shape, without a copy; one length may be -1."""
    wanted = inferred_shape(size, numel(shape))
    made = viewed_strides(shape, strides, wanted)
    if made is None:
        raise ShapeError(
            f"view: shape {list(wanted)} needs a copy of shape {list(shape)} with strides {list(strides)}; use reshape"
        )
    return wanted, made, offset


def unsafe_view(ks: int, self: Tensor, size: Sequence[int]) -> Tensor:
    """`view` of a new tensor that has no other owner: the result owns the memory."""
    array, device = self.array, self.device
    backend = device.backend
    if backend.view_array is not None:
        try:
            way, shape, steps, start, _ = view.in_one_frame[array.shape, array.strides, array.itemsize, 0, (size,)]
            if way is None:
                made = backend.view_array(shape, array.dtype, array, start, steps)
            else:
                made = array.reshape(way) if way.__class__ is tuple else way(array)
            return wrap(made, device)
        except (BufferError, OverflowError, TypeError, ValueError):
            pass  # nothing in it, or refused: the general way raises the error
    shape, strides, _ = view.geometry(array.shape, backend.strides(array), 0, size)
    return wrap(backend.strided(array, shape, strides, 0), device)


@one_view("expand")
def expand(shape: Ints, strides: Ints, offset: int, size: Sequence[int], implicit: bool = False) -> Geometry:
    """Dims of length 1 repeated, and new dims in front, all with stride 0; -1 keeps a length."""
    lead = len(size) - len(shape)
    if lead < 0:
        raise ShapeError(f"expand: shape {list(shape)} has more dimensions than the requested {list(size)}")
    lengths, steps = [], []
    for d, n in enumerate(size):
        if d < lead:
            if n < 0:
                raise ShapeError(f"expand: {list(size)}: a new dimension needs a length, got {n} at dim {d}")
            lengths.append(n)
            steps.append(0)
            continue
        own = shape[d - lead]
        if n in (-1, own):
            lengths.append(own)
            steps.append(strides[d - lead])
        elif own == 1 and n >= 0:
            lengths.append(n)
            steps.append(0)
        else:
            raise ShapeError(f"expand: shape {list(shape)} does not expand to {list(size)}: {own} against {n} at dim {d}")
    return tuple(lengths), tuple(steps), offset


# ---- dims reordered, added or removed


@one_view("permute")
def permute(shape: Ints, strides: Ints, offset: int, dims: Sequence[int]) -> Geometry:
    """Dims in the given order."""
    n = len(shape)
    if len(dims) != n:
        raise ShapeError(f"permute: {list(dims)} must name each of the {n} dimensions of shape {list(shape)}")
    order = wrap_dims(dims, n)
    return tuple([shape[d] for d in order]), tuple([strides[d] for d in order]), offset


@one_view("transpose")
def transpose_int(shape: Ints, strides: Ints, offset: int, dim0: int, dim1: int) -> Geometry:
    """Two dims exchanged."""
    n = len(shape)
    a, b = wrap_dim(dim0, n), wrap_dim(dim1, n)
    if a == b:
        return shape, strides, offset
    lengths, steps = list(shape), list(strides)
    lengths[a], lengths[b] = lengths[b], lengths[a]
    steps[a], steps[b] = steps[b], steps[a]
    return tuple(lengths), tuple(steps), offset


def turned(shape: Ints, strides: Ints, offset: int) -> Geometry:
    """The transpose of a matrix; a tensor of fewer dims is unchanged."""
    if len(shape) > 2:
        raise ShapeError(f"t: takes at most 2 dimensions, got shape {list(shape)}; use transpose or permute")
    return shape[::-1], strides[::-1], offset


_t = one_view("t")(turned)


def t(ks: int, self: Tensor) -> Tensor:
    """`t` with a shortcut for matrices, because products and their gradients call it often."""
    array = self.array
    turned = self.device.backend.transposed(array) if len(array.shape) == 2 else None
    if turned is None:
        return _t(ks, self)
    made = wrap(turned, self.device)
    made.storage = self.storage or self.shared_storage()
    made.offset = self.offset
    return made


t.remembered, t.in_one_frame, t.does = _t.remembered, _t.in_one_frame, _t.does  # type: ignore[attr-defined]  # a function takes any attribute


@one_view("unsqueeze")
def unsqueeze(shape: Ints, strides: Ints, offset: int, dim: int) -> Geometry:
    """A dim of length 1 inserted at `dim`."""
    at = wrap_dim(dim, len(shape) + 1)
    step = shape[at] * strides[at] if at < len(shape) else 1
    return (*shape[:at], 1, *shape[at:]), (*strides[:at], step, *strides[at:]), offset


def _is_one(length: Any) -> bool:
    """Whether a dim goes. A length that is not known must be told to be 1 or not, because the number of dims depends on it."""
    return length.is_exactly(1) if is_symbol(length) else length == 1


def _without(shape: Ints, strides: Ints, offset: int, dims: Sequence[int]) -> Geometry:
    kept = [d for d, n in enumerate(shape) if d not in dims or not _is_one(n)]
    return tuple([shape[d] for d in kept]), tuple([strides[d] for d in kept]), offset


@one_view("squeeze")
def squeeze(shape: Ints, strides: Ints, offset: int) -> Geometry:
    """All dims of length 1 removed."""
    return _without(shape, strides, offset, range(len(shape)))


@one_view("squeeze")
def squeeze_dim(shape: Ints, strides: Ints, offset: int, dim: int) -> Geometry:
    """One dim removed if its length is 1."""
    return _without(shape, strides, offset, (wrap_dim(dim, len(shape)),))


@one_view("squeeze")
def squeeze_dims(shape: Ints, strides: Ints, offset: int, dim: Sequence[int]) -> Geometry:
    """The given dims removed where their length is 1."""
    return _without(shape, strides, offset, wrap_dims(dim, len(shape)) if dim else ())


# ---- some of the elements


@one_view("select")
def select_int(shape: Ints, strides: Ints, offset: int, dim: int, index: int) -> Geometry:
    """One index of a dim; the dim is removed."""
    if not shape:
        raise DimError("select: a 0-dim tensor has no dimension to select from")
    d = dim if 0 <= dim < len(shape) else wrap_dim(dim, len(shape))
    n = shape[d]
    if is_symbol(index) or is_symbol(n):
        symbol: Any = index if is_symbol(index) else n
        index = symbol.index_of(n, index, d)
    elif not -n <= index < n:
        raise DimError(texts.no_such_index("select", index, d, n))
    at = offset + (index + n if index < 0 else index) * strides[d]
    if not d:
        return shape[1:], strides[1:], at
    return shape[:d] + shape[d + 1 :], strides[:d] + strides[d + 1 :], at


@one_view("slice")
def slice_Tensor(
    shape: Ints, strides: Ints, offset: int, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Geometry:
    """start:end:step of a dim; bounds as in Python, the step is positive."""
    if not shape:
        raise DimError("slice: a 0-dim tensor has no dimension to slice")
    if step <= 0:
        raise ShapeError(texts.not_positive("slice", "step", step))
    d = wrap_dim(dim, len(shape))
    n = shape[d]
    symbol: Any = next((v for v in (n, start, end, step) if is_symbol(v)), None)
    if symbol is None:
        first, last, _ = slice(start, end).indices(n)
        count = max(0, (last - first + step - 1) // step)
    else:
        first, count = symbol.slice_of(n, start, end, step)
    at = offset + first * strides[d]
    return (*shape[:d], count, *shape[d + 1 :]), (*strides[:d], strides[d] * step, *strides[d + 1 :]), at


@one_view("diagonal")
def diagonal(shape: Ints, strides: Ints, offset: int, offset_: int = 0, dim1: int = 0, dim2: int = 1) -> Geometry:
    """The diagonal of two dims as a new last dim, `offset_` above the main diagonal."""
    n = len(shape)
    a, b = wrap_dim(dim1, n), wrap_dim(dim2, n)
    if a == b:
        raise ShapeError(f"diagonal: dim1 and dim2 must be different dimensions, got {dim1} and {dim2}")
    count = min(shape[a], shape[b] - offset_) if offset_ >= 0 else min(shape[a] + offset_, shape[b])
    count = max(count, 0)
    at = offset
    if count:
        at += offset_ * strides[b] if offset_ >= 0 else -offset_ * strides[a]
    kept = [d for d in range(n) if d not in (a, b)]
    lengths = (*[shape[d] for d in kept], count)
    return lengths, (*[strides[d] for d in kept], strides[a] + strides[b]), at


@one_view("unfold")
def unfold(shape: Ints, strides: Ints, offset: int, dimension: int, size: int, step: int) -> Geometry:
    """Windows of `size` elements along a dim, `step` apart. The dim counts the windows; a new last dim holds their elements."""
    n = len(shape)
    d = wrap_dim(dimension, n)
    length, stride = (shape[d], strides[d]) if shape else (1, 1)
    if not 0 <= size <= length:
        raise ShapeError(f"unfold: size must be 0 to {length}, the length of dim {d}, got {size}")
    if step <= 0:
        raise ShapeError(texts.not_positive("unfold", "step", step))
    if not shape:
        return (size,), (1,), offset
    windows = (length - size) // step + 1
    return ((*shape[:d], windows, *shape[d + 1 :], size), (*strides[:d], step * stride, *strides[d + 1 :], stride), offset)


def as_strided(ks: int, self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """Any shape and strides over the tensor's whole storage. Raises ShapeError for a view that reaches outside it."""
    if len(size) != len(stride):
        raise ShapeError(texts.unequal_lengths("as_strided", size, stride))
    if any(n < 0 for n in (*size, *stride)):
        raise ShapeError(f"as_strided: size {list(size)} and stride {list(stride)} must not be negative")
    root = self.shared_storage().array
    offset = self.offset if storage_offset is None else storage_offset
    backend = self.device.backend
    reach = offset + reach_of(size, stride)
    available = backend.storage_size(root)
    if offset < 0 or (0 not in size and reach > available):
        raise ShapeError(
            f"as_strided: size {list(size)}, stride {list(stride)} and offset {offset} reach element {reach - 1} of a storage "
            f"with {available}"
        )
    if 0 in size:
        return self.new_alias(nothing(self, tuple(size)), offset)
    return self.new_alias(backend.strided(root, tuple(size), tuple(stride), offset), offset)


# ---- several views


@several_views("unbind")
def unbind_int(shape: Ints, strides: Ints, offset: int, dim: int = 0) -> list[Geometry]:
    """One view per index of a dim."""
    if not shape:
        raise DimError("unbind: a 0-dim tensor has no dimension to unbind")
    d = wrap_dim(dim, len(shape))
    lengths, steps = shape[:d] + shape[d + 1 :], strides[:d] + strides[d + 1 :]
    return [(lengths, steps, offset + i * strides[d]) for i in range(shape[d])]


@several_views("split")
def split_Tensor(shape: Ints, strides: Ints, offset: int, split_size: int, dim: int = 0) -> list[Geometry]:
    """Parts of length `split_size` along a dim; the last part may be shorter."""
    if not shape:
        raise ShapeError("split: a 0-dim tensor has no dimension to split")
    d = wrap_dim(dim, len(shape))
    n = shape[d]
    if split_size < 0 or (split_size == 0 and n):
        raise ShapeError(texts.not_positive("split", "split_size", split_size))
    if not n:
        return [(shape, strides, offset)]
    return _parts(shape, strides, offset, [min(split_size, n - i) for i in range(0, n, split_size)], d)


@several_views("split_with_sizes")
def split_with_sizes(shape: Ints, strides: Ints, offset: int, split_sizes: Sequence[int], dim: int = 0) -> list[Geometry]:
    """Parts of the given sizes, which add up to the dim's length."""
    if not shape:
        raise ShapeError("split_with_sizes: a 0-dim tensor has no dimension to split")
    d = wrap_dim(dim, len(shape))
    if any(n < 0 for n in split_sizes) or sum(split_sizes) != shape[d]:
        raise ShapeError(
            f"split_with_sizes: sizes {list(split_sizes)} must add up to {shape[d]}, the length of dim {d}, and not be negative"
        )
    return _parts(shape, strides, offset, split_sizes, d)


def _parts(shape: Ints, strides: Ints, offset: int, sizes: Sequence[int], d: int) -> list[Geometry]:
    found = []
    at = offset
    for n in sizes:
        found.append(((*shape[:d], n, *shape[d + 1 :]), strides, at))
        at += n * strides[d]
    return found


# ---- in-place views

t_ = view_in_place("t_", turned)
transpose_ = view_in_place("transpose_", transpose_int.geometry)
squeeze_ = view_in_place("squeeze_", squeeze.geometry)
squeeze_dim_ = view_in_place("squeeze_", squeeze_dim.geometry)
squeeze_dims_ = view_in_place("squeeze_", squeeze_dims.geometry)
unsqueeze_ = view_in_place("unsqueeze_", unsqueeze.geometry)


def as_strided_(ks: int, self: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """as_strided in place."""
    made = as_strided(ks, self, size, stride, storage_offset)
    self.array = made.array
    self.offset = made.offset
    return self
