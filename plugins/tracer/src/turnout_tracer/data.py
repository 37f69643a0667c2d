"""A graph as JSON: operators by name, arguments as data, constants as their bytes. Reading a file runs none of it.

A value that JSON cannot express is an object with one key that says what it is: {"ref": 3}, {"dtype": "float32"},
{"device": "cpu"}, {"tuple": [...]}, {"float": "inf"}, {"complex": ["0.0", "1.0"]}, {"generator": 0}.
"""

from __future__ import annotations

import json
import math
import os
from base64 import b64decode, b64encode
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnout import plugins
from turnout.devices import Device
from turnout.dtypes import DType, dtype_named
from turnout.errors import FileFormatError, TurnoutError
from turnout.operators import Operator
from turnout.registry import REGISTRY
from turnout_aten.functions import return_types
from turnout_aten.tensor.devices import device
from turnout_aten.tensor.random import Generator
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_aten.trees import LEAF, Structure
from turnout_tracer import errors
from turnout_tracer.nodes import Constant, Node, Ref
from turnout_tracer.structures import VALUE, Nested

if TYPE_CHECKING:
    from turnout_tracer.graph import Graph

Parts = tuple[str, tuple[str, ...], Nested, list[Node], list[Constant], Nested, list[Ref]]  # what a Graph is made of

FORMAT, VERSION = "turnout.graph", 1


# ---- writing


