"""A recorded call as a graph without writes, over the memories of its inputs.

The record is replayed on fake tensors, functionalised and traced. Of inputs that share memory one covers the others, which become
views of it inside the graph. What is copied back at the end of the functionalised call are results: the new values of the inputs.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import turnout
from turnout.operators.values import is_symbol
from turnout_aten import operators as aten
from turnout_aten.shapes.extents import is_dense, reach_of
from turnout_aten.tensor.checks import postponed
from turnout_aten.tensor.grad_mode import no_grad
from turnout_aten.tensor.tensor import Tensor
from turnout_aten.tensor.wrappers import WrapperTensor
from turnout_tracer.compiling import engines, errors
from turnout_tracer.compiling.errors import NotLoweredError
from turnout_tracer.compiling.memory_order import fake_like, is_strided, is_whole
from turnout_tracer.graph import Graph
from turnout_tracer.nodes import Constant, Node, Ref, refs_in
from turnout_tracer.recording import Recording, trace
from turnout_tracer.replay import Replay
from turnout_tracer.sizes import Formula, Sizes
from turnout_tracer.structures import take_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_tracer.compiling.outcomes import Outcomes
    from turnout_tracer.compiling.signatures import Walk


class Lowered:
    """A graph for an engine.

    graph     its results are the new memories, the new values of written inputs, and what `checks` says
    bases     which tensors of the signature it takes, before the generators
    written   which tensors of the signature the last results are written to
    checks    whether the last result, one bool, says that a check of numbers fails
    examples  the inputs as fake tensors
    device    where it runs
    sizes     where sizes of inputs are symbols: their names, and what must hold of them
    shapes    the shapes of the new memories
    """

    def __init__(
        self,
        walk: Walk,
        capture: Recording,
        outcomes: Outcomes,
        name: str,
        at: frozenset[int] = frozenset(),
        sizes: Sizes | None = None,
    ) -> None:
        self.bases, covers = _bases(walk)
        if is_strided(capture.nodes) and not all(map(is_whole, walk.tensors)):
            raise NotLoweredError(errors.outside_of_tensor())
        mode = turnout.FakeMode()
        constants = capture.constants
        raw = raw_of(walk, capture, outcomes, name, sizes)
        replay = Replay(raw)

        def program(*given: Any) -> list[Any]:
            bases = given[: len(self.bases)]
            rest = given[len(self.bases) :]
            generators, copies = rest[: len(walk.generators)], rest[len(walk.generators) :]
            values = []
            for tensor, cover in zip(walk.tensors, covers, strict=True):
                base = bases[cover]
                if walk.tensors[self.bases[cover]] is tensor:
                    values.append(base)
                else:
                    start = tensor.storage_offset() - walk.tensors[self.bases[cover]].storage_offset()
                    values.append(aten.as_strided(base, tensor.shape, tensor.stride(), start))
            with postponed() as noted:
                made = replay.run([*values, *generators], [], {f"c{i}": each for i, each in enumerate(copies)})
            self.shapes = [tuple([_formula(size) for size in each.shape]) for each in made]
            # Others are noted inside of an operator that stays whole, and makes the check itself.
            wrong = [each for each in noted if isinstance(each, WrapperTensor)]
            self.checks = bool(wrong)
            return [*made, reduce(aten.logical_or, wrong)] if wrong else made

        program.__name__ = name
        symbolic = {i: symbolic_like(mode, walk.tensors[i]) for i in at}
        with no_grad(), mode:
            fakes = [symbolic[i] if i in at else fake_like(walk.tensors[i]) for i in self.bases]
            fakes += [mode.generator(each.device) for each in walk.generators]
            copies = [fake_like(each.tensor) for each in constants]
            traced = trace(turnout.func.functionalize(program))(*fakes, *copies)
        if traced.constants:
            raise NotLoweredError(errors.HIDDEN_TENSOR)
        if traced.sizes is not None and traced.sizes.births:
            raise NotLoweredError(errors.dynamic("the graph"))  # by a composite, of which no tag says it
        self.examples = fakes
        self.sizes = None
        if sizes is not None and traced.sizes is not None:
            self.sizes = Sizes(traced.sizes.inputs[: len(fakes)], traced.sizes.births, traced.sizes.assumptions)
        self._build(traced, len(fakes), constants, name)
        tensors = [walk.tensors[i] for i in self.bases]
        self.device = engines.one_device([*tensors, *[memory.tensor for memory in outcomes.memories]])

    def _build(self, traced: Graph, count: int, constants: list[Constant], name: str) -> None:
        """The graph of the trace: copies back are results, copied tensors are constants."""
        inputs = count + len(constants)
        nodes, news = [], {}
        for node in traced.nodes:
            target = node.args[0] if node.args else None
            if (
                isinstance(target, Ref)
                and target.index < inputs
                and any(
                    a.is_write and any(ref.index < inputs for ref in refs_in(value))
                    for a, value in zip(node.op.schema.arguments, node.args, strict=True)
                )
            ):
                if node.op.qualified_name != "aten::copy_" or not isinstance(node.args[1], Ref):
                    raise NotLoweredError(f"{node.op.qualified_name} writes into an input")
                news[target.index] = node.args[1]
            else:
                nodes.append(node)
        if not all(isinstance(each, Ref) for each in traced.results):
            raise NotLoweredError(errors.dynamic("the graph"))
        check = [traced.results.pop()] if self.checks else []
        written = [i for i in range(len(self.bases)) if i in news]
        self.written = [self.bases[i] for i in written]
        # A constant that the call returns and has written is its new value.
        made: list[Any] = traced.results
        results: list[Any] = [*[news.get(ref.index, ref) for ref in made], *[news[i] for i in written], *check]
        kept = [Constant(Ref(count + i), each.tensor) for i, each in enumerate(constants)]
        signature = take_apart([(*self.examples,), {}], lambda value: None)
        self.graph = Graph(name, traced.inputs[:count], signature, nodes, kept, flat(len(results)), results, self.sizes)


def flat(count: int) -> Any:
    """The nesting of a list of tensors."""
    return take_apart([turnout.empty(0)] * count, lambda value: None)


def symbolic_like(mode: Any, tensor: Tensor) -> Tensor:
    """A fake tensor in row-major order, with memory of its own, whose sizes are symbols, but for 0 and 1; no mode is active."""
    shape = mode.from_tensor(turnout.empty(tuple(tensor.shape), device="meta"), dynamic=range(tensor.ndim)).shape
    with mode:
        made: Tensor = turnout.empty(tuple(shape), dtype=tensor.dtype, device=tensor.device)
    return made


def _formula(size: Any) -> Any:
    """A size that is a symbol, as a graph computes it."""
    return size.computed({name: Formula(name) for name in size.symbols}) if is_symbol(size) else size


def _bases(walk: Walk) -> tuple[list[int], list[int]]:
    """The tensors that the graph takes, and for each tensor of the signature which of these covers it."""
    bases: list[int] = []
    covers = [-1] * len(walk.tensors)
    for group in walk.groups:
        tensors = [walk.tensors[i] for i in group]
        best = max(group, key=lambda i: walk.tensors[i].numel())
        cover = walk.tensors[best]
        first, last = cover.storage_offset(), cover.storage_offset() + cover.numel()
        plain = is_dense(tuple(cover.shape), cover.stride())
        for tensor in tensors:
            offset = tensor.storage_offset()
            inside = first <= offset and offset + reach_of(tensor.shape, tensor.stride()) <= last
            if first or not (plain and inside and tensor.dtype is cover.dtype and tensor.storage is cover.storage):
                raise NotLoweredError(errors.overlapping())
        for i in group:
            covers[i] = len(bases)
        bases.append(best)
    for i, cover_of in enumerate(covers):
        if cover_of < 0:
            covers[i] = len(bases)
            bases.append(i)
    return bases, covers


def raw_of(walk: Walk, capture: Recording, outcomes: Outcomes, name: str, sizes: Sizes | None) -> Graph:
    """The record as a graph: constants are its state, given anew for each call."""
    count = len(walk.tensors) + len(walk.generators)
    inputs = tuple([f"x{i}" for i in range(count)])
    refs = {f"c{i}": each.ref for i, each in enumerate(capture.constants)}
    results: Any = [memory.ref for memory in outcomes.memories]
    nested = flat(0)
    return Graph(name, inputs, nested, capture.nodes, [], nested, results, sizes, {}, refs)


def apart(nodes: list[Node], results: list[Any], inputs: int, constants: Sequence[int] = ()) -> tuple[list[Node], list[Any]]:
    """The nodes and results such that results share memory with nothing: those that would are cloned."""
    roots: dict[int, int] = {}
    for node in nodes:
        schema = node.op.schema
        viewed = [
            value for a, value in zip(schema.arguments, node.args, strict=True) if a.annotation is not None and not a.is_write
        ]
        sources = list(refs_in(viewed))
        for ref in refs_in(node.outputs):
            roots[ref.index] = roots.get(sources[0].index, sources[0].index) if sources else ref.index
    count = 1 + max([inputs - 1, *[ref.index for node in nodes for ref in refs_in((node.args, node.outputs))]])
    taken = {*range(inputs), *constants}
    nodes, made = list(nodes), []
    for result in results:
        root = roots.get(result.index, result.index)
        if root in taken:
            clone = turnout.ops.aten.clone.default
            nodes.append(Node(clone, (result, None), Ref(count), True))
            result = Ref(count)
            count += 1
        else:
            taken.add(root)
        made.append(result)
    return nodes, made
