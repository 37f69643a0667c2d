"""Lists of tensors as one kernel takes them: a table of addresses on the device, kept as long as calls have the same tensors.

A table holds numbers, so it keeps no tensor alive. A kernel handles all tensors at once, where a loop over them may read what it
has written: lists with memory that overlaps are not served. To ask an array how it lies takes the host longer than a kernel needs
to write it, so a list that comes again is known by the identities of its arrays, as long as all of them live.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from turnout.config.lock import new_lock
from turnout_cuda.programs import DTYPES, name_of
from turnout_cuda.recordings import CURRENT

Arrays = Sequence[Any]
_CHUNK = 4096  # as in kernels/optimisers.cu
_KEPT = 64  # tables, and lists
_COLUMNS = 7  # of a table: addresses, steps and sizes


class Column(NamedTuple):
    """A list of contiguous arrays of one dtype on one device."""

    addresses: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    dtype: str
    itemsize: int
    device: int


class Table(NamedTuple):
    """What kernels read on the device: the rows of tensors, also as floats, which stand for numbers that are not given; and the
    row and the first element of each block of a grid."""

    rows: Any
    doubles: Any
    floats: Any
    blocks: Any
    grid: int


class Tables:
    """The tables of an array module `xp`."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self._lock = new_lock()
        self._tables: OrderedDict[tuple[Any, ...], Table | None] = OrderedDict()
        self._columns: OrderedDict[tuple[int, ...], tuple[Column | None, list[Any]]] = OrderedDict()

    def _column(self, arrays: Arrays) -> Column | None:
        """The list as a column, if it is one."""
        key = tuple(map(id, arrays))
        found = self._columns.get(key)
        if found is None:
            columns = self._columns

            def forget(_: Any) -> None:
                columns.pop(key, None)  # before the identity is another array's

            if any([a.__class__ is not self.xp.ndarray for a in arrays]):  # noqa: C419 - no frames of a generator
                return None
            found = _seen(arrays), [ref(a, forget) for a in arrays]
            with self._lock:
                columns[key] = found
                if len(columns) > _KEPT:
                    columns.popitem(last=False)
        return found[0]

    def columns(self, lists: Sequence[Arrays]) -> list[Column] | None:
        """The lists as columns of the current device, if all are of one dtype of floats, and arrays at one place of one shape."""
        found = [self._column(each) for each in lists]
        first = found[0]
        if first is None or first.dtype not in DTYPES or first.device != self.xp.cuda.runtime.getDevice():
            return None
        alike: list[Column] = []
        for each in found:
            if each is None or each.shapes != first.shapes or each.dtype != first.dtype or each.device != first.device:
                return None
            alike.append(each)
        return alike

    def counts(self, arrays: Arrays, beside: Column) -> tuple[int, ...] | None:
        """The addresses of one float32 for each array of a column."""
        found = self._column(arrays)
        if found is None or found.dtype != "float32" or found.device != beside.device:
            return None
        return found.addresses if found.sizes == (1,) * len(beside.sizes) else None

    def of(self, columns: Sequence[Column], written: Sequence[int], steps: tuple[int, ...] = ()) -> Table | None:
        """The table of columns that are alike; None where memory overlaps that is written, and for no elements.

        `written` are the places of the columns that the kernel writes, `steps` the addresses of counts.
        """
        first, addresses = columns[0], tuple([each.addresses for each in columns])
        key = (first.device, first.dtype, tuple(written), addresses, steps, first.sizes)
        with self._lock:
            if key not in self._tables:
                self._tables[key] = self._made(first.itemsize, written, addresses, steps, first.sizes)
                if len(self._tables) > _KEPT:
                    self._tables.popitem(last=False)
            self._tables.move_to_end(key)
            found, recording = self._tables[key], CURRENT.recording
        if recording is not None:  # a launch reads the table, however many others there are by then
            recording.keep(found)
        return found

    def _made(
        self, itemsize: int, written: Sequence[int], addresses: Sequence[tuple[int, ...]], steps: tuple[int, ...],
        sizes: tuple[int, ...],
    ) -> Table | None:  # fmt: skip
        spans = [
            (ptr, ptr + size * itemsize, i, place in written)
            for place, column in enumerate(addresses)
            for i, (ptr, size) in enumerate(zip(column, sizes, strict=True))
            if size
        ]
        if not spans:
            return None
        spans += [(ptr, ptr + 4, -1, False) for ptr in steps]
        if not _is_apart(spans):
            return None
        none = (0,) * len(sizes)
        columns = [*addresses, *[none] * (_COLUMNS - 2 - len(addresses)), steps or none, sizes]
        blocks = [(i, start) for i, size in enumerate(sizes) for start in range(0, size, _CHUNK)]
        given = [list(row) for row in zip(*columns, strict=True)]
        made = CURRENT.recording.constant if CURRENT.recording is not None else self.xp.asarray
        rows = made(np.asarray(given, "int64"))
        doubles, floats = (rows.view(kind).reshape(-1) for kind in ("float64", "float32"))
        return Table(rows, doubles, floats, made(np.asarray(blocks, "int64")), len(blocks))


def _seen(arrays: Arrays) -> Column | None:
    """The column of arrays, none of which was asked before."""
    if not arrays:
        return None
    dtype, where = arrays[0].dtype, arrays[0].device.id
    if any([a.dtype != dtype or a.device.id != where or not a.flags.c_contiguous for a in arrays]):  # noqa: C419 - as above
        return None
    shapes, sizes = tuple([a.shape for a in arrays]), tuple([a.size for a in arrays])
    return Column(tuple([a.data.ptr for a in arrays]), shapes, sizes, name_of(arrays[0]), dtype.itemsize, where)


def _is_apart(spans: list[tuple[int, int, int, bool]]) -> bool:
    """Whether no memory that is written overlaps any other, for spans (start, end, place in the lists, whether written).

    An array that is read and written at one place in the lists is no overlap: each element is read before it is written.
    """
    merged: dict[tuple[int, int], tuple[int, bool]] = {}
    for start, end, i, writes in sorted(spans, key=lambda span: not span[3]):  # what is written first, then each that reads it
        other, written = merged.get((start, end), (i, False))
        if (writes or written) and (other != i or (writes and written)):
            return False
        merged[start, end] = i, writes or written
    reach = reach_of_writes = 0
    for (start, end), (_, writes) in sorted(merged.items()):
        if start < (reach if writes else reach_of_writes):
            return False
        reach = max(reach, end)
        reach_of_writes = max(reach_of_writes, end if writes else 0)
    return True
