"""The boxes of a drawing: a title and rows for each node, leaf and output."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from turnout.config.tuples import NamedTuple
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.drawing.saved_values import saved_rows, shown_value
from turnout_autograd.engine.hook_tables import HOOKS, NODE_HOOKS, NODE_PREHOOKS, POST_HOOKS
from turnout_autograd.engine.nodes import InputNode
from turnout_autograd.function.nodes import FunctionNode
from turnout_autograd.function.once_differentiable import OnceNode
from turnout_autograd.recording.inplace_writes import CopySlices
from turnout_autograd.recording.missing_gradients import NotImplementedNode

if TYPE_CHECKING:
    from turnout_autograd.engine.hook_tables import Hooks
    from turnout_autograd.engine.nodes import Node

_LINE = re.compile(r'  File "(.+)", line (\d+), in .*\n(?:    (.+)\n)?$')


class Box(NamedTuple):
    """A box of the drawing: what kind of thing it is, its title, and the smaller rows below that."""

    kind: str
    title: str
    rows: list[str]


def leaf_box(tensor: Tensor, name: str) -> Box:
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


def output_box(tensor: Tensor, name: str) -> Box:
    return Box("output", f"output {name}".rstrip(), [f"{errors.tensor_text(tensor)} on {tensor.device}"])


def rest_box(members: list[Any], limit: int) -> Box:
    leaves = sum(isinstance(member, Tensor) for member in members)
    nodes = len(members) - leaves
    counts = [f"{nodes:,} node{'s' * (nodes != 1)}"] if nodes else []
    counts += [f"{leaves:,} {'leaf' if leaves == 1 else 'leaves'}"] if leaves else []
    return Box("rest", "...", [f"{' and '.join(counts)} more, beyond limit={limit}"])


def node_box(node: Node, names: dict[int, str]) -> Box:
    kind, title, rows = _operator(node)
    called = ", ".join(names[index] for index in sorted(names))
    rows = [*rows, *saved_rows(node)]
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
    shown = ", ".join(shown_value(arg) or "..." for arg in args)
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
