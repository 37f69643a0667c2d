"""Activates every usable plugin, because questions about kernels concern all installed plugins and not only those in use."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from turnout.plugins.records import BROKEN as FAULTY
from turnout_cli.output import note

if TYPE_CHECKING:
    from turnout.plugins.records import PluginRecord

BROKEN = (*FAULTY, "blocked")  # a plugin that requires a broken one is broken, too


def activate_all() -> list[PluginRecord]:
    """Activate every plugin that can be activated; return all records, with their states afterwards."""
    from turnout import plugins
    from turnout.errors import ConfigError

    with contextlib.suppress(ConfigError):  # it is not known what would be disabled, so nothing is activated
        plugins.activate_all()
    return plugins.all_plugins()


def activate_with_note() -> list[PluginRecord]:
    """The same, with a line on the standard error when some are broken.

    Raises ConfigError for a configuration that cannot be read, because it is not known what it would disable.
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
