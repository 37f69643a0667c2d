"""One thread imports a plugin's module, another one activates the plugin: neither waits for ever."""

from __future__ import annotations

import subprocess
import sys

import pytest
from packages_on_path import write_package

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
PROGRAM = """
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
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.format(ask=ask)],
        cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "[2.0, 2.0]\n", "")
