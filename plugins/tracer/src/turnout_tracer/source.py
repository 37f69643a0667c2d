"""A graph as the text of a Python function.

The text runs: its globals are `turnout` and, where there are any, `constants`, a list of tensors (and `generators`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from turnout.devices import Device
from turnout.dtypes import DType
from turnout.operators.stubs import python_name
from turnout_aten.tensor.random import Generator
from turnout_aten.trees import LEAF
from turnout_tracer.nodes import Node, Ref
from turnout_tracer.structures import VALUE, places_in

if TYPE_CHECKING:
    from turnout_tracer.graph import Graph


def write(graph: Graph) -> str:
    """The function's source, ending with a newline."""
    writer = _Writer(graph)
    lines = [f"def {graph.name}({', '.join(writer.parameters())}):"]
    lines += writer.opening()
    off = False
    for node in graph.nodes:
        if node.no_grad and not off:
            lines.append("    with turnout.no_grad():")
        off = node.no_grad
        lines.append(("        " if off else "    ") + writer.call(node))
    results = iter([writer.name(ref) for ref in graph.results])
    leaves = [next(results) if leaf is VALUE else writer.value(leaf) for leaf in graph.output.leaves]
    returned = writer.built(graph.output.structure, iter(leaves))
    lines.append(f"    return {returned}")
    return "\n".join(lines) + "\n"


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = {c.ref.index: f"c{i}" for i, c in enumerate(graph.constants)}
        self.generators: list[Generator] = []

    def name(self, ref: Ref) -> str:
        inputs = self.graph.inputs
        if ref.index < len(inputs):
            return inputs[ref.index]
        return self.constants.get(ref.index, f"v{ref.index}")

    def parameters(self) -> list[str]:
        """The parameters: those of the function where every one is a tensor, else `*args, **kwargs` as they were nested."""
        signature = self.graph.signature
        args, kwargs = signature.structure.branches
        plain = all(branch is LEAF for branch in args.branches) and not kwargs.branches
        return list(self.graph.inputs) if plain and all(leaf is VALUE for leaf in signature.leaves) else ["*args", "**kwargs"]

    def opening(self) -> Iterator[str]:
        """Lines that unpack nested arguments and name constants."""
        if self.parameters() == ["*args", "**kwargs"]:
            names = iter(self.graph.inputs)
            signature = self.graph.signature
            for place, leaf in zip(places_in(signature.structure), signature.leaves, strict=True):
                if leaf is VALUE:
                    yield f"    {next(names)} = {place}"
        for i, constant in enumerate(self.graph.constants):
            tensor = constant.tensor
            copied = ".clone()" if constant.written else ""
            shown = f"{tensor.dtype.name} {list(tensor.shape)} on {tensor.device}"
            yield f"    c{i} = constants[{i}]{copied}  # {shown}"

    def call(self, node: Node) -> str:
        """One call, arguments that are the schema's defaults left out."""
        op = node.op
        parts: list[str] = []
        skipped = False
        for argument, value in zip(op.schema.arguments, node.args, strict=True):
            if argument.has_default and _same(argument.default, value):
                skipped = True
                continue
            shown = self.value(value)
            by_name = argument.kwarg_only or skipped
            parts.append(f"{python_name(argument.name)}={shown}" if by_name else shown)
        called = f"turnout.ops.{op.namespace}.{op.name}.{op.overload or 'default'}({', '.join(parts)})"
        made = self._target(node.outputs)
        return f"{made} = {called}" if made else called

    def _target(self, outputs: Any) -> str:
        if isinstance(outputs, Ref):
            return self.name(outputs)
        if isinstance(outputs, (list, tuple)) and outputs:
            return "".join(f"{self._target(each) or '_'}, " for each in outputs).rstrip().removesuffix(",") + (
                "," if len(outputs) == 1 else ""
            )
        return ""

    def value(self, value: Any) -> str:
        """An argument as source."""
        if isinstance(value, Ref):
            return self.name(value)
        if isinstance(value, DType):
            return f"turnout.dtypes.dtype_named({value.name!r})" if value.name == "bool" else f"turnout.{value.name}"
        if isinstance(value, Device):
            return repr(str(value))
        if isinstance(value, Generator):
            if not any(each is value for each in self.generators):
                self.generators.append(value)
            return f"generators[{next(i for i, each in enumerate(self.generators) if each is value)}]"
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        if isinstance(value, tuple):
            return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, float) and value - value != 0:  # inf and nan have no literal
            return f"float({str(value)!r})"
        return repr(value)

    def built(self, structure: Any, leaves: Iterator[str]) -> str:
        """A nested value as source; a named tuple is written as a tuple."""
        if structure is LEAF:
            return next(leaves)
        inner = [self.built(branch, leaves) for branch in structure.branches]
        if structure.kind is dict:
            return "{" + ", ".join(f"{k!r}: {v}" for k, v in zip(structure.keys, inner, strict=True)) + "}"
        if structure.kind is list:
            return f"[{', '.join(inner)}]"
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"


def _same(default: Any, value: Any) -> bool:
    if isinstance(default, (list, tuple)) and isinstance(value, (list, tuple)):
        return len(default) == len(value) and all(map(_same, default, value))
    return type(default) is type(value) and bool(default == value)
