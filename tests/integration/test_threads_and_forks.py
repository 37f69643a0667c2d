"""A process that forks or spawns while its other threads are busy: the children work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FORKS = Path(__file__).resolve().parents[1] / "fixtures" / "forks.py"
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


# Python 3.12 and later warn of each fork of a process with threads, which is what the tests are about.
NO_WARNING = "ignore:This process:DeprecationWarning"


def run(*args: str) -> tuple[int, str, str]:
    done = subprocess.run([sys.executable, "-W", NO_WARNING, *args], capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


@needs_fork
def test_children_forked_while_threads_compute_load_and_register_give_right_values():
    assert run(str(FORKS), "5") == (0, "0\n", "")


@needs_fork
def test_a_child_can_import_what_another_thread_was_importing(tmp_path):
    (tmp_path / "slow.py").write_text("import time\nSTARTED = True\ntime.sleep(2)\nDONE = True\n")
    program = (
        "import os, signal, sys, threading, time, turnout\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "threading.Thread(target=__import__, args=('slow',), daemon=True).start()\n"
        "while not hasattr(sys.modules.get('slow'), 'STARTED'): time.sleep(0.01)\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    signal.alarm(60)\n"
        "    import slow\n"
        "    os._exit(0 if slow.DONE else 1)\n"
        "print(os.waitpid(pid, 0)[1])\n"
    )
    assert run("-c", program) == (0, "0\n", "")


@needs_fork
def test_a_lock_that_another_thread_holds_is_free_in_the_child():
    program = (
        "import os, signal, threading, time\n"
        "from turnout.config.lock import new_lock\n"
        "first, second = new_lock(), new_lock()\n"
        "def hold(a, b):\n"
        "    while True:\n"
        "        with a:\n"
        "            time.sleep(0.001)\n"
        "            with b: time.sleep(0.001)\n"
        "threading.Thread(target=hold, args=(first, second), daemon=True).start()\n"
        "for _ in range(20):\n"
        "    pid = os.fork()\n"
        "    if not pid:\n"
        "        signal.alarm(60)\n"
        "        with first, second: os._exit(0)\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
        "print('done')\n"
    )
    assert run("-c", program) == (0, "done\n", "")


def test_children_spawned_while_threads_compute_give_right_values(tmp_path):
    (tmp_path / "spawning.py").write_text(
        "import multiprocessing, sys, threading\n"
        f"sys.path.insert(0, {str(FORKS.parent)!r})\n"
        "if __name__ == '__main__':\n"
        "    import forks\n"
        "    forks.child()\n"
        "    threads = [threading.Thread(target=f, daemon=True) for f in (forks.compute, forks.register)]\n"
        "    [t.start() for t in threads]\n"
        "    import importlib\n"
        "    ctx = multiprocessing.get_context('spawn')\n"
        "    each = [ctx.Process(target=forks.child) for _ in range(2)]\n"
        "    [p.start() for p in each]; [p.join(200) for p in each]\n"
        "    print([p.exitcode for p in each]); forks.STOP.set(); [t.join() for t in threads]\n"
    )
    assert run(str(tmp_path / "spawning.py")) == (0, "[0, 0]\n", "")
