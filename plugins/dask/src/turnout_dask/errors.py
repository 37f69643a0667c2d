"""Texts of errors."""

from __future__ import annotations

from collections.abc import Sequence

from turnout.errors import TurnoutError


class DaskError(TurnoutError, RuntimeError):
    """A computation that failed, or that would need too much memory in one place."""


class GraphWarning(UserWarning):
    """A tensor's graph grows."""


def growing(steps: int) -> str:
    """A graph of many steps, as a loop makes it."""
    return (
        f"dask: a tensor is made by a graph of more than {steps} steps, and everything made of it repeats them; in a loop, call "
        "turnout.dask.persist(...) with the tensors that go on to the next turn"
    )


def in_task(operator: str, shapes: Sequence[tuple[int, ...]]) -> str:
    """What a task was doing when it failed."""
    blocks = " and ".join(str(list(shape)) for shape in shapes)
    return f"in a task of {operator} on dask, on blocks of shape {blocks}"


def not_computed(cause: BaseException) -> str:
    """A computation that failed on a worker."""
    notes = [note for note in getattr(cause, "__notes__", ()) if note.startswith("in a task of")]
    where = f"\n  {notes[0]}" if notes else ""
    return f"dask: the computation failed: {type(cause).__name__}: {cause}{where}"


def too_large(operator: str, size: int, limit: int) -> str:
    """An operator that needs more in one place than is allowed."""
    return (
        f"{operator}: it needs all of its tensors in one place on dask, and they have {size} bytes together; "
        f"plugin.dask.host_limit allows {limit}\n"
        "  to fix  use an operator that works chunk by chunk, or raise plugin.dask.host_limit"
    )
