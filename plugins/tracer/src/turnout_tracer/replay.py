"""A graph prepared for its calls: the text of a Python function with one line for each call of an operator, compiled.

Values are local variables, arguments that are no tensors are constants, and those that the schema has as defaults are left out.
Each line calls the operator as a program does, so modes, transforms and kernels that are registered later see every call. The
text has no name from the graph: a graph may come from any file. A traceback shows the line of the call that failed.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

from turnout.operators.stubs import compile_function, forget_source, python_name
from turnout_aten.tensor.grad_mode import no_grad
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer import errors
from turnout_tracer.nodes import Node, Ref, is_default, refs_in
from turnout_tracer.sizes import Formula

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnout.explanation.user_frames import UserFrame
    from turnout.operators import Operator
    from turnout_tracer.graph import Graph
    from turnout_tracer.sizes import Comparison, Sizes

_NUMBERS = count(1)  # a file name of its own for each text
# What a sign of `sizes.SIGNS` is in the text.
TEXTS = {sign: f"{{}} {sign} {{}}" for sign in ("+", "*", "//", "%", "/")} | {"max": "max({}, {})", "min": "min({}, {})"}


class Replay:
    """What a graph was when it was prepared, and the function that came out.

    run     called with the values of the inputs, the constants and the state of the graph, it returns the results in a list
    """

    __slots__ = ("__weakref__", "_constants", "_nodes", "_results", "_sizes", "_state_refs", "run")

    def __init__(self, graph: Graph) -> None:
        self._nodes = list(graph.nodes)
        self._constants = list(graph.constants)
        self._results = list(graph.results)
        self._state_refs = dict(graph.state_refs)
        self._sizes = graph.sizes
        writer = _Writer(graph)
        text: list[str] = []
        kept: dict[int, UserFrame | None] = {}  # by the number of the line
        for line in writer.lines():
            text.append(line)
            kept[len(text)] = writer.node.line if writer.node is not None else None
        writer.names["__user_frame__"] = lambda frame: kept.get(frame.f_lineno)
        filename = f"<replay {next(_NUMBERS)} of {graph.name}>"
        self.run: Callable[..., list[Any]] = compile_function("\n".join(text) + "\n", "replay", filename, writer.names)
        weakref.finalize(self, forget_source, filename)

    def is_of(self, graph: Graph) -> bool:
        """Whether the graph is still what it was; nodes are compared as objects, since none of them ever changes."""
        return (
            graph.nodes == self._nodes
            and graph.results == self._results
            and graph.constants == self._constants
            and graph.state_refs == self._state_refs
            and graph.sizes is self._sizes
        )


class _Writer:
    """Writes the text; `names` are its globals."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.node: Node | None = None  # whose lines are written
        self.names: dict[str, Any] = {"max": max, "min": min, "len": len, "isinstance": isinstance, "Tensor": Tensor}
        self.names |= {"no_grad": no_grad, "wrong_results": _wrong_results, "holds": _holds, "__name__": __name__}
        self._operators: dict[int, str] = {}
        self._sizes: dict[str, str] = {}  # the variable of each size that has a name
        self._computed: dict[str, str] = {}  # the variable of each formula that was computed
        self._open: list[str] = []  # lines of formulas that the next line needs

    def lines(self) -> Iterator[str]:
        """The lines of the function."""
        graph = self.graph
        yield "def replay(given, constants, state):"
        if graph.inputs:
            yield f"    {', '.join(f'v{i}' for i in range(len(graph.inputs)))}, = given"
        for key, ref in graph.state_refs.items():
            yield f"    v{ref.index} = state[{self.constant(key)}]"
        for i, constant in enumerate(graph.constants):
            yield f"    v{constant.ref.index} = constants[{i}].value()"
        if graph.sizes is not None:
            yield from map("    ".__add__, self.of_inputs(graph.sizes))
        off = False
        for i, (node, dead) in enumerate(zip(graph.nodes, _dead_after(graph), strict=True)):
            if node.no_grad and not off:
                yield "    with no_grad():"
            off = node.no_grad
            self.node = node
            yield from map(("        " if off else "    ").__add__, self.step(i, node, dead))
        results = [self.value(result) for result in graph.results]
        yield from map("    ".__add__, self.opened())
        yield f"    return [{', '.join(results)}]"

    def step(self, i: int, node: Node, dead: Sequence[int]) -> Iterator[str]:
        """The lines of a call: its arguments, the call, the sizes it brings, and what is needed no longer."""
        call = self.call(node)
        yield from self.opened()
        if isinstance(node.outputs, Formula):
            yield f"{self.size(node.outputs.tree)} = {call}"
        elif isinstance(node.outputs, Ref):
            yield f"v{node.outputs.index} = {call}"
        elif isinstance(node.outputs, (list, tuple)):
            yield from self.unpacked(node.op, node.outputs, call, "r")
        else:
            yield call
        if self.graph.sizes is not None:
            yield from self.learnt(self.graph.sizes, i)
        if dead:
            yield f"del {', '.join(f'v{index}' for index in dead)}"

    def call(self, node: Node) -> str:
        """One call, arguments that are the schema's defaults left out."""
        parts: list[str] = []
        skipped = False
        for argument, value in zip(node.op.schema.arguments, node.args, strict=True):
            if is_default(argument, value):
                skipped = True
                continue
            by_name = argument.kwarg_only or skipped
            parts.append(f"{python_name(argument.name)}={self.value(value)}" if by_name else self.value(value))
        name = self._operators.get(id(node.op))
        if name is None:
            name = f"op{len(self._operators)}_" + re.sub(r"\W", "_", node.op.name, flags=re.ASCII)
            self._operators[id(node.op)] = name
            self.names[name] = node.op
        return f"{name}.call({', '.join(parts)})"  # looked up in each call: the first one compiles it, and it may be undone

    def unpacked(self, op: Operator, outputs: Any, made: str, name: str) -> Iterator[str]:
        """Lines that give the results of a call their variables; what nothing uses is let go at once."""
        yield f"{name} = {made}"
        yield f"if len({name}) != {len(outputs)}: wrong_results({self.constant(op.qualified_name)}, len({name}), {len(outputs)})"
        for i, each in enumerate(outputs):
            if isinstance(each, (list, tuple)):
                yield from self.unpacked(op, each, f"{name}[{i}]", f"{name}_{i}")
        if any(isinstance(each, Ref) for each in outputs):
            yield f"{', '.join(f'v{each.index}' if isinstance(each, Ref) else 'other' for each in outputs)}, = {name}"
        yield f"{name} = other = None"

    # ---- arguments

    def value(self, value: Any) -> str:
        """An argument. Lists are made anew for each call."""
        if isinstance(value, Ref):
            return f"v{value.index}"
        if isinstance(value, Formula):
            return self.formula(value.tree)
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        if type(value) is tuple and not _is_plain(value):
            return f"({', '.join(map(self.value, value))},)"
        return self.constant(value)

    def constant(self, value: Any) -> str:
        """A value that each call gets."""
        if value is None or value is True or value is False or type(value) is int:
            return repr(value)
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    # ---- sizes

    def opened(self) -> list[str]:
        """The lines of the formulas that were asked for since the last time."""
        lines, self._open = self._open, []
        return lines

    def size(self, name: str) -> str:
        """The variable of a size."""
        return self._sizes.setdefault(name, f"n{len(self._sizes)}")

    def formula(self, tree: Any) -> str:
        """The variable of a formula; each is computed once, when it is first needed, and none is nested in another."""
        if isinstance(tree, str):
            return self.size(tree)
        if not isinstance(tree, tuple):
            return self.constant(tree)
        text = TEXTS[tree[0]].format(self.formula(tree[1]), self.formula(tree[2]))
        name = self._computed.get(text)
        if name is None:
            name = self._computed[text] = f"f{len(self._computed)}"
            self._open.append(f"{name} = {text}")
        return name

    def of_inputs(self, sizes: Sizes) -> Iterator[str]:
        """Lines that name the sizes of inputs and check them; `Sizes.read` says what is wrong."""
        self.names["read"] = lambda given: sizes.read(self.graph.name, self.graph.inputs, given)
        checked = [(i, shape) for i, shape in enumerate(sizes.inputs) if shape is not None]
        for i, shape in checked:
            yield f"if not isinstance(v{i}, Tensor) or v{i}.ndim != {len(shape)}: read(given)"
        named = {(i, dim) for _, i, dim in sizes.of_inputs()}
        for name, i, dim in sizes.of_inputs():
            yield f"{self.size(name)} = v{i}.shape[{dim}]"
        for i, shape in checked:
            rest = {dim: size for dim, size in enumerate(shape) if size is not None and (i, dim) not in named}
            if not rest:
                continue
            wanted = {dim: self.value(size) for dim, size in rest.items()}
            yield from self.opened()
            yield f"d = v{i}.shape"
            yield f"if {' or '.join(f'd[{dim}] != {size}' for dim, size in wanted.items())}: read(given)"
        for each in sizes.due(-1):
            yield from self.checked(each, "read(given)")

    def learnt(self, sizes: Sizes, i: int) -> Iterator[str]:
        """Lines that name the sizes that a call has brought, and check what can be checked from then on."""
        for birth in sizes.born(i):
            if birth.dim is not None:
                yield f"{self.size(birth.name)} = v{birth.value}.shape[{birth.dim}]"
        if sizes.due(i):
            self.names["check"] = lambda node, found: sizes.check(self.graph.name, self.graph.inputs, node, found)
            names = dict.fromkeys(name for each in sizes.due(i) for name in each.names())
            found = ", ".join(f"{self.constant(name)}: {self.size(name)}" for name in names)
            for each in sizes.due(i):
                yield from self.checked(each, f"check({i}, {{{found}}})")

    def checked(self, comparison: Comparison, otherwise: str) -> Iterator[str]:
        """The lines of one comparison; `otherwise` raises."""
        left, right = self.formula(comparison.left), self.formula(comparison.right)
        yield from self.opened()
        yield f"if not holds({left} {comparison.sign} {right}): {otherwise}"


def _is_plain(value: Any) -> bool:
    """Whether a tuple is the same in each call, all the way down."""
    return all(_is_plain(each) if type(each) is tuple else not isinstance(each, (Ref, Formula, list)) for each in value)


def _dead_after(graph: Graph) -> list[list[int]]:
    """Per node, the values that nothing needs after it: a replay holds no more memory than the function did."""
    needed = {ref.index for ref in refs_in(graph.results)}
    found: list[list[int]] = []
    for node in reversed(graph.nodes):
        here = {ref.index for ref in refs_in((node.args, node.outputs))} - needed
        found.append(sorted(here))
        needed |= here
    return found[::-1]


def _holds(comparison: Any) -> bool:
    """Whether what was decided holds. Of symbols it is decided as by a program: their trace assumes it too."""
    return comparison if comparison.__class__ is bool else comparison.answer(kernel=False)


def _wrong_results(op: str, found: int, expected: int) -> None:
    raise errors.TraceError(errors.other_results(op, found, expected))
