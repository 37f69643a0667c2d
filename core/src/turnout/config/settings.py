"""The settings of core: one row each. Names below `plugins.choose.`, `plugin.`, `kernels.choose.` and `names.choose.` are open.

Nothing here takes a module, a path or code: a file that comes with somebody's project can only choose among what is
installed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Setting:
    """One setting. `scoped` ones may be overridden for a context, as nothing global is computed from them."""

    name: str
    type: str
    default: Any
    help: str
    scoped: bool = False
    pattern: str = ""
    expected: str = ""


# fmt: off
SETTINGS: dict[str, Setting] = {s.name: s for s in (
    Setting("default_device", "str", "", "the device of tensors made without device=; empty: the lowest backend's", scoped=True,
            pattern=r"|[a-z][a-z0-9_]*(:[0-9]+)?", expected="a device such as 'cpu' or 'cuda:1'"),
    Setting("strict", "bool", False, "what would be recorded and warned about is an error at once", scoped=True),
    Setting("plugins.disable", "strings", (), "plugins that are never activated; '*' means all that are not enabled"),
    Setting("plugins.enable", "strings", (), "plugins that are used although a weaker source disables them"),
    Setting("keys.disable", "strings", (), "functionalities or runtime keys whose slots fall through"),
)}
# fmt: on

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")  # of plugins and options: no `__`, which separates in the environment


def choice_of(name: str) -> str | None:
    """The plugin that `plugins.choose.<plugin>` is about, or None for another setting."""
    return _after("plugins.choose.", name)


def kernel_of(name: str) -> str | None:
    """The operator and key of `kernels.choose.<operator>@<key>`, or None for another setting."""
    return _after("kernels.choose.", name)


def public_name_of(name: str) -> str | None:
    """The public name of `names.choose.<name>`, or None for another setting."""
    return _after("names.choose.", name)


def option_of(name: str) -> tuple[str, str] | None:
    """The plugin and option of `plugin.<plugin>.<option>`, or None for another setting."""
    rest = _after("plugin.", name)
    if rest is None or rest.count(".") != 1:
        return None
    plugin, _, option = rest.partition(".")
    return plugin, option


def _after(prefix: str, name: str) -> str | None:
    return name[len(prefix) :] if name.startswith(prefix) and len(name) > len(prefix) else None


def nearest(name: str, known: list[str]) -> str:
    """`; did you mean X?`, or the empty text when nothing is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""
