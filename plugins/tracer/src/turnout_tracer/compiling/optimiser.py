"""A graph with fewer calls and the same values: constants are folded, equal calls made once, calls that nothing uses left out.

Only operators that cannot raise for the values that they get, draw nothing and write nothing are touched: `is_plain` says which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_aten.declarations.tables import PARTIAL, POINTWISE, REDUCTION, SEEDED, TOTAL
from turnout_aten.tensor.grad_mode import no_grad
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.nodes import Constant, Node, Ref, mapped, refs_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnout.operators import Operator

_MOVED, _KEPT = frozenset({POINTWISE, REDUCTION, TOTAL}), frozenset({PARTIAL, SEEDED})

FOLDED = 1024  # elements of a constant that is computed beforehand


def is_plain(op: Operator) -> bool:
    """Whether a call can be moved, shared or left out."""
    if op.namespace != "aten" or op.schema.is_mutable or not _KEPT.isdisjoint(op.tags):
        return False
    return bool(op.schema.is_view) or not _MOVED.isdisjoint(op.tags)


def optimised(nodes: Iterable[Node], constants: list[Constant], results: list[Any]) -> tuple[list[Node], list[Constant]]:
    """The nodes and constants of an equal graph. `results` are changed in place where another value is the same."""
    nodes = list(nodes)
    written = {
        ref.index
        for node in nodes
        for a, v in zip(node.op.schema.arguments, node.args, strict=True)
        if a.is_write
        for ref in refs_in(v)
    }
    nodes, constants = _folded(nodes, constants, written)
    nodes = _shared(nodes, results, written)
    return _needed(nodes, results), constants


def _folded(nodes: list[Node], constants: list[Constant], written: set[int]) -> tuple[list[Node], list[Constant]]:
    """Small values that depend on constants alone are computed now."""
    known = {each.ref.index: each.tensor for each in constants if each.ref.index not in written}
    made: list[Constant] = []
    left: list[Node] = []
    with no_grad():
        for node in nodes:
            refs = list(refs_in(node.args))
            value = None
            alone = isinstance(node.outputs, Ref) and refs and node.outputs.index not in written
            if alone and is_plain(node.op) and not node.op.schema.is_view and all(ref.index in known for ref in refs):
                value = node.op.call_boxed(mapped(lambda each: known[each.index] if isinstance(each, Ref) else each, node.args))
            if isinstance(value, Tensor) and value.numel() <= FOLDED:
                known[node.outputs.index] = value
                made.append(Constant(node.outputs, value))
            else:
                left.append(node)
    return left, [*constants, *made]


def _shared(nodes: list[Node], results: list[Any], written: set[int]) -> list[Node]:
    """Calls of one operator with the same arguments are made once."""
    same: dict[int, Ref] = {}
    first: dict[Any, Node] = {}
    left: list[Node] = []

    def renamed(value: Any) -> Any:
        return same.get(value.index, value) if isinstance(value, Ref) else value

    for node in nodes:
        args = mapped(renamed, node.args)
        node = node if args == node.args else Node(node.op, args, node.outputs, node.no_grad, node.line)
        touched = {ref.index for ref in refs_in((args, node.outputs))} & written
        key = (id(node.op), _key(args)) if is_plain(node.op) and not touched and node.op.name != "clone" else None
        other = None if key is None else first.setdefault(key, node)
        if other is None or other is node:
            left.append(node)
            continue
        for mine, theirs in zip(refs_in(node.outputs), refs_in(other.outputs), strict=True):
            same[mine.index] = theirs
    results[:] = mapped(renamed, results)
    return left


def _key(value: Any) -> Any:
    """An argument as a part of a key: 1, 1.0, True and -0.0 differ."""
    if isinstance(value, Ref):
        return value
    if isinstance(value, (list, tuple)):
        return (type(value), *map(_key, value))
    if isinstance(value, (float, complex)):
        return type(value), repr(value)
    return (type(value), value) if isinstance(value, (bool, int, str, type(None))) else (type(value), id(value))


def _needed(nodes: list[Node], results: list[Any]) -> list[Node]:
    """The calls that a result depends on, and those that may raise or draw."""
    used = {ref.index for ref in refs_in(results)}
    left: list[Node] = []
    for node in reversed(nodes):
        outputs = list(refs_in(node.outputs))
        if is_plain(node.op) and outputs and not any(ref.index in used for ref in outputs):
            continue
        left.append(node)
        used |= {ref.index for ref in refs_in(node.args)}
    return left[::-1]
