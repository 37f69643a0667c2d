"""`draw`: what the tape holds, as a drawing in Graphviz's language or as SVG.

Edges are drawn the way the values went, from leaves to outputs; gradients go the other way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from turnout.errors import ArgumentError, CallError
from turnout_aten.counts import check_count
from turnout_aten.tensor.levels import GRAD, peel
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.drawing.dot import lines
from turnout_autograd.drawing.neighbourhood import LIMIT, Neighbourhood
from turnout_autograd.drawing.svg import svg
from turnout_autograd.recording.views import refresh

FORMATS = ("dot", "svg")


def draw(
    outputs: Tensor | Sequence[Tensor], *, names: Mapping[str, Tensor] | None = None, limit: int = LIMIT, format: str = "dot"
) -> str:
    """Draw the graph that `outputs` were computed in: the text of a DOT or an SVG file.

    A box shows the operator, what it saved for backward with shapes and dtypes, whether that was freed or changed in place since,
    its hooks, and the line of the program that called it if that ran under `detect_anomaly`. Raises GradientError for an output
    that requires no gradient, and DrawingError where an SVG cannot be made.

    Arguments:
        outputs: the tensor, or the tensors
        names: names for tensors in the drawing: leaves, outputs, and the results between them
        limit: how many nodes and leaves to draw, those nearest to the outputs; one box gives the number of the rest
        format: "dot", or "svg", which needs pygraphviz

    Example:
        >>> weight = turnout.ones(2, requires_grad=True)
        >>> text = turnout.autograd.graph.draw(weight.exp().sum(), names={"weight": weight})
        >>> text.splitlines()[0].startswith("digraph")
        True
    """
    if format not in FORMATS:
        raise ArgumentError(errors.drawing.graph_format(format, FORMATS))
    check_count("draw", "limit", limit)
    if not isinstance(outputs, (Tensor, list, tuple)):
        raise CallError(errors.drawing.graph_not_tensor("outputs", outputs))
    ends = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    text = "".join(lines(Neighbourhood(_ends(ends), _named(names or {}), limit)))
    if format == "dot":
        return text
    return svg(text)


def _ends(outputs: tuple[Any, ...]) -> list[Tensor]:
    """The outputs, when they are tensors with a graph; inside vmap the plain tensors that hold all elements."""
    if not outputs:
        raise CallError(errors.drawing.graph_of_nothing())
    ends = []
    for i, tensor in enumerate(outputs):
        if not isinstance(tensor, Tensor):
            raise CallError(errors.drawing.graph_not_tensor(f"outputs[{i}]", tensor))
        end = peel(tensor)[0]
        if end.view_of is not None:
            refresh(end)
        if not end.gmask & (GRAD.get()[1] | 1):
            raise errors.GradientError(errors.drawing.graph_untracked(i))
        ends.append(end)
    return ends


def _named(names: Mapping[str, Any]) -> dict[str, Tensor]:
    """The names, when they are those of tensors; inside vmap of the plain ones too."""
    for name, value in names.items():
        if not isinstance(value, Tensor):
            raise CallError(errors.drawing.graph_not_tensor(f"names[{name!r}]", value))
    return {str(name): peel(value)[0] for name, value in names.items()}
