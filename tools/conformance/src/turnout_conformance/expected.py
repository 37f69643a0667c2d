"""The file of expected failures: one test a line, and behind it what it raised.

    # What acme is known not to do.
    test_gradients_are_those_of_cpu[acme-cumsum]  # AssertionError: acme gave ...

A line names the test function with the parameters in brackets, as pytest prints them. The file is strict: a test in it that
passes is a failure, and so is a line that names no test of a function that is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

HEAD = """\
# Tests of turnout-conformance that are expected to fail, one a line; behind the # stands what they raised.
# A test in this list that passes is a failure: take it out.
"""


def read(path: Path) -> dict[str, str]:
    """Test -> reason, from a file."""
    found = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, reason = line.partition("  #")
        if name.strip() and not name.startswith("#"):
            found[name.strip()] = reason.strip()
    return found


def write(path: Path, failures: Mapping[str, str]) -> None:
    """A file that expects these failures: test -> reason."""
    lines = [f"{name}  # {reason}" if reason else name for name, reason in sorted(failures.items())]
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines), encoding="utf-8")


def stale(expected: Iterable[str], collected: Iterable[str]) -> list[str]:
    """The lines that name no test, though other tests of the same function are there."""
    there = set(collected)
    functions = {name.partition("[")[0] for name in there}
    return [name for name in expected if name not in there and name.partition("[")[0] in functions]
