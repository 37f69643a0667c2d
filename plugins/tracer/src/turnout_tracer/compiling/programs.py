"""A compiled graph, called: from its results come those of the function, what is written back, gradients and aliases."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any

from turnout.dtypes import bool_
from turnout.errors import TurnoutError
from turnout.guards import during
from turnout_aten import operators as aten
from turnout_aten import trees
from turnout_aten.shapes.extents import reach_of
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.random import default_generator
from turnout_aten.tensor.taking_over import is_alone, take_over
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.compiling import engines, errors
from turnout_tracer.compiling.lowering import Lowered, apart
from turnout_tracer.compiling.memory_order import in_memory_order
from turnout_tracer.compiling.optimiser import optimised
from turnout_tracer.compiling.outcomes import made_again
from turnout_tracer.compiling.signatures import put
from turnout_tracer.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_tracer.compiling.capture import Capture
    from turnout_tracer.compiling.outcomes import Outcomes
    from turnout_tracer.compiling.signatures import Walk


class Program:
    """What a signature runs.

    engine    its name
    graph     what the engine was given
    recorded  the graph before it was optimised
    calls     how often it ran
    sizes     of a trace with symbols: what must hold of the sizes that it serves
    notes     what the engine says of the program, in lines
    """

    def __init__(
        self, walk: Walk, capture: Capture | None, outcomes: Outcomes, name: str, engine: str, lowered: Lowered | None = None
    ) -> None:
        if lowered is None:
            assert capture is not None
            lowered = Lowered(walk, capture, outcomes, name)
        self.name = name
        self.calls = 0
        self.sizes = ""
        self.recorded, self.graph = lowered.graph, finished(lowered.graph, lowered.examples)
        # Of what the first call left, only its description is kept, and none of its tensors.
        self._tensors, self._leaves, self._structure = outcomes.tensors, outcomes.leaves, outcomes.structure
        self._grads, self._slots = outcomes.grads, outcomes.slots
        self._bases, self._written = lowered.bases, lowered.written
        self.slots = [slot for slot, _ in outcomes.slots]
        self._expected = [facts_of(memory.tensor) for memory in outcomes.memories] + [
            facts_of(walk.tensors[i]) for i in lowered.written
        ]
        self._device, self._checks = lowered.device, lowered.checks
        if self._checks:
            self._expected.append(((), bool_, lowered.device))
        self._strides = [memory.tensor.stride() for memory in outcomes.memories]
        self._sizes = [(i, size) for i in self._bases if (size := _reach(walk.tensors[i]))]
        self._records = any(tensor.gmask for tensor in walk.tensors)
        self.engine, compile = engines.chosen(engine, lowered.device)
        written = tuple([self._bases.index(i) for i in self._written])
        self._run = engines.compiled(self.engine, compile, self.graph, lowered.examples, name, lowered.device, written)
        self.notes = tuple(getattr(self._run, "notes", ()))

    def may_run(self, tensors: Sequence[Tensor]) -> bool:
        """Whether the inputs that it writes lie apart from the others. Tensors may share memory that Turnout does not know of."""
        if all(map(is_alone, [tensors[i] for i in self._written])):
            return True
        try:
            places = sorted([(tensors[i].data_ptr(), size, i in self._written) for i, size in self._sizes])
        except Exception:  # noqa: BLE001 - NoDataError, or a backend of values, where no memory is shared unknown to Turnout
            return True
        if all(first + size <= after for (first, size, _), (after, *_) in pairwise(places)):
            return True
        return not any(
            (writes or written) and after < first + size for (first, size, writes), (after, _, written) in combinations(places, 2)
        )

    def __call__(self, tensors: Sequence[Tensor], generators: Sequence[Any], places: Sequence[tuple[Any, Any]]) -> Any:
        """One call, for what a walk or a guard found: tensors, generators, and the places of `slots`.

        `UNTRUE` where a check of numbers fails: then nothing has changed.
        """
        self.calls += 1
        if self._records and GRAD.get()[0]:
            memories = during(GRAD, (0, GRAD.get()[1]), self._computed, tensors, generators)
        else:
            memories = self._computed(tensors, generators)
        if memories is UNTRUE:
            return memories
        again = made_again(self._tensors, tensors, memories)
        for i, number in self._grads:
            tensors[i].grad = None if number is None else again[number]
        for (owner, name), (_, number) in zip(places, self._slots, strict=True):
            put(owner, name, again[number])
        return self._returned(again)

    def _returned(self, again: Sequence[Any]) -> Any:
        """What the function returns, of these tensors."""
        leaves = [again[leaf[0]] if type(leaf) is list else leaf for leaf in self._leaves]
        return leaves[0] if self._structure is trees.LEAF else trees.unflatten(self._structure, leaves)

    def _computed(self, tensors: Sequence[Tensor], generators: Sequence[Any]) -> Any:
        """The new memories; inputs that the program writes have their new values. Or `UNTRUE`."""
        if self._checks:
            made = self._checked(tensors, generators)
            if made is UNTRUE:
                return made
        else:
            made = self._run(*[tensors[i] for i in self._bases], *generators)
        check_results(made, self._expected, self.engine, self.name)
        for i, value in zip(self._written, made[len(self._strides) :], strict=False):
            if not take_over(tensors[i], value):
                tensors[i].copy_(value)
        return [laid_out(each, strides) for each, strides in zip(made, self._strides, strict=False)]

    def _checked(self, tensors: Sequence[Tensor], generators: Sequence[Any]) -> Any:
        """The results, or `UNTRUE`. An operator may raise for what the check says, so that it comes to nothing else."""
        states = [(each, each.get_state()) for each in (default_generator(self._device), *generators)]
        try:
            made = self._run(*[tensors[i] for i in self._bases], *generators)
            if not bool(made[-1]):
                return made
        except TurnoutError:
            pass
        for generator, state in states:
            generator.set_state(state)
        return UNTRUE


UNTRUE = object()


def finished(graph: Graph, examples: Sequence[Any]) -> Graph:
    """The graph for the engine: optimised, with results that share no memory, and `as_strided` of row-major values alone."""
    results = list(graph.results)
    nodes, constants = optimised(graph.nodes, graph.constants, results)
    nodes = in_memory_order(nodes, constants, examples)
    indices = [each.ref.index for each in constants]
    nodes, results = apart(nodes, results, max([len(graph.inputs) - 1, *indices]) + 1, indices)
    return Graph(graph.name, graph.inputs, graph.signature, nodes, constants, graph.output, results)


def check_results(made: Sequence[Any], expected: Sequence[Any], engine: str, name: str) -> None:
    """Raise CompileError unless these are as many results as there must be, and have these facts."""
    fits = len(made) == len(expected)
    for each, (shape, dtype, device) in zip(made, expected, strict=fits):
        if each.shape != shape or each.dtype is not dtype or (each.device is not device and each.device != device):
            fits = False
    if not fits:
        found = _shown([facts_of(each) for each in made])
        raise errors.CompileError(errors.wrong_results(engine, name, found, _shown(expected)))


def facts_of(tensor: Any) -> tuple[Any, ...]:
    """What an engine has to keep of a result."""
    return tuple(tensor.shape), tensor.dtype, tensor.device


def _shown(facts: Sequence[tuple[Any, ...]]) -> str:
    return ", ".join(f"{dtype.name} {list(shape)} on {device}" for shape, dtype, device in facts) or "nothing"


def laid_out(value: Tensor, strides: tuple[int, ...]) -> Tensor:
    """The value with the strides that the eager call gives."""
    if value.stride() == strides:
        return value
    made: Tensor = aten.empty_strided(tuple(value.shape), strides, dtype=value.dtype, device=value.device)
    return made.copy_(value)


def _reach(tensor: Tensor) -> int:
    """The bytes from the first element of a tensor to the end of its last one."""
    return reach_of(tensor.shape, tensor.stride()) * tensor.dtype.itemsize
