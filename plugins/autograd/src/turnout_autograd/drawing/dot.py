"""A drawing in Graphviz's language."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.drawing.boxes import leaf_box, node_box, output_box, rest_box
from turnout_autograd.drawing.neighbourhood import edges_of
from turnout_autograd.drawing.saved_values import WIDTH
from turnout_autograd.engine.nodes import Output

if TYPE_CHECKING:
    from turnout_autograd.drawing.boxes import Box
    from turnout_autograd.drawing.neighbourhood import Neighbourhood

# Kind of box -> fill and outline.
COLOURS = {
    "leaf": ("#dcf0de", "#4c8f57"),
    "operator": ("#eef1f6", "#7d8ba0"),
    "write": ("#fdebd0", "#c4872a"),
    "function": ("#ece2f8", "#8562b5"),
    "unknown": ("#f9dcd9", "#b8433a"),
    "output": ("#d9e8fb", "#3f74b5"),
    "rest": ("#ffffff", "#8a8a8a"),
}
_HEAD = """\
digraph "gradients" {
  graph [rankdir=TB, bgcolor="white", pad=0.2, nodesep=0.3, ranksep=0.4]
  node [shape=box, style="rounded,filled", fontname="Helvetica,Arial,sans-serif", fontsize=12, margin="0.12,0.07", height=0.3]
  edge [color="#666666", fontcolor="#666666", fontname="Helvetica,Arial,sans-serif", fontsize=9, arrowsize=0.7]
"""


def lines(graph: Neighbourhood) -> Iterator[str]:
    """The DOT file."""
    yield _HEAD
    drawn = graph.members[: graph.limit]
    for i, member in enumerate(drawn):
        if isinstance(member, Tensor):
            yield _box(f"n{i}", leaf_box(member, graph.tensor_names.get(id(member), "")))
        else:
            yield _box(f"n{i}", node_box(member, graph.result_names.get(id(member), {})))
    if len(drawn) < len(graph.members):
        yield _box("rest", rest_box(graph.members[graph.limit :], graph.limit), ', style="rounded,dashed"')
    for i, tensor in enumerate(graph.outputs):
        number = str(i) if len(graph.outputs) > 1 else ""
        yield _box(f"out{i}", output_box(tensor, graph.tensor_names.get(id(tensor), number)))
    for i, member in enumerate(drawn):
        arrows = [_arrow(graph.box_of(edge), f"n{i}", edge) for edge in edges_of(member)]
        beyond = f"  rest -> n{i}\n"
        yield from [arrow for arrow in arrows if arrow != beyond]
        if beyond in arrows:
            yield beyond
    for i, tensor in enumerate(graph.outputs):
        edge = tensor.node or tensor
        yield _arrow(graph.box_of(edge), f"out{i}", edge)
    yield "}\n"


def _box(name: str, box: Box, style: str = "") -> str:
    fill, outline = COLOURS[box.kind]
    label = f"<b>{_text(box.title)}</b>"
    if box.rows:
        rows = "".join(f'{_text(row)}<br align="left"/>' for row in box.rows)
        label += f'<br align="left"/><font point-size="10" color="#444444">{rows}</font>'
    return f'  {name} [label=<{label}>, fillcolor="{fill}", color="{outline}"{style}]\n'


def _arrow(source: str, to: str, edge: Any) -> str:
    several = edge.__class__ is Output and source != "rest" and getattr(edge.node, "count", 1) > 1
    return f"  {source} -> {to}" + (f' [label="result {edge.index}"]' if several else "") + "\n"


def _text(text: str) -> str:
    """A text for a label: cut to a row's width, without characters that XML does not take."""
    if len(text) > WIDTH:
        text = text[: WIDTH - 3] + "..."
    text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return escape(text.replace("\\", "\\\\"), quote=False)  # \G would be the name of the graph
