"""Where the demo computes: each call at once, or on `dask` a step at a time, by threads or by the workers of a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from turnout_cli.main import Problem

if TYPE_CHECKING:
    from turnout import Tensor


class AtOnce:
    """A device that computes what is called."""

    dashboard = ""

    def step(self) -> AbstractContextManager[None]:
        """The context of a step."""
        return nullcontext()

    def shard(self, order: Tensor, batch: int) -> None:
        """Spread the examples of each batch: `order` has their positions, batch after batch."""


class InChunks(AtOnce):
    """The device `dask`: each worker has a chunk of a batch, and what a step has changed is computed at its end.

    dashboard  the address of Dask's dashboard, "" without a cluster
    """

    def __init__(self, workers: int, dashboard: str = "") -> None:
        self.workers = workers
        self.dashboard = dashboard

    def step(self) -> AbstractContextManager[None]:
        import turnout

        return turnout.dask.step()

    def shard(self, order: Tensor, batch: int) -> None:
        import turnout

        turnout.dask.rechunk(order, -(-batch // self.workers))


@contextmanager
def computing(device: str, workers: int | None) -> Iterator[AtOnce]:
    """What computes on a device: for a number of workers a cluster of so many processes, which ends with the block."""
    on_dask = device.partition(":")[0] == "dask"
    if workers is None:
        yield InChunks(1) if on_dask else AtOnce()
        return
    if not on_dask:
        raise Problem(f"--workers is for --device dask, and the device is {device}")
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise Problem("--workers needs distributed\n  to fix  pip install distributed") from error
    # Workers start with `-c`, and would import from the working directory. It stays set: the whole process is the command's.
    os.environ["PYTHONSAFEPATH"] = "1"
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        yield InChunks(workers, client.dashboard_link)
