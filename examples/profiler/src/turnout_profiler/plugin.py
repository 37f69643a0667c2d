"""Activation: one fallback at Profiler for all operators, and the report when the program ends."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.plugins import hookimpl
from turnout_profiler.measuring import measure
from turnout_profiler.profiles import PROGRAM

if TYPE_CHECKING:
    from turnout.plugins import Registrations


@hookimpl
def turnout_activate(library: Registrations, options: Mapping[str, Any]) -> None:
    """Register the fallback, and the report."""
    library.fallback("Profiler", measure, label="profile")

    def at_exit() -> None:
        report(options)

    atexit.register(at_exit)
    library.on_undo(lambda: atexit.unregister(at_exit))
    library.on_undo(PROGRAM.clear)


def report(options: Mapping[str, Any]) -> None:
    """Print and write what the options ask for, if a call was measured outside of all blocks."""
    how = {"sort": options["sort"], "rows": options["rows"]}
    if not PROGRAM.rows():
        return
    if options["print"]:
        sys.stderr.write(PROGRAM.table(**how) + "\n")
    path = options["file"]
    if path:
        try:
            PROGRAM.save(path, **how)
        except OSError as error:
            sys.stderr.write(f"turnout-profiler: {path} was not written: {error}\n")
