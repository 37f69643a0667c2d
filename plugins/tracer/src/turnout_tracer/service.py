"""What `turnout.graphs` offers while this plugin is active."""

from turnout_tracer.errors import TraceError, TraceWarning
from turnout_tracer.graph import Graph
from turnout_tracer.nodes import Node
from turnout_tracer.recording import is_tracing, trace

__all__ = ["Graph", "Node", "TraceError", "TraceWarning", "is_tracing", "trace"]
