"""A cluster of processes on this machine, the address of its dashboard, and a bar that shows how far a program is."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distributed import Client, LocalCluster
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def workers(count: int, memory: str) -> Iterator[Client]:
    """Processes that compute what Turnout needs until the block ends, each with so much memory, such as "600MB"."""
    os.environ["PYTHONSAFEPATH"] = "1"  # they import nothing from the working directory
    with (
        LocalCluster(
            n_workers=count, threads_per_worker=1, memory_limit=memory, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        print(f"Dask's dashboard: {client.dashboard_link}", file=sys.stderr)
        yield client


def bar() -> Progress:
    """A bar on the standard error: `with bar() as shown: task = shown.add_task("...", total=n); shown.advance(task)`."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True))


def megabytes() -> float:
    """The most memory that this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6)


def peaks(client: Client) -> dict[str, float]:
    """Process -> the most megabytes that it has had: the program, with the scheduler in it, and each worker."""
    found: dict[str, Any] = client.run(megabytes)
    return {"program": megabytes(), **{f"worker {number}": peak for number, peak in enumerate(found.values())}}
