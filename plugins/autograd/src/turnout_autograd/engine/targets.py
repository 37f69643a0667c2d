"""Sweeps that end at given tensors: `Wanted` says which nodes lead to them, and collects their gradients."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.engine.nodes import Node, Output

if TYPE_CHECKING:
    from collections.abc import Iterable


_SEQ = attrgetter("seq")
# id(leaf) -> [leaf, the sum of its gradients so far]
Sinks = dict[int, list[Any]]


class Wanted:
    """The tensors whose gradients are asked for, and which nodes lead to them."""

    def __init__(self, roots: Iterable[Any], targets: Iterable[Any], stops: frozenset[Node] = frozenset()) -> None:
        """`targets` are edges; `stops` are nodes beyond which nothing is wanted: the inputs of a functional level."""
        self.leaves: set[int] = set()
        self.outputs: dict[Node, dict[int, Any]] = {}
        for edge in targets:
            if isinstance(edge, Tensor):
                self.leaves.add(id(edge))
            elif isinstance(edge, Output):
                self.outputs.setdefault(edge.node, {})[edge.index] = None
            else:
                self.outputs.setdefault(edge, {})[0] = None
        self.outputs.update({node: {0: None} for node in stops})
        self.lead = self._search(roots, stops)

    def _search(self, roots: Iterable[Any], stops: frozenset[Node]) -> dict[Node, tuple[Any, ...]]:
        """Each node that a wanted tensor can be reached from, and its edges, with None for those that lead nowhere.

        A wanted tensor's own node is one of them; () where nothing behind it is wanted.
        """
        leaves, outputs = self.leaves, self.outputs
        seen: set[Node] = set()
        stack = [e.node if e.__class__ is Output else e for e in roots]
        while stack:
            node = stack.pop()
            if isinstance(node, Node) and node not in seen:
                seen.add(node)
                if node not in stops:
                    for edge in node.edges:
                        if edge is not None:
                            stack.append(edge.node if edge.__class__ is Output else edge)
        lead: dict[Node, tuple[Any, ...]] = {}
        for node in sorted(seen, key=_SEQ):
            leads = others = False
            edges: Any = () if node in stops else node.edges
            for edge in edges:
                if edge.__class__ is Output:
                    edge = edge.node
                if edge in lead if isinstance(edge, Node) else id(edge) in leaves:
                    leads = True
                elif edge is not None:
                    others = True
            if leads:
                lead[node] = tuple([e if self._leads(e, lead) else None for e in edges]) if others else edges
            elif node in outputs:
                lead[node] = ()
        return lead

    def _leads(self, edge: Any, lead: dict[Node, tuple[Any, ...]]) -> bool:
        if isinstance(edge, Output):
            edge = edge.node
        return edge in lead if isinstance(edge, Node) else id(edge) in self.leaves

    def collect(self, node: Node, grad: Any) -> None:
        """Keep the gradients of the node's outputs that are asked for."""
        found = self.outputs.get(node)
        if found is not None:
            for index in found:
                found[index] = grad[index] if node.several else grad

    def gradient(self, edge: Any, sinks: Sinks) -> Any:
        """The gradient of one of the targets, None where it was not reached."""
        if isinstance(edge, Tensor):
            sink = sinks.get(id(edge))
            return None if sink is None else sink[1]
        if isinstance(edge, Output):
            return self.outputs[edge.node][edge.index]
        return self.outputs[edge][0]
