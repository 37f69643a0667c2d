"""A graph as an archive, written: a JSON document with operators by name and arguments as data, and an entry for each tensor's
bytes. `reading` reads it.

A value that JSON cannot express is an object with one key that says what it is: {"ref": 3}, {"size": ["*", "s0", 4]},
{"generator": 0}, {"tuple": [...]}, and those of `turnout_aten.plain_data`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from turnout_aten import archives, plain_data
from turnout_aten.files import replacing
from turnout_aten.functions import return_types
from turnout_aten.plain_data import DEEPEST, NOT_PLAIN, TOO_DEEP
from turnout_aten.tensor.random import Generator
from turnout_aten.tensor.size import Size
from turnout_aten.trees import LEAF
from turnout_tracer import errors
from turnout_tracer.nodes import Constant, Ref
from turnout_tracer.sizes import Formula
from turnout_tracer.structures import VALUE, Nested

if TYPE_CHECKING:
    from turnout_aten.files import FilePath
    from turnout_aten.tensor.tensor import Tensor
    from turnout_tracer.graph import Graph
    from turnout_tracer.sizes import Sizes

FORMAT, VERSION = "turnout.graph", 4
DOCUMENT = "graph.json"
KINDS: dict[str, type] = {"list": list, "tuple": tuple, "dict": dict, "OrderedDict": OrderedDict}


def save(graph: Graph, path: FilePath) -> None:
    """Write a graph into a file; nothing is written when one of its values cannot be saved."""
    blobs: list[Any] = []
    text = json.dumps(to_data(graph, blobs), indent=1, allow_nan=False) + "\n"
    with replacing(path) as file:
        archives.write(file, [(DOCUMENT, text.encode("ascii")), *((entry(i), blob) for i, blob in enumerate(blobs))])


def entry(number: int) -> str:
    """The entry that holds the bytes of a tensor."""
    return f"tensors/{number}"


def to_data(graph: Graph, blobs: list[Any]) -> dict[str, Any]:
    """What the document of the file holds. The bytes of tensors are appended to `blobs`; the document has their numbers."""
    generators: list[Generator] = []
    nodes = []
    for node in graph.nodes:
        row: dict[str, Any] = {"op": node.op.qualified_name, "args": [encode(a, generators) for a in node.args]}
        row["out"] = encode(node.outputs, generators)
        if node.no_grad:
            row["no_grad"] = True
        nodes.append(row)
    sizes = {} if graph.sizes is None else {"sizes": _sizes(graph.sizes)}
    state = {"state": _state(graph, blobs)} if graph.state else {}
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": graph.name,
        "inputs": list(graph.inputs),
        "signature": _nested(graph.signature),
        "constants": [_constant(c, blobs) for c in graph.constants],
        "nodes": nodes,
        "generators": [{"device": str(g.device), "state": list(g.get_state())} for g in generators],
        "output": _nested(graph.output),
        "results": [encode(each, []) if isinstance(each, Formula) else each.index for each in graph.results],
        **sizes,
        **state,
    }


def _sizes(sizes: Sizes) -> dict[str, Any]:
    return {
        "inputs": [None if shape is None else [encode(size, []) for size in shape] for shape in sizes.inputs],
        "births": [[each.node, each.value, each.dim, each.name] for each in sizes.births],
        "assumptions": [[_tree(each.left), each.sign, _tree(each.right)] for each in sizes.assumptions],
    }


def _tree(tree: Any) -> Any:
    return [tree[0], _tree(tree[1]), _tree(tree[2])] if isinstance(tree, tuple) else tree


def encode(value: Any, generators: list[Generator]) -> Any:
    """The JSON of an argument or of the results of a call; generators are numbered in the list. Raises TraceError."""
    if isinstance(value, Ref):
        return {"ref": value.index}
    if isinstance(value, Formula):
        return {"size": _tree(value.tree)}
    if isinstance(value, list):
        return [encode(each, generators) for each in value]
    if isinstance(value, tuple) and type(value) is not Size:
        return {"tuple": [encode(each, generators) for each in value]}
    if isinstance(value, Generator):
        if not any(each is value for each in generators):
            generators.append(value)
        return {"generator": next(i for i, each in enumerate(generators) if each is value)}
    made = plain_data.encode(_without_subclass(value))
    if made is NOT_PLAIN:
        raise errors.TraceError(errors.not_saved("an argument", type(value)))
    return made


def _without_subclass(value: Any) -> Any:
    """A number or string of a class that NumPy or an enum derives, as what it is; another value as it is."""
    kinds: tuple[Any, ...] = (bool, int, float, complex, str)
    return next((kind(value) for kind in kinds if isinstance(value, kind)), value)


def _nested(nested: Nested) -> dict[str, Any]:
    leaves = ["value" if leaf is VALUE else {"constant": encode(leaf, [])} for leaf in nested.leaves]
    return {"structure": _structure(nested.structure, 0), "leaves": leaves}


def _structure(structure: Any, depth: int) -> Any:
    if structure is LEAF:
        return None
    if depth == DEEPEST:
        raise errors.TraceError(f"save: an argument or result is {TOO_DEEP}")
    branches = [_structure(branch, depth + 1) for branch in structure.branches]
    kind = structure.kind
    if return_types.is_standard(kind):
        return {"result": branches, "type": kind.__name__}
    if kind not in KINDS.values():
        raise errors.TraceError(errors.not_saved("an argument or result", kind))
    if issubclass(kind, dict):
        return {kind.__name__: branches, "keys": [encode(key, []) for key in structure.keys]}
    return {kind.__name__: branches}


def _constant(constant: Constant, blobs: list[Any]) -> dict[str, Any]:
    return {"ref": constant.ref.index, "written": constant.written, **_elements(constant.tensor, blobs)}


def _state(graph: Graph, blobs: list[Any]) -> list[dict[str, Any]]:
    """The tensors of the graph's own; one that is there under a second name says so."""
    first: dict[int, str] = {}
    rows = []
    for name, ref in graph.state_refs.items():
        tensor = graph.state[name]
        again = first.setdefault(id(tensor), name)
        held = {"again": again} if again != name else {"requires_grad": tensor.requires_grad, **_elements(tensor, blobs)}
        rows.append({"name": name, "ref": ref.index, **held})
    return rows


def _elements(tensor: Tensor, blobs: list[Any]) -> dict[str, Any]:
    """A tensor whose elements lie without gaps keeps its strides; another one is saved row by row."""
    tensor = tensor.detach()
    order = order_in_memory(tuple(tensor.shape), tensor.stride())
    if order is None:
        tensor = tensor.contiguous()
    strides = list(tensor.stride())
    blobs.append(tensor.device.backend.to_host(tensor.permute(order or range(tensor.dim())).array))
    shape, device = list(tensor.shape), str(tensor.device)
    return {"dtype": tensor.dtype.name, "shape": shape, "strides": strides, "device": device, "data": len(blobs) - 1}


def order_in_memory(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...] | None:
    """The dims from the largest stride to the smallest, if so elements stand next to each other without gaps; else None."""
    order = sorted(range(len(shape)), key=lambda d: (-strides[d], -shape[d], d))
    step = 1
    for d in reversed(order):
        if strides[d] != step and shape[d] != 1:
            return None
        step *= max(shape[d], 1)
    return tuple(order)
