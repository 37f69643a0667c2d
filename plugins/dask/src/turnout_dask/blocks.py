"""Rows of the kernel library, run chunk by chunk.

A row is named, not carried: a task holds the row's name and the arguments that are no arrays, and each process looks the row up
in its own table. *Labels* say how the chunks of arrays belong together, a label for each dim: equal labels go along. Labels of
`own` are of dims that are in one chunk.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import count
from operator import itemgetter
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np

from turnout_aten.backend.functional_rows import Wanted
from turnout_aten.kernels.rows import Row
from turnout_cpu.kernels import kernels as rows_of_cpu
from turnout_cpu.pool import Pool
from turnout_dask import errors

Labels = tuple[int, ...]
WHOLE = 1000  # labels from here on are of dims in one chunk
# A name for each graph, in place of a hash of what it is made of: hashing took half of the time of adding an operator.
_PROCESS = uuid4().hex[:8]
_NUMBERS = count()


@cache
def rows() -> dict[str, Any]:
    """The table of cpu, for one thread: the scheduler has threads of its own."""
    return {name: row if isinstance(row, Row) else Row(row) for name, row in rows_of_cpu(Pool(lambda: 1)).items()}


def new_name(operator: str) -> str:
    """A name for the tasks of a call."""
    return f"{operator.partition('.')[0]}-{_PROCESS}-{next(_NUMBERS)}"


class Slot(int):
    """The place of an array among the arguments: its number."""


class Length(int):
    """In place of a number among the arguments: the length of a label's dim in the chunk."""


def split(args: Sequence[Any]) -> tuple[list[Any], tuple[Any, ...]]:
    """The arrays of a call, and its arguments with a `Slot` in place of each."""
    arrays: list[Any] = []

    def placed(value: Any) -> Any:
        if isinstance(value, da.Array):
            arrays.append(value)
            return Slot(len(arrays) - 1)
        return [placed(each) for each in value] if isinstance(value, (list, tuple)) else value

    return arrays, tuple([placed(a) for a in args])


def filled(template: Any, blocks: Sequence[Any], lengths: Mapping[int, int]) -> Any:
    """The arguments with blocks in the slots."""
    if template.__class__ is Slot:
        return blocks[template]
    if template.__class__ is Length:
        return lengths[template]
    if isinstance(template, (list, tuple)):
        return [filled(each, blocks, lengths) for each in template]
    return template


@contextmanager
def task_of(operator: str, *blocks: Any) -> Iterator[None]:
    """Where a task computes: without floating-point warnings, and with an error that says what was computed."""
    try:
        with np.errstate(all="ignore"):
            yield
    except Exception as error:
        error.add_note(errors.in_task(operator, [block.shape for block in blocks]))
        raise


def run_row(
    name: str, template: tuple[Any, ...], labels: Sequence[Labels], lengths: Mapping[int, int],
    outs: Sequence[tuple[Labels, Any]], *blocks: Any,
) -> Any:  # fmt: skip
    """One task: the row of an operator on a block of each array."""
    lengths = dict(lengths)
    for block, each in zip(blocks, labels, strict=True):
        for label, length in zip(each, block.shape, strict=True):
            if lengths.get(label, 1) == 1:
                lengths[label] = length
    made = [np.empty([lengths[label] for label in each], native) for each, native in outs]
    with task_of(name, *blocks):
        rows()[name].fn(*filled(template, blocks, lengths), *made)
    return made[0] if len(made) == 1 else tuple(made)


def by_blocks(
    name: str, args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any], labels: Sequence[Labels],
    out_labels: Sequence[Labels],
) -> Any:  # fmt: skip
    """The values of an operator, made of tasks of its row. Labels of outputs that no array has are of dims in one chunk, too."""
    arrays, template = split(args)
    known = {label for each in labels for label in each}
    fresh = {
        label: length
        for each, want in zip(out_labels, wanted, strict=True)
        for label, length in zip(each, want.shape, strict=True)
        if label not in known
    }
    lone = [a.rechunk({d: -1 for d, label in enumerate(each) if label >= WHOLE}) for a, each in zip(arrays, labels, strict=True)]
    task = partial(run_row, name, template, labels, fresh, list(zip(out_labels, native, strict=True)))
    pairs = [each for pair in zip(lone, labels, strict=True) for each in pair]

    def made_of(function: Any, out: Labels, want: Wanted, dtype: Any, called: str) -> da.Array:
        meta = np.empty((0,) * len(want.shape), dtype)
        axes = {label: length for label, length in fresh.items() if label in out}
        return da.blockwise(
            function,
            out,
            *pairs,
            name=called,
            new_axes=axes,
            concatenate=True,
            align_arrays=len(lone) > 1,
            meta=meta,
            dtype=dtype,
        )

    if len(wanted) == 1:
        return made_of(task, out_labels[0], wanted[0], native[0], new_name(name))
    return tuple(
        made_of(partial(_one_of, i, task), out, want, dtype, new_name(name))
        for i, (out, want, dtype) in enumerate(zip(out_labels, wanted, native, strict=True))
    )


def _one_of(index: int, task: Any, *blocks: Any) -> Any:
    """One of several results; a row that has several runs once for each."""
    return itemgetter(index)(task(*blocks))


def own(number: int, dim: int) -> int:
    """The label of a dim in one chunk. Arrays are numbered from 0, outputs from 500."""
    return WHOLE + 100 * number + dim


OUTPUT = 500


def aligned(shape: Sequence[int], ndim: int) -> Labels:
    """Labels that match dims from the right, as broadcasting does: 0 is the first dim of the result."""
    return tuple(range(ndim - len(shape), ndim))


def pointwise(name: str, args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any]) -> Any:
    """An element-wise operator."""
    arrays, _ = split(args)
    ndim = max([len(want.shape) for want in wanted])
    return by_blocks(
        name, args, wanted, native, [aligned(a.shape, ndim) for a in arrays], [aligned(w.shape, ndim) for w in wanted]
    )
