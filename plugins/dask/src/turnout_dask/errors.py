"""Texts of errors."""

from __future__ import annotations

from collections.abc import Sequence

from turnout import config
from turnout.errors import TurnoutError
from turnout.errors.layout import report


class DaskError(TurnoutError, RuntimeError):
    """A computation that failed, or that would need too much memory in one place."""


class SchedulerError(DaskError, ConnectionError):
    """A scheduler that does not answer, or no longer."""


class WorkerError(DaskError):
    """Workers that died."""


class GraphWarning(UserWarning):
    """A tensor's graph grows."""


def growing(steps: int) -> str:
    """A graph of many steps, as a loop makes it."""
    return (
        f"dask: a tensor is made by a graph of more than {steps} steps, and everything made of it repeats them; in a loop, "
        "put each turn into `with turnout.dask.step():`, or call turnout.dask.persist(...) with the tensors that go on"
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


def no_size(setting: str, said: str) -> str:
    """An option that has to be a size."""
    return report(f"{setting} must be a size such as '64MiB', got {said!r}", ("set by", str(config.origin(setting))))


def not_installed(what: str, module: str) -> str:
    """A library that is asked for and is not there."""
    return f"dask: {what} needs {module}\n  to fix  pip install {module}"


def no_address(address: str, origin: str) -> str:
    """A setting that is no address."""
    return f"dask: {address!r} ({origin}) is not the address of a scheduler, such as 'tcp://127.0.0.1:8786'"


def unreachable(address: str, seconds: float, origin: str) -> str:
    """An address where nothing answers."""
    return (
        f"dask: no scheduler answered at {address} ({origin}) within {seconds:g} s; start one with `dask scheduler`, or correct "
        "plugin.dask.scheduler"
    )


def forked() -> str:
    """A client in a child of the process that made it."""
    return (
        "dask: the client of the scheduler works only in the process that this one was forked from\n"
        "  to fix  start processes without a fork: multiprocessing.get_context('spawn')"
    )


def lost(address: str) -> str:
    """A connection that ended while results were awaited."""
    where = f" at {address}" if address else ""
    return (
        f"dask: the connection to the scheduler{where} was lost, and with it what was persisted there; connect to a scheduler "
        "and make the tensors again from their sources"
    )


def killed(operator: str, workers: int) -> str:
    """Workers that died, each while it ran the same task."""
    died = "a worker" if workers == 1 else f"{workers} workers"
    return (
        f"dask: {died} died in a task of {operator}, as workers do that run out of memory; make the chunks smaller "
        "(plugin.dask.chunk_size, turnout.dask.rechunk) or give the workers more memory"
    )


def other_chunk(found: object, said: object) -> str:
    """A delayed value that is not what `from_delayed` was told."""
    return f"from_delayed: the value is {found}, expected {said}"
