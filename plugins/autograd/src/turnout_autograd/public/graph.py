"""`turnout.autograd.graph`: nodes, what they save, and the graph as a drawing."""

from turnout_autograd.drawing.graph_drawing import draw
from turnout_autograd.engine.gradient_edges import GradientEdge, get_gradient_edge
from turnout_autograd.engine.nodes import Node
from turnout_autograd.hooks.multi_grad_hooks import register_multi_grad_hook
from turnout_autograd.hooks.packing import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from turnout_autograd.recording.inplace_writes import increment_version

__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "draw", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip
__dir__ = __all__.copy
