"""Activates what can be activated: questions about kernels are about all installed plugins, not only those in use."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from turnout_cli.output import note

if TYPE_CHECKING:
    from turnout.plugins.records import PluginRecord

BROKEN = ("failed", "incompatible", "conflict", "blocked")


def activate_all() -> list[PluginRecord]:
    """Activate every plugin that can be; all records, with the states in which that left them."""
    from turnout import plugins
    from turnout.errors import ConfigError

    with contextlib.suppress(ConfigError):  # what would be disabled is not known: nothing is activated
        plugins.activate_all()
    return plugins.all_plugins()


def activate_with_note() -> list[PluginRecord]:
    """The same, with a line on the standard error when some are broken.

    Raises ConfigError for a configuration that cannot be read: what it would disable is not known.
    """
    from turnout import config

    problem = config.problem()
    if problem is not None:
        raise problem
    records = activate_all()
    broken = [record.name for record in records if record.state in BROKEN]
    if broken:
        note(f"without {', '.join(broken)}: broken, `turnout doctor` says why")
    return records
