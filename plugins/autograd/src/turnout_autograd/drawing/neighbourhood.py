"""The part of the graph that is drawn: the nodes and leaves nearest to the outputs.

One loop walks the graph breadth first from the outputs, so its depth does not matter. The first `limit` nodes and leaves become
boxes, numbered in that order: the same graph gives the same text. The rest is counted, and one box stands for it.
"""

from __future__ import annotations

from typing import Any

from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.engine.nodes import Output

LIMIT = 300


class Neighbourhood:
    """The nodes and leaves behind some outputs, nearest first, and what tensors are called."""

    def __init__(self, outputs: list[Tensor], names: dict[str, Tensor], limit: int) -> None:
        self.outputs = outputs
        self.limit = limit
        self.members: list[Any] = []
        self.places: dict[int, int] = {}
        for tensor in outputs:
            self._add(tensor.node or tensor)
        for member in self.members:  # it grows meanwhile
            for edge in edges_of(member):
                self._add(edge)
        self.tensor_names: dict[int, str] = {}
        self.result_names: dict[int, dict[int, str]] = {}
        ends = {id(tensor) for tensor in outputs}
        for name, tensor in names.items():
            self.tensor_names.setdefault(id(tensor), name)
            if id(tensor) not in ends and tensor.node is not None and _is_current(tensor):
                node, index = _target(tensor.node)
                self.result_names.setdefault(id(node), {}).setdefault(index, name)

    def _add(self, edge: Any) -> None:
        member, _ = _target(edge)
        if id(member) not in self.places:
            self.places[id(member)] = len(self.members)
            self.members.append(member)

    def box_of(self, edge: Any) -> str:
        """The name of the box that an edge leads to."""
        place = self.places[id(_target(edge)[0])]
        return f"n{place}" if place < self.limit else "rest"


def _target(edge: Any) -> tuple[Any, int]:
    """The node or leaf at the end of an edge, and which of the node's outputs."""
    return (edge.node, edge.index) if edge.__class__ is Output else (edge, 0)


def _is_current(tensor: Tensor) -> bool:
    """Whether the tensor's node is that of its values: a view's is made anew after its base was written, at its next use."""
    return tensor.view_of is None or tensor.view_of.seen == tensor.version()


def edges_of(member: Any) -> list[Any]:
    return [] if isinstance(member, Tensor) else [edge for edge in member.edges if edge is not None]
