"""Graphs of operators: `trace`, and where the rest is to be found.

Recording is the plugin's that provides the functionality Tracer, activated when a function is first traced or a graph is
loaded: `Graph`, `TraceError`, `TraceWarning` and `is_tracing` are attributes of the service it registers.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _service() -> Any:
    from turnout import plugins
    from turnout.registry import REGISTRY

    with REGISTRY.lock:  # the plugin cannot be deactivated between the two
        plugins.require_functionality("Tracer")
        return REGISTRY.services["Tracer"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(_service(), name)
    except AttributeError:
        raise AttributeError(f"module 'turnout.graphs' has no attribute {name!r}") from None


def trace(function: Callable[..., Any]) -> Callable[..., Any]:
    """`trace(f)(*inputs)` runs f once and returns a `Graph` of the operators that it called, those of backward included.

    The graph can be called with other inputs, printed, put on another device with `to`, and saved as data. Raises
    PluginError when nothing provides Tracer, at the call.
    """
    from functools import wraps

    @wraps(function)
    def traced(*args: Any, **kwargs: Any) -> Any:
        return _service().trace(function)(*args, **kwargs)

    return traced


def load(path: Any, device: Any = None) -> Any:
    """Read a graph that `Graph.save` wrote; `device` is where its constants go, by default where they were."""
    return _service().Graph.load(path, device)
