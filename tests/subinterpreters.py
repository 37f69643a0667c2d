"""Programs in a second interpreter of a process. From Python 3.12 on it has a GIL of its own."""

from __future__ import annotations

import subprocess
import sys

LAUNCH = """
import sys
try:
    import _interpreters as interpreters
except ImportError:  # before Python 3.13
    import _xxsubinterpreters as interpreters
exec(sys.argv[1])
print(end="", flush=True)
other = interpreters.create()
problem = interpreters.run_string(other, sys.argv[2])
assert problem is None, problem
exec(sys.argv[3])
interpreters.destroy(other)  # Python 3.14 warns of those that are left
"""


def run_in_subinterpreter(program: str, *, before: str = "", after: str = "", options: tuple[str, ...] = ()) -> tuple[str, str]:
    """What a program prints and what it writes to stderr; the main interpreter runs `before` and `after`."""
    command = [sys.executable, *options, "-c", LAUNCH, before, f"{program}\nimport sys; sys.stdout.flush()", after]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr
