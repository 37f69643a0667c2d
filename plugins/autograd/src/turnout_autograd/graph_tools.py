"""What `turnout.autograd.graph` offers: nodes, what they save, and the graph as a drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.errors import CallError
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.drawing import draw
from turnout_autograd.edges import GradientEdge, get_gradient_edge
from turnout_autograd.graph import Node
from turnout_autograd.joint import register_multi_grad_hook
from turnout_autograd.packing import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def increment_version(tensor: Tensor | Sequence[Tensor]) -> None:
    """Tell autograd that tensors were written by other means than operators. Raises CallError for anything but tensors."""
    written = tuple(tensor) if isinstance(tensor, (tuple, list)) else (tensor,)
    for each in written:
        if not isinstance(each, Tensor):
            raise CallError(errors.not_incremented(each))
    for each in written:
        each.bump_version()


__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "draw", "get_gradient_edge",
    "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip
