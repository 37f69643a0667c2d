"""A graph as the text of a Python function.

The text runs: its globals are `turnout` and, where there are any, `constants`, a list of tensors, `state`, a dict of them, and
`generators`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from turnout.devices import Device
from turnout.dtypes import DType
from turnout.operators.stubs import python_name
from turnout_aten.tensor.random import Generator
from turnout_aten.trees import LEAF
from turnout_tracer.nodes import Node, Ref, is_default
from turnout_tracer.sizes import Comparison, Formula, renamed
from turnout_tracer.structures import VALUE, places_in

if TYPE_CHECKING:
    from turnout_aten.tensor.tensor import Tensor
    from turnout_tracer.graph import Graph
    from turnout_tracer.sizes import Sizes


_OWN_NAMES = re.compile(r"[cvsu]\d+_?|turnout|constants|state|generators|float|max|min", re.ASCII)


def write(graph: Graph) -> str:
    """The function's source, ending with a newline."""
    writer = _Writer(graph)
    lines = [f"def {graph.name}({', '.join(writer.parameters())}):"]
    lines += writer.opening()
    off = False
    for i, node in enumerate(graph.nodes):
        if node.no_grad and not off:
            lines.append("    with turnout.no_grad():")
        off = node.no_grad
        lines += [("        " if off else "    ") + line for line in (writer.call(node), *writer.learnt(i))]
    results = iter([writer.value(ref) for ref in graph.results])
    leaves = [next(results) if leaf is VALUE else writer.value(leaf) for leaf in graph.output.leaves]
    returned = writer.built(graph.output.structure, iter(leaves))
    lines.append(f"    return {returned}")
    return "\n".join(lines) + "\n"


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants = {c.ref.index: f"c{i}" for i, c in enumerate(graph.constants)}
        for name, ref in graph.state_refs.items():
            shown = re.sub(r"\W", "_", name, flags=re.ASCII)
            plain = shown.isidentifier() and not iskeyword(shown) and not _OWN_NAMES.fullmatch(shown)
            shown = shown if plain else f"t_{shown}"
            taken = {*self.constants.values(), *graph.inputs}
            self.constants[ref.index] = shown if shown not in taken else f"{shown}_{ref.index}"
        self.generators: list[Generator] = []
        names = [] if graph.sizes is None else list(graph.sizes.names())
        self.symbols = {name: f"{name}_" for name in names if name in graph.inputs}

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
        for name, ref in self.graph.state_refs.items():
            yield f"    {self.name(ref)} = state[{name!r}]  # {_described(self.graph.state[name])}"
        for i, constant in enumerate(self.graph.constants):
            copied = ".clone()" if constant.written else ""
            yield f"    c{i} = constants[{i}]{copied}  # {_described(constant.tensor)}"
        if self.graph.sizes is not None:
            yield from (f"    {line}" for line in self.sizes(self.graph.sizes))

    def sizes(self, sizes: Sizes) -> Iterator[str]:
        """Lines that name the sizes of inputs, and check them."""
        named = {(i, dim) for _, i, dim in sizes.of_inputs()}
        for name, i, dim in sizes.of_inputs():
            yield f"{self.symbols.get(name, name)} = {self.graph.inputs[i]}.shape[{dim}]"
        for i, shape in enumerate(sizes.inputs):
            for dim, size in enumerate(shape or ()):
                if size is not None and (i, dim) not in named:
                    yield _check(f"{self.graph.inputs[i]}.shape[{dim}] == {self.value(size)}")
        yield from self.learnt(-1)

    def learnt(self, node: int) -> Iterator[str]:
        """Lines that name the sizes that a call has brought, and check what can be checked from then on."""
        if self.graph.sizes is None:
            return
        for birth in self.graph.sizes.born(node):
            if birth.dim is not None:
                yield f"{self.symbols.get(birth.name, birth.name)} = {self.name(Ref(birth.value))}.shape[{birth.dim}]"
        for each in self.graph.sizes.due(node):
            left, right = renamed(each.left, self.symbols), renamed(each.right, self.symbols)
            yield _check(str(Comparison(left, each.sign, right)))

    def call(self, node: Node) -> str:
        """One call, arguments that are the schema's defaults left out."""
        op = node.op
        parts: list[str] = []
        skipped = False
        for argument, value in zip(op.schema.arguments, node.args, strict=True):
            if is_default(argument, value):
                skipped = True
                continue
            shown = self.value(value)
            by_name = argument.kwarg_only or skipped
            parts.append(f"{python_name(argument.name)}={shown}" if by_name else shown)
        called = f"turnout.ops.{op.namespace}.{op.name}.{op.overload or 'default'}({', '.join(parts)})"
        made = self._target(node.outputs)
        return f"{made} = {called}" if made else called

    def _target(self, outputs: Any) -> str:
        if isinstance(outputs, (Ref, Formula)):
            return self.value(outputs)
        if isinstance(outputs, (list, tuple)) and outputs:
            return "".join(f"{self._target(each) or '_'}, " for each in outputs).rstrip().removesuffix(",") + (
                "," if len(outputs) == 1 else ""
            )
        return ""

    def value(self, value: Any) -> str:
        """An argument as source."""
        if isinstance(value, Ref):
            return self.name(value)
        if isinstance(value, Formula):
            return str(Formula(renamed(value.tree, self.symbols)))
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


def _described(tensor: Tensor) -> str:
    return f"{tensor.dtype.name} {list(tensor.shape)} on {tensor.device}" + (", requires_grad" if tensor.requires_grad else "")


def _check(condition: str) -> str:
    return f"turnout.check({condition}, {'the graph holds only where ' + condition!r})"