def save(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Write a graph into a file; nothing is written when one of its values cannot be saved."""
    text = json.dumps(to_data(graph), indent=1, allow_nan=False)
    Path(path).write_text(text + "\n", encoding="utf-8")


def to_data(graph: Graph) -> dict[str, Any]:
    """What the file holds."""
    generators: list[Generator] = []
    nodes = []
    for node in graph.nodes:
        row: dict[str, Any] = {"op": node.op.qualified_name, "args": [_encode(a, generators) for a in node.args]}
        row["out"] = _encode(node.outputs, generators)
        if node.no_grad:
            row["no_grad"] = True
        nodes.append(row)
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": graph.name,
        "inputs": list(graph.inputs),
        "signature": _nested(graph.signature),
        "constants": [_constant(c) for c in graph.constants],
        "nodes": nodes,
        "generators": [{"device": str(g.device), "state": list(g.get_state())} for g in generators],
        "output": _nested(graph.output),
        "results": [ref.index for ref in graph.results],
    }


def _encode(value: Any, generators: list[Generator]) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": [str(value.real), str(value.imag)]}
    if isinstance(value, Ref):
        return {"ref": value.index}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, Device):
        return {"device": str(value)}
    if isinstance(value, list):
        return [_encode(each, generators) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(each, generators) for each in value]}
    if isinstance(value, Generator):
        if not any(each is value for each in generators):
            generators.append(value)
        return {"generator": next(i for i, each in enumerate(generators) if each is value)}
    raise errors.TraceError(errors.not_saved("an argument", value))


def _nested(nested: Nested) -> dict[str, Any]:
    leaves = ["value" if leaf is VALUE else {"constant": _encode(leaf, [])} for leaf in nested.leaves]
    return {"structure": _structure(nested.structure), "leaves": leaves}


def _structure(structure: Any) -> Any:
    if structure is LEAF:
        return None
    if return_types.is_standard(structure.kind):
        return {"result": [_structure(branch) for branch in structure.branches], "type": structure.kind.__name__}
    if structure.kind not in _KINDS.values():
        raise errors.TraceError(errors.not_saved("an argument or result", structure.kind))
    branches = [_structure(branch) for branch in structure.branches]
    if structure.kind is dict:
        return {"dict": branches, "keys": [_encode(key, []) for key in structure.keys]}
    return {structure.kind.__name__: branches}


def _constant(constant: Constant) -> dict[str, Any]:
    tensor = constant.tensor.contiguous()
    data = b64encode(tensor.device.backend.to_host(tensor.array)).decode("ascii")
    return {
        "ref": constant.ref.index, "dtype": tensor.dtype.name, "shape": list(tensor.shape), "device": str(tensor.device),
        "written": constant.written, "data": data,
    }  # fmt: skip


# ---- reading


def load(path: str | os.PathLike[str], where: str | Device | None = None) -> Parts:
    """What a file that `save` wrote holds."""
    name = os.fspath(path)
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise FileFormatError(errors.not_a_graph(name, str(error))) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise FileFormatError(errors.not_a_graph(name, f"it does not say format {FORMAT!r}"))
    if not isinstance(data.get("version"), int) or data["version"] > VERSION:
        raise FileFormatError(errors.newer(name, data.get("version"), VERSION))
    try:
        return from_data(data, where, name)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        if isinstance(error, TurnoutError):
            raise
        raise FileFormatError(errors.not_a_graph(name, f"{type(error).__name__}: {error}")) from None


def from_data(data: dict[str, Any], where: str | Device | None = None, name: str = "the data") -> Parts:
    """The parts of the graph that `to_data` was given."""
    target = None if where is None else device(where)
    generators = [
        Generator(g["device"] if target is None else target).set_state(tuple(g["state"])) for g in data["generators"]
    ]
    nodes = []
    for row in data["nodes"]:
        args = tuple([_decode(a, generators, target) for a in row["args"]])
        op = _operator(row["op"])
        if len(args) != len(op.schema.arguments):
            raise FileFormatError(errors.other_arguments(name, row["op"], len(args), len(op.schema.arguments)))
        nodes.append(Node(op, args, _decode(row["out"], [], None), bool(row.get("no_grad"))))
    constants = [_read_constant(c, target) for c in data["constants"]]
    return (
        str(data["name"]), tuple(data["inputs"]), _read_nested(data["signature"]), nodes, constants,
        _read_nested(data["output"]), [Ref(i) for i in data["results"]],
    )  # fmt: skip


def _operator(qualified_name: str) -> Operator:
    namespace = qualified_name.partition("::")[0]
    if namespace != "aten":
        plugins.require_namespace(namespace)
    return REGISTRY.find(qualified_name)


def _decode(value: Any, generators: list[Generator], target: Device | None) -> Any:
    if isinstance(value, list):
        return [_decode(each, generators, target) for each in value]
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    if kind == "tuple":
        return tuple([_decode(each, generators, target) for each in inner])
    if kind == "device":
        return device(inner) if target is None else target
    return _READ[kind](inner) if kind != "generator" else generators[inner]


_READ: dict[str, Any] = {
    "ref": Ref,
    "dtype": dtype_named,
    "float": float,
    "complex": lambda parts: complex(float(parts[0]), float(parts[1])),
}


_KINDS: dict[str, type] = {"list": list, "tuple": tuple, "dict": dict}


def _read_nested(data: dict[str, Any]) -> Nested:
    leaves = [VALUE if leaf == "value" else _decode(leaf["constant"], [], None) for leaf in data["leaves"]]
    return Nested(_read_structure(data["structure"]), leaves)


def _read_structure(data: Any) -> Any:
    if data is None:
        return LEAF
    kind = next(iter(data))
    branches = tuple([_read_structure(branch) for branch in data[kind]])
    keys = tuple([_decode(key, [], None) for key in data["keys"]]) if kind == "dict" else tuple(range(len(branches)))
    return Structure(return_types.standard(data["type"]) if kind == "result" else _KINDS[kind], keys, branches)


def _read_constant(data: dict[str, Any], target: Device | None) -> Constant:
    at = device(data["device"] if target is None else target)
    at = at.backend.resolve_device(at)
    array = at.backend.from_host(b64decode(data["data"]), tuple(data["shape"]), dtype_named(data["dtype"]), at)
    tensor: Tensor = wrap(array, at)
    return Constant(Ref(data["ref"]), tensor, data["written"])
