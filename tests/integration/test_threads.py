"""Threads and processes: first calls at once, imports beside activations, and children of a process whose threads are busy."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from installed import clean
from packages_on_path import write_package

FORKS = Path(__file__).resolve().parents[1] / "fixtures" / "forks.py"
ROOT = Path(__file__).resolve().parents[2]
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

# Python 3.12 and later warn of each fork of a process with threads, which is what some of the tests are about.
NO_WARNING = "ignore:This process:DeprecationWarning"


def run(*args: str, **variables: str) -> tuple[int, str, str]:
    command = [sys.executable, "-W", "error", "-W", NO_WARNING, *args]
    done = subprocess.run(command, env=clean(**variables), capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


# ---- the first calls of a process: everything lazy is made once, and nothing waits for ever

FIRST_CALLS = """
import faulthandler, sys, threading, traceback
faulthandler.dump_traceback_later(60, exit=True)
sys.setswitchinterval(1e-5)
import turnout

def gradient():
    x = turnout.ones(2, requires_grad=True)
    x.exp().log().sum().backward()
    return x.grad.tolist()

def custom(n):
    op = turnout.library.custom_op(f"own{n}::inc", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    return op(turnout.ones(1)).item()

WORK = [
    lambda n: gradient() == [1.0, 1.0],
    lambda n: custom(n) == 2.0,
    lambda n: turnout.nn.functional.softmax(turnout.ones(2), 0).tolist() == [0.5, 0.5],
    lambda n: turnout.tensor([1.0, 2.0])[1].item() == 2.0,
    lambda n: "arctan2" in str(turnout.explain("aten::atan2", turnout.ones(1), turnout.ones(1))),
    lambda n: turnout.cat([turnout.ones(1)] * 2).shape == (2,),
    lambda n: turnout.ones(2, device="meta").exp().shape == (2,),
    lambda n: repr(turnout.ones(2)) == "tensor([1., 1.])",
]
start, wrong = threading.Barrier(8), []

def worker(n):
    start.wait()
    for i in range(len(WORK)):
        which = (i + n) % len(WORK)
        try:
            assert WORK[which](n), "another result"
        except BaseException:
            wrong.append(f"work {which}: {traceback.format_exc()}")

threads = [threading.Thread(target=worker, args=(n,)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("".join(wrong), end="")
"""


@pytest.mark.parametrize("process", range(4))
def test_the_first_calls_of_eight_threads_at_once_are_right(process):
    assert run("-c", FIRST_CALLS) == (0, "", "")


# ---- one thread imports a plugin's module, another one activates the plugin: neither waits for ever

CODE = """
import time
from turnout.plugins import hookimpl
time.sleep(0.4)  # meanwhile the other thread activates the plugin
from turnout import ones  # takes the lock, and activates another plugin


def slow_name():
    return ones(2)


@hookimpl
def turnout_activate(library, options):
    library.define("slow::f(Tensor x) -> Tensor")
    library.impl("slow::f", "CompositeImplicitAutograd", lambda x: x + 1)
"""
MANIFEST = """
kind = "library"
requires_plugins = ["aten"]

[provides]
namespaces = ["slow"]

[provides.names]
"slow_x" = ["slow_name"]
"""
IMPORTING = """
import faulthandler, threading, time
faulthandler.dump_traceback_later(20, exit=True)
import turnout

def activate():
    time.sleep(0.2)
    {ask}

threads = [threading.Thread(target=__import__, args=("slow_x",)), threading.Thread(target=activate)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(turnout.ops.slow.f(turnout.slow_name()).tolist())
"""
ASKED = {
    "by its name": "turnout.plugins.activate('slow')",
    "by a namespace": "turnout.ops.slow.f",
    "by a public name": "turnout.slow_name",
    "with all": "turnout.plugins.activate_all()",
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_module_is_imported_while_its_plugin_is_activated(ask, tmp_path):
    write_package(tmp_path, "slow", MANIFEST, CODE)
    assert run("-c", IMPORTING.format(ask=ask), PYTHONPATH=str(tmp_path)) == (0, "[2.0, 2.0]\n", "")


# ---- children


@needs_fork
def test_children_forked_while_threads_compute_load_and_register_give_right_values():
    assert run(str(FORKS), "5") == (0, "0\n", "")


@needs_fork
def test_a_child_can_import_what_another_thread_was_importing(tmp_path):
    (tmp_path / "slow.py").write_text("import time\nSTARTED = True\ntime.sleep(1)\nDONE = True\n")
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
def test_a_child_can_activate_what_another_thread_was_activating(tmp_path):
    write_package(tmp_path, "slow", MANIFEST, CODE)
    program = (
        "import os, signal, threading, time, turnout\n"
        "turnout.ones(1)\n"
        "other = threading.Thread(target=turnout.plugins.activate, args=('slow',)); other.start()\n"
        "time.sleep(0.2)\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    signal.alarm(60)\n"
        "    os._exit(int(turnout.ops.slow.f(turnout.slow_name()).tolist() != [2.0, 2.0]))\n"
        "other.join(); print(os.waitpid(pid, 0)[1])\n"
    )
    assert run("-c", program, PYTHONPATH=str(tmp_path)) == (0, "0\n", "")


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


# ---- what every thread may change

CHANGED_BY_ALL = {"sys.modules", "linecache.cache"}  # by any import, and by the first call of any operator


def iterations(source: str) -> list[str]:
    """The lines that iterate over such a dict itself: a change meanwhile raises RuntimeError, with the GIL or without it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.For, ast.comprehension)):
            over = ast.unparse(node.iter)
            if re.sub(r"\.(items|keys|values)\(\)$", "", over) in CHANGED_BY_ALL:
                found.append(f"{node.iter.lineno}: {over}")
    return found


def test_a_dict_that_any_thread_may_change_is_iterated_over_in_a_copy():
    examples = "for name in sys.modules: pass\n[x for x in linecache.cache.items()]\n[x for x in list(sys.modules.values())]"
    assert iterations(examples) == ["1: sys.modules", "2: linecache.cache.items()"]
    sources = [path for place in ("core", "plugins/*", "tools/*") for path in ROOT.glob(f"{place}/src/**/*.py")]
    assert len(sources) > 300
    assert {str(path): found for path in sources if (found := iterations(path.read_text("utf-8")))} == {}
