"""`draw`: what the tape holds, as a drawing in Graphviz's language or as SVG.

One loop walks the graph breadth first from the outputs, so its depth does not matter. The first `limit` nodes and leaves become
boxes, numbered in that order: the same graph gives the same text. The rest is counted, and one box stands for it. Edges are
drawn the way the values went, from leaves to outputs; gradients go the other way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from turnout.devices import Device
from turnout.dtypes import DType
from turnout.errors import ArgumentError, CallError
from turnout_aten.tensor.levels import GRAD, peel
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd import errors
from turnout_autograd.function import FunctionNode, OnceNode
from turnout_autograd.graph import FREED, FREED_OUTPUT, Hooks, Kept, Node, Output
from turnout_autograd.kernels import NotImplementedNode
from turnout_autograd.leaves import HOOKS, NODE_HOOKS, NODE_PREHOOKS, POST_HOOKS
from turnout_autograd.packing import Packed
from turnout_autograd.writes import CopySlices, InputNode, refresh

LIMIT = 300
FORMATS = ("dot", "svg")
WIDTH = 60  # characters of a row; the rest is cut off

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
_NOT_SHOWN = ("metas",)  # how gradients are fitted to their arguments: nothing that a user saved
_LINE = re.compile(r'  File "(.+)", line (\d+), in .*\n(?:    (.+)\n)?$')


class Box(NamedTuple):
    """A box of the drawing: what kind of thing it is, its title, and the smaller rows below that."""

    kind: str
    title: str
    rows: list[str]


def draw(
    outputs: Tensor | Sequence[Tensor],
    *,
    names: Mapping[str, Tensor] | None = None,
    limit: int = LIMIT,
    format: str = "dot",
) -> str:
    """Draw the graph that `outputs` were computed in: the text of a DOT or an SVG file.

    names   what tensors are called in the drawing: leaves, outputs, and results between them
    limit   how many nodes and leaves are drawn, those nearest to the outputs; one box says how many more there are
    format  "dot", or "svg", for which pygraphviz must be installed

    A box shows the operator, what it saved for backward with shapes and dtypes, whether that was freed or changed in place since,
    its hooks, and the line of the program that called it if that ran under `detect_anomaly`. Raises GradientError for an output
    that requires no gradient, and DrawingError where an SVG cannot be made.
    """
    if format not in FORMATS:
        raise ArgumentError(errors.graph_format(format, FORMATS))
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ArgumentError(errors.graph_limit(limit))
    if not isinstance(outputs, (Tensor, list, tuple)):
        raise CallError(errors.graph_not_tensor("outputs", outputs))
    ends = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    text = "".join(_lines(_Graph(_ends(ends), _named(names or {}), limit)))
    if format == "dot":
        return text
    from turnout_autograd.svg import svg

    return svg(text)


def _ends(outputs: tuple[Any, ...]) -> list[Tensor]:
    """The outputs, when they are tensors with a graph; inside vmap the plain tensors that hold all examples."""
    if not outputs:
        raise CallError(errors.graph_of_nothing())
    ends = []
    for i, tensor in enumerate(outputs):
        if not isinstance(tensor, Tensor):
            raise CallError(errors.graph_not_tensor(f"outputs[{i}]", tensor))
        end = peel(tensor)[0]
        if end.view_of is not None:
            refresh(end)
        if not end.gmask & (GRAD.get()[1] | 1):
            raise errors.GradientError(errors.graph_untracked(i))
        ends.append(end)
    return ends


def _named(names: Mapping[str, Any]) -> dict[str, Tensor]:
    """The names, when they are those of tensors; inside vmap of the plain ones too."""
    for name, value in names.items():
        if not isinstance(value, Tensor):
            raise CallError(errors.graph_not_tensor(f"names[{name!r}]", value))
    return {str(name): peel(value)[0] for name, value in names.items()}


class _Graph:
    """The nodes and leaves behind some outputs, nearest first, and what tensors are called."""

    def __init__(self, outputs: list[Tensor], names: dict[str, Tensor], limit: int) -> None:
        self.outputs = outputs
        self.limit = limit
        self.members: list[Any] = []
        self.places: dict[int, int] = {}
        for tensor in outputs:
            self._add(tensor.node or tensor)
        for member in self.members:  # it grows meanwhile
            for edge in _edges(member):
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


def _edges(member: Any) -> list[Any]:
    return [] if isinstance(member, Tensor) else [edge for edge in member.edges if edge is not None]


def _is_current(tensor: Tensor) -> bool:
    """Whether the tensor's node is that of its values: a view's is made anew after its base was written, at its next use."""
    return tensor.view_of is None or tensor.view_of.seen == tensor.version()


# ---- boxes


def _leaf(tensor: Tensor, name: str) -> Box:
    rows = [f"{errors.tensor_text(tensor)} on {tensor.device}"]
    tables = tensor.extra or {}
    rows += _hooks_row(
        {
            "on its gradient": tables.get(HOOKS),
            "before": tables.get(NODE_PREHOOKS),
            "after accumulation": [*tables.get(POST_HOOKS, ()), *tables.get(NODE_HOOKS, ())],
        }
    )
    return Box("leaf", f"leaf {name}".rstrip(), rows)


def _output(tensor: Tensor, name: str) -> Box:
    return Box("output", f"output {name}".rstrip(), [f"{errors.tensor_text(tensor)} on {tensor.device}"])


def _rest(members: list[Any], limit: int) -> Box:
    leaves = sum(isinstance(member, Tensor) for member in members)
    nodes = len(members) - leaves
    counts = [f"{nodes:,} node{'s' * (nodes != 1)}"] if nodes else []
    counts += [f"{leaves:,} {'leaf' if leaves == 1 else 'leaves'}"] if leaves else []
    return Box("rest", "...", [f"{' and '.join(counts)} more, beyond limit={limit}"])


def _node(node: Node, names: dict[int, str]) -> Box:
    kind, title, rows = _operator(node)
    called = ", ".join(names[index] for index in sorted(names))
    rows = [*rows, *_saved_rows(node)]
    if node.extra is not None:
        rows += _node_hooks(node.extra)
        rows += _line_row(node.extra.line)
    return Box(kind, f"{called} = {title}" if called else title, rows)


def _operator(node: Node) -> tuple[str, str, list[str]]:
    """The kind of a node, what was called, and what is peculiar to it."""
    if isinstance(node, CopySlices):
        steps = [_step(op, args, index) for op, args, index in node.chain]
        written = "a write that was freed" if node.inner is None else node.op_name
        return "write", "CopySlices", [f"{written}, into the view", *steps]
    if isinstance(node, FunctionNode):
        return "function", node.op_name, ["autograd.Function"]
    if isinstance(node, OnceNode):
        return "unknown", node.label, ["a gradient that cannot be differentiated again"]
    if isinstance(node, NotImplementedNode):
        return "unknown", node.op_name, ["its gradient is not implemented"]
    if isinstance(node, InputNode):
        return "leaf", node.op_name, []
    return "operator", node.op_name, []


def _step(op: Any, args: tuple[Any, ...], index: int | None) -> str:
    """One view operator of a chain."""
    shown = ", ".join(_plain(arg) or "..." for arg in args)
    return f"{op.qualified_name}({shown})" + ("" if index is None else f"[{index}]")


def _hooks_row(tables: dict[str, Any]) -> list[str]:
    counts = [f"{len(table)} {where}" for where, table in tables.items() if table]
    return [f"hooks: {', '.join(counts)}"] if counts else []


def _node_hooks(hooks: Hooks) -> list[str]:
    outputs = [key for table in hooks.outputs.values() for key in table]
    rows = _hooks_row({"on the gradient of its result": outputs, "before": hooks.pre, "after": hooks.post})
    if any(tensor() is not None for tensor in hooks.retained.values()):
        rows.append("retains the gradient of its result")
    return rows


def _line_row(stack: str) -> list[str]:
    """The innermost line of a stack as `detect_anomaly` keeps it."""
    found = _LINE.search(stack)
    if found is None:
        return []
    place = re.split(r"[/\\]", found[1])[-1]
    return [f"{place}:{found[2]}  {found[3] or ''}".rstrip()]


# ---- what was saved


def _saved(node: Node) -> Iterator[tuple[str, Any, Any]]:
    """Name, value and version of what a node saved; the version is None for what has none."""
    while hasattr(node, "inner"):  # of a write into a view: the node of the write
        node = node.inner
    if isinstance(node, FunctionNode):
        kept = node.saved()
        if kept is FREED:
            yield "tensors", FREED, None
            return
        for i, value in enumerate(kept):
            yield f"tensors[{i}]", *(value if isinstance(value, tuple) else (value, None))
        return
    if isinstance(node, (OnceNode, NotImplementedNode, InputNode)):
        return
    names = [name for kind in type(node).__mro__ for name in getattr(kind, "__slots__", ()) if kind is not Node]
    values = {name: getattr(node, name) for name in names if hasattr(node, name)}
    for name, value in values.items():
        version = f"{name}_version"
        if value is FREED and version in names and version not in values:
            continue  # what is freed sets this too where it was not saved
        of_tensor = name.endswith("_version") and name.removesuffix("_version") in names
        if not (of_tensor or name in _NOT_SHOWN or name.endswith("_geometry") or (name == "count" and node.several)):
            yield name, value, values.get(version)


def _saved_rows(node: Node) -> list[str]:
    """A row for each tensor, and as few as hold all the rest."""
    rows: list[str] = []
    numbers: list[str] = []
    for name, value, version in _saved(node):
        if value is FREED or value is FREED_OUTPUT:
            rows.append(f"saved {name}: freed")
        elif isinstance(value, (Tensor, Kept)):
            rows.append(f"saved {name}: {_tensor(value, version)}")
        elif isinstance(value, Packed):
            rows.append(f"saved {name}: packed by a hook")
        elif isinstance(value, (list, tuple)) and any(isinstance(each, (Tensor, Packed)) for each in value):
            for i, each in enumerate(value):
                if isinstance(each, Packed):
                    rows.append(f"saved {name}[{i}]: packed by a hook")
                elif each is not None:
                    rows.append(f"saved {name}[{i}]: {_tensor(each, version[i])}")
        else:
            shown = _plain(value)
            numbers += [] if value is None or not shown else [f"{name}={shown}"]
    return [*rows, *_filled(numbers)]


def _filled(parts: list[str]) -> list[str]:
    """Parts separated by commas, in rows that are not too wide."""
    rows: list[str] = []
    for part in parts:
        if rows and len(rows[-1]) + len(part) + 3 <= WIDTH:
            rows[-1] += f", {part}"
        else:
            rows[-1:] = [f"{rows[-1]},", part] if rows else [f"with {part}"]
    return rows


def _tensor(saved: Any, version: Any) -> str:
    """A saved tensor, and whether backward would refuse it."""
    if isinstance(saved, Kept):
        text, now, version = errors.tensor_text(wrap(saved.array, saved.device)), saved.storage.ver, saved.version
    else:
        text, now = errors.tensor_text(saved), saved.version()
    return text if now == version else f"{text}, changed in place since"


def _plain(value: Any) -> str:
    """A number, text, dtype, device, or list of such; "" for anything else."""
    if isinstance(value, DType):
        return value.name
    if value is None or isinstance(value, (bool, int, float, complex, str, Device)):
        return repr(value) if not isinstance(value, Device) else str(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_plain(each) or '...' for each in value)}]"
    return ""


# ---- the text


def _lines(graph: _Graph) -> Iterator[str]:
    """The DOT file."""
    yield _HEAD
    drawn = graph.members[: graph.limit]
    for i, member in enumerate(drawn):
        if isinstance(member, Tensor):
            yield _box(f"n{i}", _leaf(member, graph.tensor_names.get(id(member), "")))
        else:
            yield _box(f"n{i}", _node(member, graph.result_names.get(id(member), {})))
    if len(drawn) < len(graph.members):
        yield _box("rest", _rest(graph.members[graph.limit :], graph.limit), ', style="rounded,dashed"')
    for i, tensor in enumerate(graph.outputs):
        number = str(i) if len(graph.outputs) > 1 else ""
        yield _box(f"out{i}", _output(tensor, graph.tensor_names.get(id(tensor), number)))
    for i, member in enumerate(drawn):
        arrows = [_arrow(graph.box_of(edge), f"n{i}", edge) for edge in _edges(member)]
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
