"""The settings of core, one row each. Any name may follow `plugin.` and the prefixes of `CHOICES`.

No setting of core takes a module, a path or code. Options of plugins that name a peer, a path or a program are trusted: a file
that comes with a project may not set them, so it can only choose among installed packages.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from turnout.config.tuples import NamedTuple
from turnout.keys.rows import DEVICE_NAME


class Setting(NamedTuple):
    """One setting. A `scoped` one may be overridden for a context, because nothing global is computed from it."""

    name: str
    type: str
    default: Any
    help: str
    scoped: bool = False
    pattern: str = ""
    expected: str = ""


_NAME = r"[a-z][a-z0-9]*(_[a-z0-9]+)*"

# fmt: off
SETTINGS: dict[str, Setting] = {s.name: s for s in (
    Setting("default_device", "str", "", "the device of tensors made without device=; empty: the lowest backend's", scoped=True,
            pattern=rf"|{DEVICE_NAME}(:[0-9]{{1,9}})?", expected="a device such as 'cpu' or 'cuda:1'"),
    Setting("compile.engine", "str", "", "what compiles graphs; empty: the device's engine, else one for any", scoped=True,
            pattern=rf"|{_NAME}", expected="the name of an engine such as 'eager'"),
    Setting("strict", "bool", False, "problems that are otherwise recorded and warned about are errors", scoped=True),
    Setting("traceback", "str", "short", "which frames an error shows: the program's, or with 'full' those of Turnout, too",
            scoped=True, pattern="short|full", expected="'short' or 'full'"),
    Setting("debug.kernels", "bool", False, "each call of an array kernel checks what it is given and what it gives; slow"),
    Setting("debug.locks", "bool", False, "an import by a thread that holds the lock of registrations and plugins is an error"),
    Setting("plugins.disable", "strings", (), "plugins that are never activated; '*' means all plugins that are not enabled"),
    Setting("plugins.enable", "strings", (), "plugins that are used even if a weaker source disables them"),
    Setting("keys.enable", "strings", (), "functionalities that take part in every call", scoped=True),
    Setting("speed", "bool", True, "functions of the call path that an installed plugin can replace are replaced; read at start"),
    Setting("keys.disable", "strings", (), "functionalities or runtime keys whose slots fall through"),
)}
# fmt: on

NAME = re.compile(_NAME)  # of plugins and options: no `__`, which separates in the environment
NAMES = "lower case letters, digits and single underscores, a letter first"

# Settings with an open last part, and what each is for.
CHOICES = {
    "plugins.choose.": "which distribution provides {}, a plugin, device, backend or functionality",
    "kernels.choose.": "whose kernel is used for {}",
    "kernels.prefer.": "whose kernels for {} come first",
    "names.choose.": "which plugin provides turnout.{}",
}


def choice_of(name: str) -> tuple[str, str]:
    """The x of `plugins.choose.x` or of another prefix of `CHOICES`, and the setting's help; empty for another setting."""
    found = ((name.removeprefix(prefix), meaning) for prefix, meaning in CHOICES.items() if name.startswith(prefix))
    return next(((subject, meaning.format(subject)) for subject, meaning in found if subject), ("", ""))


def option_of(name: str) -> tuple[str, str] | None:
    """The plugin and option of `plugin.<plugin>.<option>`, or None for another setting."""
    table, _, rest = name.partition(".")
    plugin, _, option = rest.partition(".")
    return (plugin, option) if table == "plugin" and option and "." not in option else None


@cache
def normal(distribution: str) -> str:
    """The name of a distribution as packaging tools compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()
