"""A backend in plain Python, for tests of core: arrays are flat lists with shape, strides and offset.

`KERNELS` has the few operators that composite kernels, indexing and the wrappers are tested with. `registered()` adds the backend
under the device string "pure" while it is entered.
"""

from __future__ import annotations

import itertools
import operator
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from turnout.dtypes import BOOL, FLOAT, DType
from turnout.registry import Registrations
from turnout_aten.backend.tensor_backend import TensorBackend
from turnout_aten.kernels.rows import Row
from turnout_aten.kernels.tables import register_kernels

FORMATS = {
    "float32": "f", "float64": "d", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint64": "Q",
    "bool": "?",
}  # fmt: skip


class Array:
    """A view of `memory`, a list, by shape, strides and offset."""

    def __init__(self, memory: list[Any], dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0):
        self.memory, self.dtype, self.shape, self.strides, self.offset = memory, dtype, shape, strides, offset

    def at(self, place: tuple[int, ...]) -> int:
        """Where an element stands in memory."""
        return self.offset + sum(i * s for i, s in zip(place, self.strides, strict=True))

    def __getitem__(self, place: tuple[int, ...]) -> Any:
        return self.memory[self.at(place)]

    def __setitem__(self, place: tuple[int, ...], value: Any) -> None:
        self.memory[self.at(place)] = converted(value, self.dtype)

    def places(self) -> Iterator[tuple[int, ...]]:
        return itertools.product(*map(range, self.shape))

    def values(self) -> list[Any]:
        return [self[place] for place in self.places()]


def converted(value: Any, dtype: DType) -> Any:
    """A Python number as a dtype holds it, as far as these tests go."""
    if dtype.category == BOOL:
        return bool(value)
    if dtype.category == FLOAT:
        return struct.unpack("f", struct.pack("f", value))[0] if dtype.name == "float32" else float(value)
    bits = 8 * dtype.itemsize
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if dtype.is_signed and value >> (bits - 1) else value


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = []
    step = 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


class PureBackend(TensorBackend):
    """The device "pure"."""

    name = "Pure"
    device_type = "pure"

    def empty(self, shape, dtype, device, strides=None):
        count = 1
        for n in shape:
            count *= n
        return Array([converted(0, dtype)] * count, dtype, tuple(shape), tuple(strides or row_major(shape)))

    def strided(self, root, shape, strides, offset):
        return Array(root.memory, root.dtype, shape, strides, root.offset + offset)

    def strides(self, array):
        return array.strides

    def dtype_of(self, array):
        return array.dtype

    def storage_size(self, root):
        return len(root.memory)

    def copy(self, target, source):
        for place, value in zip(target.places(), source.values(), strict=True):
            target[place] = value

    def fill(self, target, value):
        for place in target.places():
            target[place] = value

    def to_host(self, array):
        values = array.values()
        return struct.pack(f"<{len(values)}{FORMATS[array.dtype.name]}", *values)

    def from_host(self, data, shape, dtype, device):
        made = self.empty(shape, dtype, device)
        made.memory[:] = struct.unpack(f"<{len(made.memory)}{FORMATS[dtype.name]}", data)
        return made

    def item(self, array):
        return array.values()[0]

    def random_bits(self, shape, seed, offset, device):
        from turnout.dtypes import uint64

        made = self.empty(shape, uint64, device)
        made.memory[:] = [hash((seed, offset + i)) * 0x9E3779B97F4A7C15 % (1 << 64) for i in range(len(made.memory))]
        return made


# ---- kernels


def stretched(value: Any, shape: tuple[int, ...]) -> Callable[[tuple[int, ...]], Any]:
    """An operand as a function of the place in the result: numbers and stretched dims repeat."""
    if not isinstance(value, Array):
        return lambda place: value
    lead = len(shape) - len(value.shape)
    return lambda place: value[tuple(0 if n == 1 else i for i, n in zip(place[lead:], value.shape, strict=True))]


def pointwise(function: Callable[..., Any]) -> Row:
    def kernel(*args: Any) -> None:
        *operands, out = args
        read = [stretched(v, out.shape) for v in operands]
        for place in out.places():
            out[place] = function(*[r(place) for r in read])

    return Row(kernel, pointwise=True)


def sum_all(self, dtype, out):
    out[()] = sum(self.values())


def cumsum(self, dim, dtype, out):
    for place in self.places():
        before = (*place[:dim], place[dim] - 1, *place[dim + 1 :]) if dim >= 0 else (*place[:-1], place[-1] - 1)
        out[place] = self[place] + (out[before] if min(before) >= 0 else 0)


