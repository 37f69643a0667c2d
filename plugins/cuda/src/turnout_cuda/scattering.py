"""Sums, products and extremes at indices that may repeat, by atomic operations: in any order, so the last digits of sums vary.

The kernel that adds leaves out the element of an index that is out of range, and the error is raised where the host waits next
(`turnout_cuda.faults`), also where a call writes in place.
"""

from __future__ import annotations

from math import prod
from typing import Any

from turnout_arrays.random import signed
from turnout_cuda.floats import Kernels, computed, kind
from turnout_cuda.indexing import joined
from turnout_cuda.programs import Programs, name_of

Table = dict[str, Any]
_PROD, _AMAX, _AMIN = range(3)
_WHICH = {"prod": _PROD, "amax": _AMAX, "amin": _AMIN}
_IDENTITY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "amax": float("-inf"), "amin": float("inf")}
_NONE = -1  # no row is left out


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""
    made = _Scattering(xp, programs)
    return {
        "index_add.out": made.index_add,
        "index_put.out": made.index_put,
        "scatter_add.out": made.scatter_add,
        "scatter_reduce.two_out": made.scatter_reduce,
        "embedding_dense_backward": made.embedding_backward,
    }


class _Scattering(Kernels):
    def room(self, array: Any, out: Any) -> Any:
        """A contiguous copy of `array` in the dtype that is computed in: the output, if that is such an array."""
        wide = computed(name_of(array))
        own = out is not array and out.shape == array.shape and out.flags.c_contiguous and name_of(out) == wide
        made = out if own else self.xp.empty(array.shape, wide)
        self.xp.copyto(made, array, casting="unsafe")
        return made

    def add(
        self, call: tuple[int, int], room: Any, index: Any, source: Any, sizes: tuple[int, int, int], *, each: bool = False,
        wraps: bool = False, factor: float = 1.0, left_out: int = _NONE, divisors: Any = None,
    ) -> None:  # fmt: skip
        """Add a contiguous source; `sizes` are (length, count, inner). `wraps`: negative indices count from the end."""
        by = room if divisors is None else divisors
        ints = (*call, source.size, *sizes, int(each), int(wraps), left_out, int(divisors is not None))
        self.programs.over_elements("add_at", name_of(source), source.size, (room, index, source, by, *ints, float(factor)))

    # ---- rows

    def index_add(self, self_: Any, dim: int, index: Any, source: Any, alpha: Any, out: Any) -> Any:
        whole = name_of(self_) == name_of(source) == "int64" and isinstance(alpha, int)
        if (kind(self_, source) is None and not whole) or not self_.ndim or not source.size or not self_.size:
            return NotImplemented
        if name_of(index) != "int64" or index.ndim != 1 or isinstance(alpha, complex) or source.ndim != self_.ndim:
            return NotImplemented
        dim %= self_.ndim
        sizes = (self_.shape[dim], index.size, prod(self_.shape[dim + 1 :]))
        given, call = (self.arrays.packed(index), self.arrays.packed(source)), self.xp.faults.call("index_add")
        if whole:
            room = self_.copy()
            args = (room.view("uint64"), given[0], given[1].view("uint64"), *call, source.size, *sizes)
            self.programs.over_elements("add_whole_at", "float32", source.size, (*args, signed(alpha % (1 << 64))))
        else:
            room = self.room(self_, out)
            self.add(call, room, *given, sizes, factor=alpha)
        return self.arrays.deliver(room, out)

    def index_put(self, self_: Any, indices: Any, values: Any, accumulate: bool, out: Any) -> Any:
        if not accumulate or any(each is None for each in indices) or kind(self_, values) is None:
            return NotImplemented
        count = len(indices)
        lengths, inner = self_.shape[:count], prod(self_.shape[count:])
        if not values.size or not self_.size or values.shape != (*indices[0].shape, *self_.shape[count:]):
            return NotImplemented
        call, single = self.xp.faults.call("index_put"), count == 1 and name_of(indices[0]) == "int64"
        places = self.arrays.packed(indices[0]) if single else joined(self.xp, call, indices, lengths)
        if places is None:
            return NotImplemented
        room, sizes = self.room(self_, out), (prod(lengths), places.size, inner)
        self.add(call, room, places, self.arrays.packed(values), sizes, wraps=single)
        return self.arrays.deliver(room, out)

    def cut(self, self_: Any, dim: int, index: Any, src: Any) -> tuple[Any, Any, tuple[int, int, int]] | None:
        """The part of `self` that the index covers, that of `src`, and (length, count, inner); None for what has no kernel."""
        if kind(self_, src) is None or not self_.ndim or not self_.size or not index.size or name_of(index) != "int64":
            return None
        if not index.ndim == src.ndim == self_.ndim:
            return None
        dim %= self_.ndim
        part = self_[tuple([slice(None) if i == dim else slice(0, n) for i, n in enumerate(index.shape)])]
        values = src[tuple([slice(0, n) for n in index.shape])]
        return part, values, (self_.shape[dim], index.shape[dim], prod(index.shape[dim + 1 :]))

    def write(self, room: Any, self_: Any, out: Any) -> Any:
        """Deliver the part that was computed, and the rest of `self` as it was."""
        if room.shape == out.shape:
            return self.arrays.deliver(room, out)
        if out is not self_:
            self.xp.copyto(out, self_)
        out[tuple([slice(0, n) for n in room.shape])] = room.astype(out.dtype, copy=False)
        return out

    def scatter_add(self, self_: Any, dim: int, index: Any, src: Any, out: Any) -> Any:
        cut = self.cut(self_, dim, index, src)
        if cut is None:
            return NotImplemented
        part, values, sizes = cut
        room = self.room(part, out)
        given = self.arrays.packed(index), self.arrays.packed(values)
        self.add(self.xp.faults.call("scatter_add"), room, *given, sizes, each=True)
        return self.write(room, self_, out)

    def scatter_reduce(self, self_: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool, out: Any) -> Any:
        cut = self.cut(self_, dim, index, src)
        if cut is None:
            return NotImplemented
        part, values, sizes = cut
        dtype, places, values = name_of(src), self.arrays.packed(index), self.arrays.packed(values)
        room, call = self.room(part, out), self.xp.faults.call("scatter_reduce")
        ints = (*call, values.size, *sizes, 1)
        if not include_self:
            start = (room, places, *ints, _IDENTITY[reduce])
            self.programs.over_elements("set_at", dtype, values.size, start)
        if reduce in _WHICH:
            args = (room, places, values, *ints, _WHICH[reduce])
            self.programs.over_elements("reduce_at", dtype, values.size, args)
        else:
            self.add(call, room, places, values, sizes, each=True)
        if reduce == "mean":
            counts = self.xp.full(room.shape, float(include_self), room.dtype)
            self.add(call, counts, places, self.xp.ones(values.shape, values.dtype), sizes, each=True)
            room /= self.xp.maximum(counts, 1)
        return self.write(room, self_, out)

    def embedding_backward(
        self, grad_output: Any, indices: Any, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
    ) -> Any:
        dtype = kind(grad_output)
        if dtype is None or grad_output.shape[:-1] != indices.shape or not grad_output.size or name_of(indices) != "int64":
            return NotImplemented
        width, wide = grad_output.shape[-1], computed(dtype)
        index, grad = self.arrays.packed(indices).reshape(-1), self.arrays.packed(grad_output)
        room, counts = self.xp.zeros((num_weights, width), wide), None
        if scale_grad_by_freq:
            counts = self.xp.zeros(num_weights, wide)
            self.programs.over_elements("count_at", dtype, index.size, (counts, index, index.size, num_weights))
        left_out = padding_idx if padding_idx >= 0 else _NONE
        call, sizes = self.xp.faults.call("embedding_dense_backward"), (num_weights, index.size, width)
        self.add(call, room, index, grad, sizes, left_out=left_out, divisors=counts)
        return room if wide == dtype else room.astype(grad_output.dtype)
