"""Small archives as `torch.export.save` writes them, made without PyTorch."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from typing import Any

FLOAT, LONG = 7, 5
LEAF = {"type": None, "context": None, "children_spec": []}


def size(value: Any) -> dict[str, Any]:
    """A size: a number, or the text of an expression."""
    return {"as_int": value} if isinstance(value, int) else {"as_expr": {"expr_str": value, "hint": None}}


def symbol(name: str) -> str:
    """The text of a symbol."""
    return f"Symbol('{name}', positive=True, integer=True)"


def meta(shape: list[Any], dtype: int = FLOAT, *, requires_grad: bool = False) -> dict[str, Any]:
    """What the program says of a tensor that is contiguous."""
    strides: list[int] = []
    step = 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= n if isinstance(n, int) else 1
    return {
        "dtype": dtype, "sizes": [size(n) for n in shape], "requires_grad": requires_grad,
        "device": {"type": "cpu", "index": None}, "strides": [size(n) for n in strides], "storage_offset": size(0), "layout": 7,
    }  # fmt: skip


def argument(value: Any) -> dict[str, Any]:
    """An argument of a call; a str is the name of a tensor, and a dict what it is."""
    if isinstance(value, dict):
        return value
    if isinstance(value, str):
        return {"as_tensor": {"name": value}}
    if isinstance(value, list):
        return {"as_ints": value}
    kind = {bool: "as_bool", int: "as_int", float: "as_float", type(None): "as_none"}[type(value)]
    return {kind: True if value is None else value}


def node(target: str, outputs: list[Any], **arguments: Any) -> dict[str, Any]:
    """A call."""
    inputs = [{"name": name, "arg": argument(value), "kind": 1} for name, value in arguments.items()]
    return {"target": target, "inputs": inputs, "outputs": [argument(each) for each in outputs], "metadata": {}}


def call(name: str, output: str, **arguments: Any) -> dict[str, Any]:
    """A call of a standard operator that returns a tensor."""
    return node(f"torch.ops.aten.{name}", [output], **arguments)


def spec(kind: str, *children: Any, context: Any = None) -> dict[str, Any]:
    """A container of a tree."""
    return {"type": f"builtins.{kind}", "context": json.dumps(context), "children_spec": list(children)}


class Program:
    """The parts of a program; `archive()` is the file. By default it is y = x @ w + 1e-6, with x of [s77, 3]."""

    def __init__(self) -> None:
        rows = symbol("s77")
        self.values = {
            "p_w": meta([3, 2], requires_grad=True),
            "x": meta([rows, 3]),
            "mm": meta([rows, 2]),
            "add": meta([rows, 2]),
        }
        self.inputs: list[Any] = [
            {"parameter": {"arg": {"name": "p_w"}, "parameter_name": "w"}},
            {"user_input": {"arg": {"as_tensor": {"name": "x"}}}},
        ]
        self.nodes = [call("mm.default", "mm", self="x", mat2="p_w"), call("add.Tensor", "add", self="mm", other=1e-6)]
        self.outputs: list[Any] = [{"user_output": {"arg": {"as_tensor": {"name": "add"}}}}]
        self.taken = spec("tuple", spec("tuple", LEAF), spec("dict", context=[]))
        self.returned: dict[str, Any] = LEAF
        self.names = ["x"]
        self.guards: list[str] = []
        self.ranges: dict[str, Any] = {"s77": {"min_val": 2, "max_val": 64}}
        self.numbers: dict[str, Any] = {}
        self.weights: dict[str, tuple[dict[str, Any], bytes]] = {"w": (self.values["p_w"], struct.pack("<6f", 1, 2, 3, 4, 5, 6))}
        self.constants: dict[str, tuple[dict[str, Any], bytes]] = {}
        self.version = (8, 20)
        self.more: dict[str, bytes] = {}

    def program(self) -> dict[str, Any]:
        """What models/model.json holds."""
        return {
            "graph_module": {
                "graph": {
                    "inputs": [], "outputs": [], "nodes": self.nodes, "tensor_values": self.values,
                    "sym_int_values": self.numbers, "sym_bool_values": {}, "sym_float_values": {},
                },
                "signature": {"input_specs": self.inputs, "output_specs": self.outputs},
                "module_call_graph": [
                    {
                        "fqn": "",
                        "signature": {
                            "inputs": [], "outputs": [], "in_spec": json.dumps([1, self.taken]),
                            "out_spec": json.dumps([1, self.returned]), "forward_arg_names": self.names,
                        },
                    }
                ],
            },
            "opset_version": {"aten": 10}, "range_constraints": self.ranges, "guards_code": self.guards,
            "schema_version": {"major": self.version[0], "minor": self.version[1]}, "torch_version": "2.13.0",
        }  # fmt: skip

    def entries(self) -> dict[str, bytes]:
        """The entries of the archive."""
        found = {"archive_format": b"pt2", "byteorder": b"little", "models/model.json": json.dumps(self.program()).encode()}
        for folder, file, tensors in (("weights", "weight", self.weights), ("constants", "tensor", self.constants)):
            config = {}
            for i, (name, (facts, held)) in enumerate(tensors.items()):
                found[f"data/{folder}/{file}_{i}"] = held
                config[name] = {
                    "path_name": f"{file}_{i}",
                    "is_param": folder == "weights",
                    "use_pickle": False,
                    "tensor_meta": facts,
                }
            found[f"data/{folder}/model_{folder}_config.json"] = json.dumps({"config": config}).encode()
        return {**found, **self.more}

    def archive(self) -> io.BytesIO:
        """The file."""
        return packed(self.entries())


def packed(entries: dict[str, bytes]) -> io.BytesIO:
    """Entries as an archive, under one folder."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, held in entries.items():
            archive.writestr(f"model/{name}", held)
    file.seek(0)
    return file
