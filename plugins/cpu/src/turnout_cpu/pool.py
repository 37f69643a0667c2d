"""Threads for work on large arrays: NumPy releases the interpreter's lock inside a ufunc, a reduction and a sort.

Element-wise work is cut into equal pieces of flat memory, one per thread (`apply`); `rows` cuts reductions. The caller's thread
takes the first piece. What runs inside a piece is never cut again, so nested use cannot wait for itself.
"""

from __future__ import annotations

import os
from _thread import _local
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from turnout.config.lock import new_lock
from turnout_aten.counts import thread_count

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# Below this, starting a second thread (50 us) costs more than it saves.
LARGE = 1 << 19


class Pool:
    """Runs work on several threads. `threads()` says how many: 0 means one per core, 1 only the caller's own."""

    def __init__(self, threads: Callable[[], int]) -> None:
        self._threads = threads
        self._lock = new_lock()
        self._local = _local()
        self._executor: ThreadPoolExecutor | None = None
        self._workers = 0
        self._process = os.getpid()

    def count(self) -> int:
        """How many threads an operation may use now; 1 inside a piece."""
        if getattr(self._local, "inside", False):
            return 1
        return thread_count(self._threads())

    def apply(self, ufunc: Any, inputs: tuple[Any, ...], out: Any) -> Any:
        """`ufunc(*inputs, out)` in pieces, or None where the arrays are not equal blocks of flat memory.

        Inputs are arrays of one shape, and Python numbers or 0-dim arrays. Without `out` the result is a new array.
        """
        arrays = [value for value in inputs if getattr(value, "shape", ())]
        first = arrays[0]
        if not all(a.shape == first.shape and a.flags.c_contiguous for a in arrays):
            return None
        if out is not None and not (out.shape == first.shape and out.flags.c_contiguous):
            return None
        threads = self.count()
        if threads < 2:
            return None
        flat = [value.reshape(-1) if getattr(value, "shape", ()) else value for value in inputs]
        if out is None:
            probe = ufunc(*[value[:1] if getattr(value, "shape", ()) else value for value in flat])
            out = np.empty(first.shape, probe.dtype)
        target = out.reshape(-1)
        step = -(-target.size // threads)
        pieces = []
        for start in range(0, target.size, step):
            part = slice(start, start + step)
            pieces.append(([v[part] if getattr(v, "shape", ()) else v for v in flat], target[part]))
        return out if self.run([partial(ufunc, *inputs, target) for inputs, target in pieces]) else None

    def share(self, work: Callable[[int], None], starts: range) -> None:
        """Call `work` for each start, one after the other where it is one, or there are no threads."""
        if len(starts) < 2 or not self.run([partial(work, start) for start in starts]):
            for start in starts:
                work(start)

    def run(self, tasks: Sequence[Callable[[], Any]]) -> bool:
        """Run each task on a thread, the first on the caller's; False, with some done and some not, when there are no threads.

        Raises what the first failing task raises, after all have ended.
        """
        executor = self._started(len(tasks) - 1)
        # Each task gets the caller's context: NumPy keeps its error state there.
        waiting = []
        try:
            for task in tasks[1:]:
                waiting.append(executor.submit(copy_context().run, self._inside, task))
            self._inside(tasks[0])
        except RuntimeError as error:
            if len(waiting) == len(tasks) - 1:
                raise
            del error  # the executor takes no more work: the interpreter ends, or the plugin was deactivated meanwhile
            return False
        finally:
            problems = [future.exception() for future in waiting]
        for problem in problems:
            if problem is not None:
                raise problem
        return True

    def _inside(self, task: Callable[[], Any]) -> None:
        self._local.inside = True
        try:
            task()
        finally:
            self._local.inside = False

    def _started(self, workers: int) -> ThreadPoolExecutor:
        """The executor, with at least that many workers, of this process: a fork leaves its threads behind."""
        from concurrent.futures import ThreadPoolExecutor

        with self._lock:
            if self._executor is None or workers > self._workers or self._process != os.getpid():
                if self._executor is not None and self._process == os.getpid():
                    self._executor.shutdown(wait=False)
                self._executor = ThreadPoolExecutor(workers, thread_name_prefix="turnout-cpu")
                self._workers, self._process = workers, os.getpid()
            return self._executor

    def close(self) -> None:
        """End the threads; the next operation starts new ones."""
        with self._lock:
            executor, self._executor = self._executor, None
            self._workers = 0
        if executor is not None and self._process == os.getpid():
            executor.shutdown(wait=True)
