"""The names that exist here, for completion in a shell: operators, keys, plugins, devices, engines, settings.

Nothing is activated but plugins with operators, whose names are known only then. Where names cannot be read, there are none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]


def completer(names: Callable[[str], Iterable[str]]) -> Completer:
    """What click asks for the names that begin with what is typed: `names` gets that, and may leave others out."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        from turnout.errors import TurnoutError

        found: list[str] = []
        with contextlib.suppress(TurnoutError):  # the command itself will say what is wrong
            found = sorted({name for name in names(incomplete) if name.startswith(incomplete)})
        return [CompletionItem(name) for name in found]

    return complete


def _operators(typed: str) -> Iterable[str]:
    """`add` before a dot is typed, `add.Tensor` afterwards; with the namespace once that is typed."""
    from turnout import plugins
    from turnout.errors import TurnoutError
    from turnout.registry import REGISTRY

    for namespace in plugins.catalog().namespaces():
        with contextlib.suppress(TurnoutError):
            plugins.require_namespace(namespace)
    for name, op in list(REGISTRY.operators.items()):
        if op.is_defined:
            namespace, _, short = name.partition("::")
            shown = short if "." in typed else short.partition(".")[0]
            yield f"{namespace}::{shown}" if "::" in typed else shown
            if "::" not in typed:
                yield f"{namespace}::"


def _keys(_: str) -> Iterable[str]:
    from turnout import plugins
    from turnout.registry import REGISTRY

    plugins.catalog()  # brings the keys of what is installed
    return REGISTRY.keys.universe.runtime_keys


def _plugins(_: str) -> Iterable[str]:
    from turnout import plugins

    return plugins.catalog().plugin_names()


def _devices(_: str) -> Iterable[str]:
    from turnout import plugins

    return plugins.catalog().provided("device")


def _settings(_: str) -> Iterable[str]:
    from turnout import config

    return [value.name for value in config.describe()]


def _engines(_: str) -> Iterable[str]:
    from turnout import plugins

    return [row.name for _, row in plugins.engines()]


operator_names = completer(_operators)
key_names = completer(_keys)
plugin_names = completer(_plugins)
device_names = completer(_devices)
engine_names = completer(_engines)
setting_names = completer(_settings)
