"""Slices and elements at indices, triangles, and joined arrays, of all dtypes: kernels move units of so many bytes.

Indices are checked by the kernel that reads at them. It leaves out what one that is out of range would read, and the error is
raised where the host waits next (`turnout_cuda.faults`). `embedding` is composed of `index_select`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from turnout_cuda.floats import Arrays
from turnout_cuda.programs import MOST_BLOCKS, MOVED, NARROW, Programs, name_of

Table = dict[str, Any]
_INDICES = ("int32", "int64")
_THREADS = 256
_BLOCKS = 4096  # blocks that keep any GPU busy: few long rows are divided among so many


def spread(rows: int, width: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """(grid, block) for rows of elements: as many threads along a row as it has elements, the rest of a block for more rows."""
    along = min(1 << (width - 1).bit_length(), _THREADS)
    blocks = min(-(-rows // (_THREADS // along)), MOST_BLOCKS)
    return (blocks, min(-(-width // along), max(_BLOCKS // blocks, 1))), (along, _THREADS // along)


def joined(xp: Any, call: tuple[int, int], indices: Sequence[Any], lengths: Sequence[int]) -> Any:
    """The places in some dims, taken as one, that their indices name; below 0 where an index is out of range. None for indices of
    other dtypes or of several shapes."""
    if any(name_of(each) not in _INDICES or each.shape != indices[0].shape for each in indices):
        return None
    places = xp.empty(indices[0].shape, "int64")
    for then, (index, length) in enumerate(zip(indices, lengths, strict=True)):
        args = (Arrays(xp).packed(index, "int64"), places, places.size, length, int(then > 0), *call)
        xp.programs.over_elements("join_at", "float32", places.size, args)
    return places


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    arrays = Arrays(xp)

    def serves(self: Any, index: Any, out: Any) -> bool:
        """Whether there is something to read, and it is not what is written. A view of more elements than are read stays one."""
        if name_of(index) not in _INDICES or self.dtype != out.dtype or not self.size or not out.size:
            return False
        return bool(self.flags.c_contiguous or self.size <= out.size) and programs.apart(out, self, index)

    def narrow(*given: Any) -> int:
        return int(max([array.size for array in given]) < NARROW)

    def slices(call: tuple[int, int], self: Any, dim: int, index: Any, out: Any, *, wraps: bool) -> Any:
        """The slices along a dim at an index of any shape."""
        given, made = arrays.packed(self), arrays.target(out, self.dtype)
        inner = prod(self.shape[dim + 1 :])
        size = inner * self.dtype.itemsize
        unit = next(each for each in sorted(MOVED, reverse=True) if size % each == 0 and programs.aligned(each, given, made))
        rows, width = made.size // inner, size // unit
        ints = (rows, width, self.shape[dim], index.size, int(wraps), int(max(given.nbytes, made.nbytes) // unit < NARROW))
        args = (given, arrays.packed(index, "int64"), made, *call, *ints)
        programs.start("pick_rows", MOVED[unit], *spread(rows, width), args)
        return arrays.deliver(made, out)

    # ---- rows

    def index_select(self: Any, dim: int, index: Any, out: Any) -> Any:
        if not self.ndim or not serves(self, index, out):
            return NotImplemented
        return slices(xp.faults.call("index_select"), self, dim % self.ndim, index, out, wraps=False)

    def index(self: Any, indices: Any, out: Any) -> Any:
        dims = [dim for dim, each in enumerate(indices) if each is not None]
        given = [indices[dim] for dim in dims]
        if not dims or dims[-1] - dims[0] >= len(dims) or not all(serves(self, each, out) for each in given):
            return NotImplemented
        call, first = xp.faults.call("index"), dims[0]
        if len(dims) == 1:
            return slices(call, self, first, given[0], out, wraps=True)
        lengths = self.shape[first : first + len(dims)]
        places = joined(xp, call, given, lengths)
        if places is None:
            return NotImplemented
        whole = arrays.packed(self).reshape(*self.shape[:first], prod(lengths), *self.shape[first + len(dims) :])
        return slices(call, whole, first, places, out, wraps=False)

    def gather(self: Any, dim: int, index: Any, sparse_grad: bool, out: Any) -> Any:
        if not self.ndim or index.ndim != self.ndim or not serves(self, index, out):
            return NotImplemented
        dim %= self.ndim
        size = self.dtype.itemsize
        # The index may cover less than all of the other dims.
        shape = (*index.shape[:dim], self.shape[dim], *index.shape[dim + 1 :])
        part = arrays.packed(self if shape == self.shape else self[tuple([slice(0, n) for n in shape])])
        made = arrays.target(out, self.dtype)
        if not programs.aligned(size, part, made):
            return NotImplemented
        count, inner = index.shape[dim], prod(index.shape[dim + 1 :])
        width, shared = (count, 1) if inner == 1 else (inner, count)
        rows = made.size // width
        ints = (rows, width, self.shape[dim], shared, inner, narrow(part, made))
        args = (part, arrays.packed(index, "int64"), made, *xp.faults.call("gather"), *ints)
        programs.start("pick_elements", MOVED[size], *spread(rows, width), args)
        return arrays.deliver(made, out)

    def cat(tensors: Any, dim: int, out: Any) -> Any:
        """Each tensor is a row of columns of the output."""
        given = [a for a in tensors if a.size]
        if not out.ndim or not out.flags.c_contiguous or any(a.dtype != out.dtype or not a.flags.c_contiguous for a in given):
            return NotImplemented
        if sum([a.size for a in given]) != out.size or any(a.ndim != out.ndim for a in given) or not programs.apart(out, *given):
            return NotImplemented
        dim %= out.ndim
        rows, inner = prod(out.shape[:dim]), prod(out.shape[dim + 1 :]) * out.dtype.itemsize
        widths = [a.shape[dim] * inner for a in given]
        whole, first = out.shape[dim] * inner, 0
        for array, width in zip(given, widths, strict=True):
            sizes = (width, whole, first)
            unit = next(
                u for u in sorted(MOVED, reverse=True) if all(n % u == 0 for n in sizes) and programs.aligned(u, array, out)
            )
            args = (array, out, rows, *[n // unit for n in sizes])
            programs.start("place_rows", MOVED[unit], *spread(rows, width // unit), args)
            first += width
        return out

    def triangle(*, upper: bool) -> Any:
        def kernel(self: Any, diagonal: int, out: Any) -> Any:
            if self.ndim < 2 or not self.size or self.dtype != out.dtype:
                return NotImplemented
            given, made, size = arrays.packed(self), arrays.target(out, self.dtype), self.dtype.itemsize
            if not programs.aligned(size, given, made):
                return NotImplemented
            height, width = self.shape[-2:]
            rows = self.size // width
            ints = (rows, width, height, min(max(diagonal, -height), width), int(upper), narrow(self))
            programs.start("triangle", MOVED[size], *spread(rows, width), (given, made, *ints))
            return arrays.deliver(made, out)

        return kernel

    return {
        "index_select.out": index_select,
        "index.Tensor_out": index,
        "gather.out": gather,
        "cat.out": cat,
        "tril.out": triangle(upper=False),
        "triu.out": triangle(upper=True),
    }
