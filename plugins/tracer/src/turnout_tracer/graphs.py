"""`turnout.graphs`: recording functions into graphs of operators, and reading graphs back from files."""

from __future__ import annotations

from typing import Any

from turnout import plugins
from turnout_tracer.errors import TraceError, TraceWarning
from turnout_tracer.graph import Graph
from turnout_tracer.nodes import Node, Ref
from turnout_tracer.recording import is_tracing, trace

__all__ = ["Graph", "Node", "Ref", "TraceError", "TraceWarning", "is_tracing", "load", "trace"]
__dir__ = __all__.copy


def load(path: Any, device: Any = None) -> Graph:
    """Read a graph that `Graph.save` wrote.

    Arguments:
        path: the file
        device: where its constants go, by default where they were

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     turnout.trace(lambda x: x + 1)(turnout.tensor([1])).save(f"{folder}/graph")
        ...     graph = turnout.graphs.load(f"{folder}/graph")
        >>> graph(turnout.tensor([2]))
        tensor([3])
    """
    plugins.require_functionality("Tracer")
    return Graph.load(path, device)
