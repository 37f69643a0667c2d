"""Which engine compiles a graph: the one that was named, that of the setting `compile.engine`, or the device's."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnout import config, plugins
from turnout.devices import device
from turnout_tracer.compiling import errors
from turnout_tracer.compiling.errors import NotLoweredError, NotWorthwhileError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from turnout.devices import Device
    from turnout_tracer.graph import Graph


def chosen(engine: str, place: Device) -> tuple[str, Callable[..., Any]]:
    """The name and the `compile` of an engine, whose plugin is activated. Raises CompileError for none or several."""
    rows = plugins.engines()
    wanted = engine or str(config.get("compile.engine"))
    if wanted:
        found = [(plugin, row) for plugin, row in rows if row.name == wanted]
        if not found:
            raise errors.CompileError(errors.no_such_engine(wanted, sorted({row.name for _, row in rows})))
        if found[0][1].devices and place.type not in found[0][1].devices:
            raise errors.CompileError(errors.engine_not_for(wanted, place.type, found[0][1].devices))
    else:
        found = [(plugin, row) for plugin, row in rows if place.type in row.devices]
        found = found or [(plugin, row) for plugin, row in rows if not row.devices]
        names = sorted({row.name for _, row in found})
        if len(names) > 1:
            raise errors.CompileError(errors.several_engines(place.type, names))
    if len(found) != 1:
        raise errors.CompileError(errors.twice(found[0][1].name, [plugin for plugin, _ in found]))
    plugin, row = found[0]
    try:
        plugins.activate(plugin)
        return row.name, import_module(row.module).compile
    except Exception as error:
        raise errors.CompileError(errors.engine_unusable(row.name, error)) from error


def compiled(
    engine: str,
    compile: Callable[..., Any],
    graph: Graph,
    examples: Sequence[Any],
    name: str,
    place: Device,
    written: tuple[int, ...] = (),
) -> Any:
    """What an engine makes of a graph. docs/compile.md has the options that it gets.

    Raises NotLoweredError where it does not take it, NotWorthwhileError where it leaves it to eager calls, and CompileError
    where it fails.
    """
    options = {"name": name, "device": place, "written": written}
    try:
        made = compile(graph, examples, options)
    except errors.EngineError as error:
        raise NotLoweredError(errors.refused_by_engine(engine, error)) from error
    except Exception as error:
        raise errors.CompileError(errors.engine_failed(engine, name, error)) from error
    if isinstance(made, str):
        raise NotWorthwhileError(errors.left_by_engine(engine, made))
    return made


def one_device(tensors: Iterable[Any]) -> Any:
    """The device of some tensors; cpu for none. Raises NotLoweredError for several."""
    devices = dict.fromkeys(tensor.device for tensor in tensors)
    if len(devices) > 1:
        raise NotLoweredError(errors.several_devices(map(str, devices)))
    return next(iter(devices), None) or device("cpu")