def nonzero(self):
    from turnout.dtypes import int64

    found = [place for place in self.places() if self[place]]
    shape = (len(found), len(self.shape))
    return Array([i for place in found for i in place], int64, shape, row_major(shape))


def _selected(self: Array, indices: list[Any], place: tuple[int, ...], lead: int, count: int) -> tuple[int, ...]:
    """The place in self that a place of the result means: `count` dims at `lead` walk through the index tensors."""
    walk, kept = place[lead : lead + count], iter(place[:lead] + place[lead + count :])
    found = []
    for d in range(len(self.shape)):
        index = indices[d] if d < len(indices) else None
        if index is None:
            found.append(next(kept))
        else:
            i = stretched(index, (0,) * count)(walk)
            found.append(i + self.shape[d] if i < 0 else i)
    return tuple(found)


def _walked(indices: list[Any]) -> tuple[int, int]:
    at = [d for d, index in enumerate(indices) if index is not None]
    adjacent = at == list(range(at[0], at[-1] + 1))
    return (at[0] if adjacent else 0), max(len(indices[d].shape) for d in at)


def index(self, indices, out):
    for place in out.places():
        out[place] = self[_selected(self, indices, place, *_walked(indices))]


def index_put(self, indices, values, accumulate, out):
    for place in self.places():
        out[place] = self[place]
    lead, count = _walked(indices)
    tensors = [i for i in indices if i is not None]
    walk = [max(t.shape[len(t.shape) - k] if k <= len(t.shape) else 1 for t in tensors) for k in range(count, 0, -1)]
    kept = [n for d, n in enumerate(self.shape) if d >= len(indices) or indices[d] is None]
    shape = (*kept[:lead], *walk, *kept[lead:])
    read = stretched(values, shape)
    for place in itertools.product(*map(range, shape)):
        to = _selected(self, indices, place, lead, count)
        out[to] = out[to] + read(place) if accumulate else read(place)


def cat(tensors, dim, out):
    start = 0
    for array in tensors:
        for place in array.places():
            to = list(place)
            to[dim] += start
            out[tuple(to)] = array[place]
        start += array.shape[dim]


KERNELS: dict[str, Any] = {
    "add.out": pointwise(lambda x, y, alpha: x + alpha * y),
    "sub.out": pointwise(lambda x, y, alpha: x - alpha * y),
    "rsub.Tensor_out": pointwise(lambda x, y, alpha: y - alpha * x),
    "mul.out": pointwise(operator.mul),
    "lt.Tensor_out": pointwise(operator.lt),
    "gt.Tensor_out": pointwise(operator.gt),
    "where.self_out": pointwise(lambda c, x, y: x if c else y),
    "remainder.Tensor_out": pointwise(operator.mod),
    "bitwise_and.Tensor_out": pointwise(operator.and_),
    "sum.out": sum_all,
    "cumsum.out": cumsum,
    "cat.out": cat,
    "nonzero": nonzero,
    "index.Tensor_out": index,
    "index_put.out": Row(index_put, pointwise=True),
}


@contextmanager
def registered() -> Iterator[PureBackend]:
    """The backend with its kernels, until the block ends."""
    backend = PureBackend()
    with Registrations("pure-backend-of-tests") as library:
        library.backend(backend)
        register_kernels(library, backend, KERNELS)
        yield backend


def made(data: Any, dtype: DType | None = None) -> Any:
    """A tensor on "pure" from nested lists: float32, or int64 and bool for such elements."""
    from turnout.devices import device
    from turnout.dtypes import bool_, float32, int64
    from turnout_aten.tensor.indexing import _flatten
    from turnout_aten.tensor.tensor import wrap

    values: list[Any] = []
    shape = _flatten(data, values)
    if dtype is None:
        kinds = {type(v) for v in values}
        dtype = bool_ if kinds == {bool} else int64 if kinds == {int} else float32
    return wrap(Array([converted(v, dtype) for v in values], dtype, shape, row_major(shape)), device("pure"))


def lists(tensor: Any) -> Any:
    """A tensor's values as nested lists."""
    flat = tensor.array.values()
    for n in reversed(tensor.shape[1:]):
        flat = [flat[i : i + n] for i in range(0, len(flat), n)] if n else [[] for _ in range(tensor.shape[0])]
    return flat if tensor.shape else flat[0]
