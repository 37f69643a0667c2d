"""Operators that need each of their arrays in one chunk: one task, on one worker. They are counted, and limited in size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod
from typing import Any

from turnout.config.lock import new_lock
from turnout_aten.backend.functional_rows import Wanted
from turnout_dask import errors
from turnout_dask.blocks import OUTPUT, by_blocks, own, split

_LOCK = new_lock()
_CALLS: Counter[str] = Counter()


def calls() -> dict[str, int]:
    """Operator -> how often it ran on whole arrays since `reset_calls`."""
    with _LOCK:
        return dict(_CALLS)


def reset_calls() -> None:
    """Forget them."""
    with _LOCK:
        _CALLS.clear()


def check_size(operator: str, size: int, limit: int) -> None:
    """Raise DaskError for more bytes in one place than are allowed."""
    if size > limit:
        raise errors.DaskError(errors.too_large(operator, size, limit))


def whole(name: str, args: Sequence[Any], wanted: Sequence[Wanted], native: Sequence[Any], limit: int) -> Any:
    """The values of an operator, by one task. One without elements is not counted."""
    arrays, _ = split(args)
    check_size(f"aten::{name}", sum(int(a.nbytes) for a in arrays) + sum(_size(w) for w in wanted), limit)
    if all(a.size for a in arrays):
        with _LOCK:
            _CALLS[f"aten::{name}"] += 1
    labels = [tuple([own(i, d) for d in range(a.ndim)]) for i, a in enumerate(arrays)]
    out_labels = [tuple([own(OUTPUT + i, d) for d in range(len(w.shape))]) for i, w in enumerate(wanted)]
    return by_blocks(name, args, wanted, native, labels, out_labels)


def _size(want: Wanted) -> int:
    return prod(want.shape) * want.dtype.itemsize
