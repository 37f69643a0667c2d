"""Where values are computed: on the scheduler that the settings name, or where Dask computes now; and what its failures say."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from socket import create_connection
from threading import Lock
from time import monotonic, sleep
from typing import Any
from weakref import WeakSet

import dask
import numpy as np
from dask import base, threaded
from dask.system import CPU_COUNT
from dask.utils import key_split

from turnout.config import origin
from turnout.config.lock import new_lock
from turnout.errors import ArgumentError, PluginError, TurnoutError
from turnout_dask import errors

RUNNING = "running"

# In a child after a fork: the clients and the pool of its parent, whose threads it does not have.
_LOST: list[Any] = []
_EVERY: WeakSet[Scheduling] = WeakSet()


class Scheduling:
    """Computes values. A connection to the scheduler of the settings is made at the first use, and again after it was lost.

    option  reads an option of the plugin by name
    """

    def __init__(self, option: Callable[[str], Any]) -> None:
        self._option = option
        self._lock = new_lock()
        self._clients: dict[tuple[int, str], Any] = {}
        _EVERY.add(self)

    def compute(self, values: Sequence[Any]) -> list[Any]:
        """The elements of values as NumPy arrays, computed together. Raises DaskError for whatever goes wrong."""
        with self._reported():
            return [np.asarray(each) for each in base.compute(*values, scheduler=self._usable())]

    def persist(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The values as chunks that are computed, or on a cluster are being computed."""
        with self._reported():
            return base.persist(*values, scheduler=self._usable())

    def client(self) -> Any:
        """The `distributed.Client` that computes; None if the threads of this process do, or another scheduler of Dask."""
        with self._reported():
            return self._configured() or _default_client()

    def close(self) -> None:
        """End the connections that were made here."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for (process, _), client in clients.items():
            if process == os.getpid():
                client.close(timeout=1)

    def _usable(self) -> Any:
        """As `_configured`. Raises SchedulerError in a child of a process with a client."""
        if _LOST:
            if any(client in _LOST for client in (*self._clients.values(), _default_client())):
                raise errors.SchedulerError(errors.forked())
            for name in ("pool", "scheduler"):
                if dask.config.get(name, None) in _LOST:
                    dask.config.set({name: ThreadPoolExecutor(CPU_COUNT)})
        return self._configured()

    def _configured(self) -> Any:
        """The client of the configured address, None if there is none."""
        address = self._option("scheduler")
        if not address:
            return None
        where = (os.getpid(), address)
        with self._lock:
            client = self._clients.get(where)
            if client is not None and not _runs(client, self._option("timeout")):
                client.close(timeout=1)
                client = None
            if client is None:
                client = self._clients[where] = self._connected(address)
            return client

    def _connected(self, address: str) -> Any:
        try:
            from distributed import Client
        except ImportError as error:
            raise PluginError(errors.not_installed("plugin.dask.scheduler", "distributed")) from error
        timeout, where = self._option("timeout"), str(origin("plugin.dask.scheduler"))
        try:
            _await_answer(address, timeout)
            return Client(address, timeout=timeout, set_as_default=False)
        except ValueError as error:
            raise ArgumentError(errors.no_address(address, where)) from error
        except OSError as error:
            raise errors.SchedulerError(errors.unreachable(address, timeout, where)) from error

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """What Dask raises, as an error of Turnout."""
        try:
            yield
        except TurnoutError:
            raise
        except CancelledError as error:
            raise errors.SchedulerError(errors.lost(self._option("scheduler"))) from error
        except Exception as error:
            if hasattr(error, "last_worker"):  # distributed.scheduler.KilledWorker, which may not be installed
                operator = key_split(error.args[0])
                raise errors.WorkerError(errors.killed(operator, error.args[2] + 1)) from error
            raise errors.DaskError(errors.not_computed(error)) from error


def _default_client() -> Any:
    """The client that Dask itself uses, None if there is none."""
    found = dask.config.get("scheduler", None)
    if found not in (None, "dask.distributed", "distributed"):  # which the last client sets
        return found if hasattr(found, "dashboard_link") else None
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


def _in_child() -> None:
    """Let the pools of Dask's threads start anew, and remember what cannot."""
    threaded.default_pool, threaded.pools_lock = None, Lock()
    threaded.pools.clear()
    clients = [client for each in _EVERY for client in each._clients.values()]
    if "distributed" in sys.modules:
        clients.append(_default_client())
    pools = [each for each in (dask.config.get("pool", None), dask.config.get("scheduler", None)) if hasattr(each, "submit")]
    _LOST[:] = [each for each in (*clients, *pools) if each is not None]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _runs(client: Any, seconds: float) -> bool:
    """Whether a client is connected, or is again after some seconds."""
    end = monotonic() + seconds
    while client.status == "connecting" and monotonic() < end:
        sleep(0.02)
    return bool(client.status == RUNNING)


def _await_answer(address: str, seconds: float) -> None:
    """Wait until something listens at an address. Raises OSError if nothing does in that time, ValueError for no address.

    A `Client` that fails to connect leaves a thread behind, and an error when it is collected: so it is made afterwards.
    """
    from distributed.comm.addressing import get_address_host_port, parse_address
    from distributed.comm.registry import get_backend

    scheme, _ = parse_address(address, strict=True)
    get_backend(scheme)  # ValueError for one that is not known
    end = monotonic() + seconds
    while scheme in ("tcp", "tls"):
        try:
            create_connection(get_address_host_port(address), timeout=seconds).close()
            return
        except OSError:
            if monotonic() > end:
                raise
            sleep(0.1)
