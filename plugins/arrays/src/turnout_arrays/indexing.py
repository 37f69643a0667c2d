"""Kernels that move elements: indexing and gathering, sorting, joining, triangles.

`along` turns an index along a dim into the array module's full index tuple: an open grid with the index array in one dim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

from turnout.errors import DimError
from turnout_arrays.numbers import POSTPONING, store
from turnout_aten.errors import arguments as texts
from turnout_aten.kernels.rows import Move, Row
from turnout_aten.tensor.checks import are_postponed, note

Table = dict[str, Any]

# Up to this many elements, a grid of indices costs less than their places in memory, and the mask of a triangle is kept.
FEW = 1 << 10
# Up to this many, their least and largest are found faster in Python.
FEW_NUMBERS = 16
# Indices that are computed at a time: half a megabyte, which a cache holds until they are used.
_BLOCK = 1 << 16
# Rows of a triangle at a time: outside the square with their diagonals they are copied or zero.
_ROWS = 64
_ALL, _BACKWARDS = slice(None), slice(None, None, -1)


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    return selecting(xp) | shaping(xp)


def along(xp: Any, shape: tuple[int, ...], dim: int, index: Any) -> tuple[Any, ...]:
    """The index tuple that replaces the coordinate `dim` of a grid of `shape` by `index`, of that shape."""
    if len(shape) == 1:
        return (index,)
    # Where arrays are on one of several devices, each has a grid of its own.
    one_place = getattr(index, "device", "").__class__ is str
    grid = (_kept_grid if one_place and index.size <= FEW else _grid)(xp, shape)
    dim %= len(shape)
    return (*grid[:dim], index, *grid[dim + 1 :])


def around(xp: Any, shape: tuple[int, ...], dim: int, like: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    """What stands in front of and behind an index of few elements in `along`; None where that is made anew each time.

    `like` is an array of the same device.
    """
    if getattr(like, "device", "").__class__ is not str or not shape:
        return None
    grid = _kept_grid(xp, shape) if len(shape) > 1 else (None,)
    dim %= len(shape)
    return grid[:dim], grid[dim + 1 :]


def _grid(xp: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The index tuple of all elements, an array for each dim."""
    last = len(shape) - 1
    return tuple([xp.arange(length).reshape((1,) * i + (length,) + (1,) * (last - i)) for i, length in enumerate(shape)])


_kept_grid = lru_cache(64)(_grid)  # nobody writes into it


def flat_places(xp: Any, shape: tuple[int, ...], dim: int, index: Any) -> Iterator[tuple[slice, Any]]:
    """(part of dim 0 of `index`, its elements' places in the flat memory of a row-major array of `shape`), part by part.

    The indices are along `dim` and in range. One index per element costs a third of the time of an index tuple.
    """
    dim %= len(shape)
    step, steps = 1, [0] * len(shape)
    for i in range(len(shape) - 1, -1, -1):
        steps[i] = step
        step *= shape[i]
    lengths = [1 if i == dim else n for i, n in enumerate(index.shape)]
    base: Any = xp.zeros((1,) * len(shape), xp.int64)
    for i, length in enumerate(lengths):
        base = base + (xp.arange(length) * steps[i]).reshape((1,) * i + (-1,) + (1,) * (len(shape) - i - 1))
    rows = max(1, _BLOCK * index.shape[0] // max(index.size, 1))
    for first in range(0, index.shape[0], rows):
        part = slice(first, first + rows)
        yield part, xp.multiply(index[part], steps[dim], dtype=xp.int64) + (base if dim == 0 else base[part])


def take(xp: Any, source: Any, places: Any, dim: int | None, out: Any) -> Any:
    """Fill `out` with elements whose indices are in range. NumPy's usual mode would go through a buffer; CuPy has no modes."""
    if wraps_indices(xp):
        xp.take(source, places, axis=dim, out=out)
    else:
        source.take(places, dim, out, "clip")
    return out


@cache
def wraps_indices(xp: Any) -> bool:
    """Whether the array module takes an index out of range for another one. Asking NumPy for what it has not costs 1 us."""
    return bool(getattr(xp, "wraps_indices", False))


def tuple_of(
    xp: Any, name: str, indices: Any, shape: tuple[int, ...], check: Callable[..., None] | None = None
) -> tuple[Any, ...]:
    """The optional index tensors of `index`; None is a whole dim. Raises DimError where the array module would wrap around, if
    another check does not find that later."""
    if wraps_indices(xp):
        (check or check_indices)(xp, name, indices, shape)
    found: tuple[Any, ...] = ()
    for index in indices:  # no comprehension: a frame before Python 3.12
        found += (_ALL if index is None else index,)
    return found


def check_indices(xp: Any, name: str, indices: Any, shape: tuple[int, ...]) -> None:
    """Raise DimError for the first index tensor with an index out of bounds."""
    for index, length in zip(indices, shape, strict=False):
        if index is None or not index.size:
            continue
        outside = xp.any((index < -length) | (index >= length))
        if xp.__class__ in POSTPONING and are_postponed():
            note(outside.value())
        elif bool(outside):
            wrong = int(index[(index < -length) | (index >= length)].reshape(-1)[0])
            raise DimError(texts.out_of_bounds(name, wrong, length))


def in_range(xp: Any, name: str, index: Any, length: int) -> None:
    """Raise DimError unless all indices are in 0..length-1, because array modules count negative ones from the end."""
    if not index.size:
        return
    if xp.__class__ in POSTPONING and are_postponed():
        return note(xp.any((index < 0) | (index >= length)).value())
    if index.size <= FEW_NUMBERS:  # as Python numbers: 300 ns, 1,000 by a reduction
        numbers = index.reshape(-1).tolist()
        if min(numbers) >= 0 and max(numbers) < length:
            return
    # As unsigned numbers, negative ones are above all others: one pass, no array in between.
    unsigned = index.view(f"u{index.dtype.itemsize}") if index.dtype.kind == "i" else index
    if int(xp.maximum.reduce(unsigned, None)) >= length:
        low, high = int(xp.min(index)), int(xp.max(index))
        wrong = low if low < 0 else high
        raise DimError(texts.out_of_bounds(name, wrong, length))


def readable(xp: Any) -> tuple[Callable[..., None], Callable[..., None]]:
    """`in_range` and `check_indices` for reads. A module with `expect_indices(name, index, low, high)` has its device look, and
    says later what was wrong: until then a read at a wrong index gives any element."""
    expect = getattr(xp, "expect_indices", None)
    if expect is None:
        return in_range, check_indices

    def expect_each(xp: Any, name: str, indices: Any, shape: tuple[int, ...]) -> None:
        for index, length in zip(indices, shape, strict=False):
            if index is not None:
                expect(name, index, -length, length)

    return lambda xp, name, index, length: expect(name, index, 0, length), expect_each


def selecting(xp: Any) -> Table:
    """Reading by index."""
    in_range, check_indices = readable(xp)

    def index(self: Any, indices: Any, out: Any) -> Any:
        if not out.size:  # nothing is read, so no index is wrong
            return out
        try:
            first = indices[0] if len(indices) == 1 else None
            if first is not None and first.dtype.kind == "i" and self.ndim and not wraps_indices(xp):
                out[...] = self.take(first, 0)  # 200 ns, 900 by index
                return out
            return store(xp, out, self[tuple_of(xp, "index", indices, self.shape, check_indices)])
        except IndexError:
            check_indices(xp, "index", indices, self.shape)
            raise

    def index_select(self: Any, dim: int, index: Any, out: Any) -> Any:
        if not self.shape:
            return store(xp, out, self.reshape(out.shape))
        in_range(xp, "index_select", index, self.shape[dim])
        index = index.reshape(-1)
        if out.flags.c_contiguous and self.size and out is not self:
            return take(xp, self, index, dim, out)
        return store(xp, out, xp.take(self, index, dim))

    def gather(self: Any, dim: int, index: Any, sparse_grad: bool, out: Any) -> Any:
        if not index.size:
            return store(xp, out, xp.empty(index.shape, self.dtype))
        if not self.shape or not index.shape:
            in_range(xp, "gather", index, self.size)
            return store(xp, out, self.reshape(-1)[index])
        in_range(xp, "gather", index, self.shape[dim])
        few = index.size <= FEW
        if few and self.ndim == 1 and out.flags.c_contiguous and out is not self:
            return take(xp, self, index, 0, out)
        if few or not self.flags.c_contiguous or not out.flags.c_contiguous:
            return store(xp, out, self[along(xp, index.shape, dim, index)])
        flat = self.reshape(-1)
        for part, places in flat_places(xp, self.shape, dim, index):
            take(xp, flat, places, None, out[part])
        return out

    def prepared_select(outs: Any, self: Any, dim: int, index: Any) -> Any:
        """For few indices: one check of them, and one call."""
        plain = self.shape and index.ndim == 1 and 0 < index.size <= FEW_NUMBERS and self.size and not wraps_indices(xp)
        if not plain or index.dtype.char != "l" or outs[0].dtype.name != self.dtype.name:
            return None
        length = self.shape[dim]

        def selected(self: Any, dim: int, index: Any, out: Any) -> Any:
            numbers = index.tolist()
            if min(numbers) < 0 or max(numbers) >= length or out is self:
                return index_select(self, dim, index, out)
            return self.take(index, dim, out, "clip")

        return selected

    def prepared_gather(outs: Any, self: Any, dim: int, index: Any, sparse_grad: bool) -> Any:
        """The same for vectors."""
        select = prepared_select(outs, self, 0, index) if self.ndim == 1 else None
        return select and (lambda self, dim, index, sparse_grad, out: select(self, 0, index, out))

    def nonzero(self: Any) -> Any:
        return self.nonzero()[0].reshape(-1, 1) if self.ndim == 1 else xp.ascontiguousarray(xp.argwhere(self).T).T

    # fmt: off
    return {
        "index.Tensor_out": Row(index, quiet=True, program=Move.PICK),
        "index_select.out": Row(index_select, quiet=True, prepares=prepared_select),
        "gather.out":       Row(gather, quiet=True, prepares=prepared_gather),
        "nonzero":          nonzero,
    }
    # fmt: on


def joining(xp: Any) -> Any:
    """The array module's `concatenate`. NumPy's own does not look for classes that override it."""
    return getattr(xp.concatenate, "__wrapped__", xp.concatenate)


def shaping(xp: Any) -> Table:
    """Joining, reversing, triangles."""
    join = joining(xp)

    def cat(tensors: Any, dim: int, out: Any) -> Any:
        return join(tensors, dim, out=out, casting="unsafe")

    def flip(self: Any, dims: Any, out: Any) -> Any:
        if len(dims) and self.shape:
            index = [_ALL] * self.ndim
            for dim in dims:
                index[dim] = _BACKWARDS
            self = self[tuple(index)]
        return store(xp, out, self)

    def bands(self: Any, diagonal: int) -> Iterator[tuple[Any, Any, Any, int]]:
        """For some rows at a time: (the part left of their diagonals, the part with them, the part right, the diagonal there)."""
        rows, columns = self.shape[-2:]
        for first in range(0, rows, _ROWS):
            last = min(first + _ROWS, rows)
            start, stop = (min(max(n + diagonal, 0), columns) for n in (first, last))
            left, middle, right = slice(0, start), slice(start, stop), slice(stop, columns)
            yield (*[(..., slice(first, last), part) for part in (left, middle, right)], first + diagonal - start)

    def triangle_of(rows: int, columns: int, diagonal: int) -> Any:
        return xp.tri(rows, columns, diagonal, bool)

    # A value is not kept: it may be one of a program that its module traces.
    lower: Any = triangle_of if xp.__class__ in POSTPONING else lru_cache(64)(triangle_of)

    def masked(self: Any, mask: Any, out: Any) -> Any:
        out.fill(0)
        xp.copyto(out, self, where=mask)
        return out

    def is_few(self: Any, diagonal: int) -> bool:
        return bool(self.size <= FEW) and -FEW <= diagonal <= FEW

    def tril(self: Any, diagonal: int, out: Any) -> Any:
        if is_few(self, diagonal):
            return masked(self, lower(*self.shape[-2:], diagonal), out)
        for left, middle, right, at in bands(self, diagonal):
            out[left] = self[left]
            out[middle] = xp.tril(self[middle], at)
            out[right] = 0
        return out

    def triu(self: Any, diagonal: int, out: Any) -> Any:
        if is_few(self, diagonal):
            return masked(self, ~lower(*self.shape[-2:], diagonal - 1), out)
        for left, middle, right, at in bands(self, diagonal):
            out[left] = 0
            out[middle] = xp.triu(self[middle], at)
            out[right] = self[right]
        return out

    place = getattr(xp.copyto, "__wrapped__", xp.copyto)  # without the search for classes that override it

    def prepared(*, below: bool) -> Any:
        """What prepares plans of few elements: the mask is always the same."""

        def prepares(outs: Any, self: Any, diagonal: int) -> Any:
            if self.ndim < 2 or not is_few(self, diagonal):
                return None
            mask = lower(*self.shape[-2:], diagonal) if below else ~lower(*self.shape[-2:], diagonal - 1)

            def triangle(self: Any, diagonal: int, out: Any) -> Any:
                out.fill(0)
                place(out, self, where=mask)
                return out

            return triangle

        return prepares

    # fmt: off
    return {
        "cat.out":          Row(cat, quiet=True, program=Move.JOIN),
        "flip.out":         Row(flip, quiet=True),
        "tril.out":         Row(tril, quiet=True, prepares=prepared(below=True)),
        "triu.out":         Row(triu, quiet=True, prepares=prepared(below=False)),
    }
    # fmt: on
