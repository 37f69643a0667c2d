"""Which engine compiles a graph: the one that was named, that of the setting `compile.engine`, or the device's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnout import config, plugins
from turnout_tracer.compiling import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.devices import Device


def chosen(engine: str, device: Device) -> tuple[str, Callable[..., Any]]:
    """The name and the `compile` of an engine, whose plugin is activated. Raises CompileError for none or several."""
    rows = plugins.engines()
    wanted = engine or str(config.get("compile.engine"))
    if wanted:
        found = [(plugin, row) for plugin, row in rows if row.name == wanted]
        if not found:
            raise errors.CompileError(errors.no_such_engine(wanted, sorted({row.name for _, row in rows})))
        if found[0][1].devices and device.type not in found[0][1].devices:
            raise errors.CompileError(errors.engine_not_for(wanted, device.type, found[0][1].devices))
    else:
        found = [(plugin, row) for plugin, row in rows if device.type in row.devices]
        found = found or [(plugin, row) for plugin, row in rows if not row.devices]
        names = sorted({row.name for _, row in found})
        if len(names) > 1:
            raise errors.CompileError(errors.several_engines(device.type, names))
    if len(found) != 1:
        raise errors.CompileError(errors.twice(found[0][1].name, [plugin for plugin, _ in found]))
    plugin, row = found[0]
    try:
        plugins.activate(plugin)
        return row.name, import_module(row.module).compile
    except Exception as error:
        raise errors.CompileError(errors.engine_unusable(row.name, error)) from error
