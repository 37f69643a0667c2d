"""Kernels that move elements: indexing, gathering and scattering, sorting, joining, triangles.

An index along a dim becomes the array module's full index tuple with `along`: an open grid, the index array in its
place.
"""

from __future__ import annotations

from typing import Any

from turnout.native.wrappers import Row
from turnout_arrays.numbers import number_as, store

Table = dict[str, Any]


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    return selecting(xp) | scattering(xp) | shaping(xp)


def along(xp: Any, shape: tuple[int, ...], dim: int, index: Any) -> tuple[Any, ...]:
    """The index tuple that replaces the coordinate `dim` of a grid of `shape` by `index`, of that shape."""
    grid = []
    for i, length in enumerate(shape):
        grid.append(xp.arange(length).reshape((1,) * i + (length,) + (1,) * (len(shape) - i - 1)))
    grid[dim] = index
    return tuple(grid)


def _tuple_of(xp: Any, indices: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The optional index tensors of `index`: None is a whole dim. Raises IndexError where the array module would wrap around."""
    if getattr(xp, "wraps_indices", False):
        for index, length in zip(indices, shape, strict=False):
            if index is not None and index.size and bool(xp.any((index < -length) | (index >= length))):
                wrong = int(index[(index < -length) | (index >= length)].reshape(-1)[0])
                raise IndexError(f"index {wrong} is out of bounds for a dimension of size {length}")
    return tuple(slice(None) if index is None else index for index in indices)


def _in_range(xp: Any, name: str, index: Any, length: int) -> None:
    """Raise IndexError unless all of `index` is in 0..length-1: array modules count negative ones from the end."""
    if index.size and bool(xp.any((index < 0) | (index >= length))):
        low, high = int(xp.min(index)), int(xp.max(index))
        wrong = low if low < 0 else high
        raise IndexError(f"{name}: index {wrong} is out of bounds for a dimension of size {length}")


def selecting(xp: Any) -> Table:
    """Reading by index."""

    def index(self: Any, indices: Any, out: Any) -> Any:
        return store(xp, out, self[_tuple_of(xp, indices, self.shape)])

    def index_select(self: Any, dim: int, index: Any, out: Any) -> Any:
        if not self.shape:
            return store(xp, out, self.reshape(out.shape))
        _in_range(xp, "index_select", index, self.shape[dim])
        return store(xp, out, xp.take(self, xp.reshape(index, (-1,)), dim))

    def gather(self: Any, dim: int, index: Any, sparse_grad: bool, out: Any) -> Any:
        if not self.shape or not index.shape:
            _in_range(xp, "gather", index, self.size)
            return store(xp, out, self.reshape(-1)[index])
        _in_range(xp, "gather", index, self.shape[dim])
        return store(xp, out, self[along(xp, index.shape, dim, index)])

    def nonzero(self: Any) -> Any:
        return xp.argwhere(self)

    # fmt: off
    return {
        "index.Tensor_out": Row(index),
        "index_select.out": Row(index_select),
        "gather.out":       Row(gather),
        "nonzero":          nonzero,
    }
    # fmt: on


def scattering(xp: Any) -> Table:
    """Writing by index into a copy of `self`. Where an index repeats, sums add up and writes keep the last one."""

    def index_put(self: Any, indices: Any, values: Any, accumulate: bool, out: Any) -> Any:
        places = _tuple_of(xp, indices, self.shape)
        if out is not self:
            store(xp, out, self)
        if accumulate:
            xp.add.at(out, places, values)
        else:
            out[places] = values
        return out

    def start(name: str, self: Any, dim: int, index: Any, out: Any) -> tuple[Any, tuple[Any, ...]]:
        """`out` filled from `self`, with at least one dim, and the places that `index` means in it."""
        if out is not self:
            store(xp, out, self)
        target = out.reshape(1) if not out.shape else out
        index = xp.reshape(index, (-1,)) if not index.shape else index
        _in_range(xp, name, index, target.shape[dim])
        return target, along(xp, index.shape, dim, index)

    def part(src: Any, index: Any) -> Any:
        """The elements of `src` that `index` has a place for."""
        if not src.shape or not index.shape:
            return src.reshape(-1)[: max(index.size, 0)]
        return src[tuple(slice(0, length) for length in index.shape)]

    def scatter_src(self: Any, dim: int, index: Any, src: Any, out: Any) -> Any:
        target, places = start("scatter", self, dim, index, out)
        target[places] = part(src, index)
        return out

    def scatter_value(self: Any, dim: int, index: Any, value: Any, out: Any) -> Any:
        target, places = start("scatter", self, dim, index, out)
        target[places] = number_as(xp, value, out.dtype)
        return out

    def scatter_add(self: Any, dim: int, index: Any, src: Any, out: Any) -> Any:
        target, places = start("scatter_add", self, dim, index, out)
        xp.add.at(target, places, part(src, index))
        return out

    def index_add(self: Any, dim: int, index: Any, source: Any, alpha: Any, out: Any) -> Any:
        if out is not self:
            store(xp, out, self)
        target = out.reshape(1) if not out.shape else out
        _in_range(xp, "index_add", index, target.shape[dim])
        if alpha != 1:
            source = xp.multiply(source, number_as(xp, alpha, source.dtype))
        index = xp.reshape(index, (-1,))
        if not source.shape:
            source = source.reshape(1)
        places = (slice(None),) * (dim % len(target.shape)) + (index,)
        xp.add.at(target, places, source)
        return out

    # fmt: off
    return {
        "index_put.out":     Row(index_put),
        "scatter.src_out":   Row(scatter_src),
        "scatter.value_out": Row(scatter_value),
        "scatter_add.out":   Row(scatter_add),
        "index_add.out":     Row(index_add),
    }
    # fmt: on


def shaping(xp: Any) -> Table:
    """Joining, reversing, triangles, ranges."""

    def cat(tensors: Any, dim: int, out: Any) -> Any:
        # An empty tensor of one dim is left out, whatever the others' shapes.
        arrays = [a for a in tensors if a.shape != (0,)] or tensors
        return xp.concatenate(arrays, dim, out=out, casting="unsafe")

    def flip(self: Any, dims: Any, out: Any) -> Any:
        return store(xp, out, xp.flip(self, tuple(dims)) if len(dims) and self.shape else self)

    def tril(self: Any, diagonal: int, out: Any) -> Any:
        return store(xp, out, xp.tril(self, diagonal))

    def triu(self: Any, diagonal: int, out: Any) -> Any:
        return store(xp, out, xp.triu(self, diagonal))

    def arange(start: Any, end: Any, step: Any, out: Any) -> Any:
        if out.dtype.kind in "iu":
            start, step = int(start), int(step)
            return store(xp, out, xp.arange(out.size, dtype=xp.int64).reshape(out.shape) * step + start)
        return store(xp, out, xp.arange(out.size, dtype=xp.float64).reshape(out.shape) * step + start)

    # fmt: off
    return {
        "cat.out":          Row(cat),
        "flip.out":         Row(flip),
        "tril.out":         Row(tril),
        "triu.out":         Row(triu),
        "arange.start_out": arange,
    }
    # fmt: on
