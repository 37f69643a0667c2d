"""`GradientEdge`: a place in the tape that stands for a tensor in `grad` and `backward`, without keeping the tensor alive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.config.tuples import NamedTuple
from turnout.keys import KEYS
from turnout.registry import find_operator
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.engine.nodes import AccumulateGrad, Output, node_of

if TYPE_CHECKING:
    from turnout_autograd.engine.fitting import Meta
    from turnout_autograd.engine.nodes import Node

_BATCHED = KEYS.bit("Batched")
_zeros = find_operator("aten::zeros").stub


class GradientEdge(NamedTuple):
    """One output of a node.

    node       the node; an `AccumulateGrad` for a leaf
    output_nr  which of its outputs
    like       shape, dtype and device of the tensor; None where they are not known, and gradients cannot be checked
    """

    node: Node
    output_nr: int
    like: Meta | None = None

    @property
    def target(self) -> Any:
        """What edges of the tape that lead there hold: a leaf, a node, or an `Output`."""
        if isinstance(self.node, AccumulateGrad):
            return self.node.variable
        return Output(self.node, self.output_nr) if self.node.several else self.node

    def stand_in(self) -> Tensor | None:
        """A tensor that looks like that of the edge and holds one element; None where its shape is not known."""
        if self.like is None:
            return None
        shape, dtype, device = self.like
        made: Tensor = _zeros((), dtype=dtype, device=device).expand(shape)
        made.node = self.target  # for messages: it is not tracked
        return made


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of the value that a tensor has now: a later write into it gives the tensor another.

    Raises GradientError for a tensor that requires no gradient, and for one inside of vmap, where it has none of its own.

    Arguments:
        tensor: the tensor

    Example:
        >>> edge = turnout.autograd.graph.get_gradient_edge(turnout.ones(2, requires_grad=True).exp())
        >>> edge.output_nr
        0
    """
    if tensor.keys & _BATCHED:
        raise errors.GradientError(errors.passes.edge_inside_vmap())
    if not tensor.requires_grad:
        raise errors.GradientError(errors.passes.edge_of_untracked())
    edge = tensor.node or tensor.history_owner()
    index = edge.index if isinstance(edge, Output) else 0
    node = edge.node if isinstance(edge, Output) else node_of(edge)
    return GradientEdge(node, index, (tensor.array.shape, tensor.dtype, tensor.device))
