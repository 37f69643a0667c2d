"""Lists of tensors as one kernel takes them: a table of addresses on the device, kept as long as calls have the same tensors.

A table holds numbers, so it keeps no tensor alive. A kernel handles all tensors at once, where a loop over them may read what it
has written: lists with memory that overlaps are not served.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from turnout.config.lock import new_lock
from turnout_cuda.floats import kind
from turnout_cuda.programs import name_of
from turnout_cuda.recordings import CURRENT

Arrays = Sequence[Any]
_CHUNK = 4096  # as in kernels/optimisers.cu
_KEPT = 64  # tables
_COLUMNS = 7  # of a table: addresses, steps and sizes


class Tables:
    """The tables of an array module `xp`: (table, blocks) for lists of arrays."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self._lock = new_lock()
        self._tables: OrderedDict[tuple[Any, ...], tuple[Any, Any] | None] = OrderedDict()

    def serves(self, lists: Sequence[Arrays], counts: Arrays = ()) -> bool:
        """Whether all are contiguous arrays of the current device, of one dtype, and those of a place in the lists of one shape.

        `counts` are arrays of one float32 each.
        """
        first = lists[0]
        where, array_type = self.xp.cuda.runtime.getDevice(), self.xp.ndarray
        if not first or any(len(each) != len(first) for each in lists) or (counts and len(counts) != len(first)):
            return False
        for group in (*zip(*lists, strict=True), counts):
            if any(a.__class__ is not array_type or a.device.id != where for a in group):
                return False
        if kind(*[a for each in lists for a in each]) is None:
            return False
        for group in zip(*lists, strict=True):
            shape = group[0].shape
            if any(a.shape != shape or not a.flags.c_contiguous for a in group):
                return False
        return all(name_of(a) == "float32" and a.size == 1 for a in counts)

    def of(self, lists: Sequence[Arrays], written: Sequence[int], counts: Arrays = ()) -> tuple[Any, Any] | None:
        """The table of lists that are served; None where memory overlaps that is written, and for no elements.

        `written` are the places of the lists that the kernel writes.
        """
        addresses = [[a.data.ptr for a in each] for each in lists]
        steps = [a.data.ptr for a in counts] or [0] * len(lists[0])
        sizes = [a.size for a in lists[0]]
        where = self.xp.cuda.runtime.getDevice()
        key = (where, lists[0][0].dtype.itemsize, tuple(written), *map(tuple, addresses), tuple(steps), tuple(sizes))
        with self._lock:
            if key not in self._tables:
                self._tables[key] = self._made(key[1], written, addresses, steps, sizes)
                if len(self._tables) > _KEPT:
                    self._tables.popitem(last=False)
            self._tables.move_to_end(key)
            found, recording = self._tables[key], CURRENT.recording
        if recording is not None:  # a launch reads the table, however many others there are by then
            recording.keep(found)
        return found

    def _made(
        self, itemsize: int, written: Sequence[int], addresses: list[list[int]], steps: list[int], sizes: list[int]
    ) -> tuple[Any, Any] | None:
        spans = [
            (ptr, ptr + size * itemsize, i, place in written)
            for place, column in enumerate(addresses)
            for i, (ptr, size) in enumerate(zip(column, sizes, strict=True))
            if size
        ]
        spans += [(ptr, ptr + 4, -1, False) for ptr in steps if ptr]
        if not spans or not _is_apart(spans):
            return None
        columns = [*addresses, *[[0] * len(sizes)] * (_COLUMNS - 2 - len(addresses)), steps, sizes]
        blocks = [(i, start) for i, size in enumerate(sizes) for start in range(0, size, _CHUNK)]
        rows = [list(row) for row in zip(*columns, strict=True)]
        made = CURRENT.recording.constant if CURRENT.recording is not None else self.xp.asarray
        return made(np.asarray(rows, "int64")), made(np.asarray(blocks, "int64"))


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
