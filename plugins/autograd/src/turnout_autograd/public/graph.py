"""`turnout.autograd.graph`: nodes, what they save, and the graph as a drawing."""

from turnout_autograd.drawing.graph_drawing import draw as draw
from turnout_autograd.engine.gradient_edges import GradientEdge as GradientEdge
from turnout_autograd.engine.gradient_edges import get_gradient_edge as get_gradient_edge
from turnout_autograd.engine.nodes import Node as Node
from turnout_autograd.hooks.multi_grad_hooks import register_multi_grad_hook as register_multi_grad_hook
from turnout_autograd.hooks.packing import allow_mutation_on_saved_tensors as allow_mutation_on_saved_tensors
from turnout_autograd.hooks.packing import disable_saved_tensors_hooks as disable_saved_tensors_hooks
from turnout_autograd.hooks.packing import save_on_cpu as save_on_cpu
from turnout_autograd.hooks.packing import saved_tensors_hooks as saved_tensors_hooks
from turnout_autograd.recording.inplace_writes import increment_version as increment_version
