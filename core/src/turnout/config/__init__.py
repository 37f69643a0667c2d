"""Configuration: values with origins, from context managers down to defaults.

The sources, highest first: `with override(...)`, `set(...)`, TURNOUT_* variables, the file named by TURNOUT_CONFIG, the nearest
`turnout.toml` or [tool.turnout] of `pyproject.toml` upward, the user's file, defaults. The highest source that names a setting
decides its whole value: lists are not merged.

Start in `settings` (the settings), then `store` (how they are merged and checked), `sources` (where they are read).
`import turnout` loads this module, which reads nothing until one of its functions is called.
"""

from __future__ import annotations

from turnout.config.effects import effect
from turnout.config.installed import installed
from turnout.config.lock import LOCK, OVERRIDES
from turnout.errors import ConfigError, printed
from turnout.errors import config as errors
from turnout.guards import Guard
from turnout.keys.rows import STANDARD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from turnout.config.sources import Origin
    from turnout.config.store import Callback, Store, Value
    from turnout.guards import Changes

__all__ = ["LOCK", "OVERRIDES", "choices", "current_store", "describe", "get", "key_disabled", "on_change", "origin", "override",
    "problem", "reload", "set", "unset"]  # fmt: skip

ENABLED_KEYS = "keys.enable"
_store: Store | None = None


def current_store() -> Store:
    """The configuration of the process, made at the first use."""
    global _store
    if _store is None:
        from turnout.config.store import Store

        with LOCK:
            _store = _store or Store()
    return _store


def get(name: str) -> Any:
    """The value of a setting such as `"default_device"` or `"plugin.acme.memory_fraction"`. Lists are tuples.

    Raises ConfigError for a setting that does not exist, and at the first call for wrong sources.
    """
    overridden = OVERRIDES.get()
    if overridden and name in overridden[0]:
        return overridden[0][name]
    return current_store().value(name).value


def origin(name: str) -> Origin:
    """The source of a setting's value: `.source`, and `.path` and `.line` for files. str() is for people."""
    return current_store().value(name).origin


def describe() -> list[Value]:
    """Every setting and every installed plugin's options: `.name`, `.value`, `.origin`, `.help`."""
    return current_store().describe()


def set(values: Mapping[str, Any] | None = None, /, **named: Any) -> None:
    """Set values for the process: `set({"keys.disable": ["Autocast"]})` or `set(keys__disable=["Autocast"])`.

    Raises ConfigError and changes nothing when one of them is wrong.
    """
    effect("config.set()")
    try:
        current_store().set(_named(values, named))
    except Exception as error:
        installed().shorten(error)
        raise


def unset(*names: str) -> None:
    """Undo `set` for these names, which may be tables such as "kernels.choose"; without names, for all."""
    effect("config.unset()")
    try:
        current_store().unset(tuple(map(_unquoted, names)))
    except Exception as error:
        installed().shorten(error)
        raise


def reload() -> None:
    """Read files and environment again. Raises ConfigError and changes nothing when they are wrong."""
    effect("config.reload()")
    try:
        current_store().reload()
    except Exception as error:
        installed().shorten(error)
        raise


def override(values: Mapping[str, Any] | None = None, /, **named: Any) -> Override:
    """Values for a `with` block. Each thread and task has its own.

    It accepts `default_device`, `compile.engine`, `strict`, `traceback`, `keys.enable` and options of plugins. Entering the block
    raises ConfigError for other settings, which hold for the whole process, and for wrong values.
    """
    effect("config.override()")
    try:
        return Override(_named(values, named))
    except Exception as error:
        installed().shorten(error)
        raise


class Override(Guard):
    """The context manager that `override` returns: inside, settings have these `values`."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def sets(self) -> Changes:
        store = current_store()
        checked = store.overriding(self._values)
        changes = [(OVERRIDES, [{**(OVERRIDES.get() or ({},))[0], **checked}])]
        if ENABLED_KEYS in checked:
            before, after = store.value(ENABLED_KEYS), store.overridden(ENABLED_KEYS, checked[ENABLED_KEYS])
            changes += installed().enabled_keys().switched(before, after).sets()
        return changes


def key_disabled(key: str, functionality: str) -> str:
    """The entry of `keys.disable` that disables a runtime key; "" for none.

    It is the key, its functionality, or a functionality with a row for each backend.
    """
    disabled = get("keys.disable")
    names = (key, functionality, *(row.name for row in STANDARD if row.each_backend and key.startswith(row.name)))
    return next((name for name in names if name in disabled), "")


def choices(table: str) -> dict[str, Any]:
    """The values of a table of choices.

    "kernels.choose"  "mylib::add.Tensor@CPU" -> the library or distribution whose kernel wins a conflict there
    "kernels.prefer"  "add*@CPU" -> the libraries or distributions whose kernels come first there, in this order
    "names.choose"    a public name -> the plugin that provides it when several could
    """
    prefix, values = f"{table}.", current_store().snapshot
    return {name[len(prefix) :]: value.value for name, value in values.items() if name.startswith(prefix)}


def on_change(callback: Callback) -> Callable[[], None]:
    """Call `callback` with the names of changed settings after every `set`, `unset` and `reload`, under `LOCK`.

    Overrides do not call it, because nothing global depends on them. Returns a function that ends the subscription.
    """
    effect("config.on_change()")
    return current_store().on_change(callback)


def problem() -> ConfigError | None:
    """The error that reading the configuration raises now, or None: for commands that work with a wrong one."""
    try:
        current_store().snapshot  # noqa: B018
    except ConfigError as error:
        return error
    return None


def _named(values: Mapping[str, Any] | None, named: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if values is not None and not hasattr(values, "items"):
        raise ConfigError(f'settings are given as {{"strict": True}} or strict=True, got {printed(values)}')
    for name, value in (*_entries(values or {}), *_entries({name.replace("__", "."): named[name] for name in named})):
        if name in given:
            raise ConfigError(f"{name}: one call names it twice, by two spellings")
        given[name] = value
    return given


def _entries(values: Mapping[str, Any], table: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by their full names, without the quotes that a key has in a file."""
    for name, value in values.items():
        whole = _unquoted(name, table)
        if isinstance(value, dict) and value and table.count(".") < 3:
            yield from _entries(value, whole + ".")
        else:
            yield whole, value


def _unquoted(name: object, table: str = "") -> str:
    if not isinstance(name, str):
        raise errors.no_name(name)
    head, quote, rest = (table + name).partition('"')
    return head + rest[:-1] if quote and head.endswith(".") and rest.endswith('"') else table + name
