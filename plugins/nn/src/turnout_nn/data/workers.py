"""Worker processes of a loader: each reads batches at the indices that it is sent, and sends them back.

A worker and the loader are joined by a pipe. A thread of the worker takes in what is sent, so that neither ever waits for the
other while both send.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
import sys
import threading
import traceback
from contextlib import contextmanager
from enum import Enum
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, NamedTuple

import turnout
from turnout.errors import TurnoutError
from turnout.plugins import effect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class WorkerError(TurnoutError, RuntimeError):
    """A worker of a loader ended, or did not answer in time."""


class WorkerInfo(NamedTuple):
    """Which worker this process is."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_HERE: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Which worker of a `DataLoader` this process is: its id, how many there are, its seed and its data set; None in others."""
    effect("get_worker_info()")
    return _HERE


class _Failure(NamedTuple):
    """What a worker sends in place of a batch that it could not read."""

    error: BaseException
    text: str


class Sign(Enum):
    """What is read in place of a batch."""

    END = "the data set has no more samples"


def _work(
    pipe: Connection, inherited: Sequence[Connection], info: WorkerInfo, reader: Callable[[], Any],
    init: Callable[[int], Any] | None,
) -> None:  # fmt: skip
    """The worker: read a batch for each message, until there is none. A message is (number of the epoch, indices).

    A forked worker has copies of the loader's ends of pipes. Were they open, no worker would notice when the loader closes its.
    """
    global _HERE
    _HERE = info
    for end in inherited:
        end.close()
    random.seed(info.seed)
    turnout.manual_seed(info.seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(info.seed % 2**32)
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_take_in, args=(pipe, messages), daemon=True).start()
    epoch, read, failure = None, None, None
    try:
        if init is not None:
            init(info.id)
    except Exception as error:  # noqa: BLE001 - whoever reads the first batch gets it
        failure = error
    while (message := messages.get()) is not None:
        now, indices = message
        try:
            if failure is not None:
                raise failure
            if now != epoch:
                epoch, read = now, reader()
            made: Any = read(indices)  # type: ignore[misc]
        except Exception as error:  # noqa: BLE001 - it is raised in the process of the loader
            made = _Failure(error, traceback.format_exc())
        try:
            pipe.send((now, made))
        except (BrokenPipeError, ConnectionResetError):
            return
        except Exception as error:  # noqa: BLE001 - what was made, or the error, cannot be pickled
            text = traceback.format_exc()
            pipe.send((now, _Failure(WorkerError(f"a batch cannot be sent: {error!r}"), text)))


def _take_in(pipe: Connection, messages: queue.SimpleQueue[Any]) -> None:
    try:
        while True:
            messages.put(pipe.recv())
    except (EOFError, OSError):
        messages.put(None)


@contextmanager
def _safe_path() -> Iterator[None]:
    """An interpreter that starts meanwhile imports nothing from the working directory before it has the path of this one."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONSAFEPATH", None)
        else:
            os.environ["PYTHONSAFEPATH"] = before


class Workers:
    """The processes of a loader."""

    def __init__(
        self, count: int, dataset: Any, reader: Callable[[], Any], seed: int, init: Callable[[int], Any] | None, context: Any,
        timeout: float,
    ) -> None:  # fmt: skip
        if isinstance(context, str) or context is None:
            context = multiprocessing.get_context(context)
        self.timeout = timeout or None
        self.epoch = 0
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        for i in range(count):
            pipe, other = context.Pipe()
            info = WorkerInfo(i, count, seed + i, dataset)
            process = context.Process(target=_work, args=(other, [*self.pipes, pipe], info, reader, init), daemon=True)
            with _safe_path():
                process.start()
            other.close()
            self.pipes.append(pipe)
            self.processes.append(process)

    def batches(self, tasks: Iterator[Any], ahead: int, in_order: bool) -> Iterator[Any]:
        """What the workers make of each of the tasks, with at most `ahead` batches of each worker on the way."""
        self.epoch += 1
        count = len(self.pipes)
        waiting = [0] * count
        ended: set[int] = set()
        order: list[int] = []  # the workers of the batches on the way, first to last

        def send(worker: int) -> None:
            if worker in ended:
                return
            for task in tasks:
                self._send(worker, (self.epoch, task))
                waiting[worker] += 1
                order.append(worker)
                return

        for _ in range(ahead):
            for worker in range(count):
                send(worker)
        while order:
            worker = order[0] if in_order else self._ready(order)
            order.remove(worker)
            made = self._receive(worker)
            waiting[worker] -= 1
            if made is Sign.END:
                ended.add(worker)
                continue
            send(worker)
            yield made

    def _send(self, worker: int, message: Any) -> None:
        try:
            self.pipes[worker].send(message)
        except OSError:
            self._dead(worker)

    def _ready(self, workers: list[int]) -> int:
        found = wait([self.pipes[worker] for worker in set(workers)], self.timeout)
        return next((worker for worker in workers if self.pipes[worker] in found), workers[0])

    def _receive(self, worker: int) -> Any:
        pipe = self.pipes[worker]
        while True:
            if not pipe.poll(self.timeout):
                raise WorkerError(f"DataLoader: worker {worker} did not answer within {self.timeout:g} seconds")
            try:
                epoch, made = pipe.recv()
            except (EOFError, OSError):
                self._dead(worker)
            if epoch == self.epoch:  # else it was asked for by a loop that was left
                break
        if isinstance(made, _Failure):
            made.error.add_note(f"in worker {worker} of a DataLoader:\n{made.text}")
            raise made.error
        return made

    def _dead(self, worker: int) -> None:
        self.processes[worker].join(1)
        code = self.processes[worker].exitcode
        raise WorkerError(f"DataLoader: worker {worker} ended unexpectedly, with exit code {code}") from None

    def close(self) -> None:
        """End the processes."""
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join(1)
            if process.is_alive():
                process.terminate()
                process.join()
        self.pipes, self.processes = [], []

    def __del__(self) -> None:
        for pipe in self.pipes:
            pipe.close()
