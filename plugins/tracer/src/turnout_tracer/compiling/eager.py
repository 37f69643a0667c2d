"""The engine `eager`: it runs the operators of a graph one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from turnout_tracer.graph import Graph


def compile(graph: Graph, examples: Sequence[Any], options: Mapping[str, Any]) -> Callable[..., list[Any]]:
    """The graph: it can be called."""
    return graph
