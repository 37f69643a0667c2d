"""A call whose one result records for gradients: one node on the tape, whose forward and backward are compiled.

The record is replayed once on fake tensors that require gradients, and its backward with it. That joint graph, without writes, is
cut in two: what does not depend on the gradients of the results runs in the call, the rest in its backward. What goes from one to
the other is saved. A backward that is recorded itself, as for a second derivative, replays the operators of the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import turnout
from turnout_aten.declarations.tables import SEEDED
from turnout_aten.tensor.checks import postponed
from turnout_aten.tensor.grad_mode import enable_grad, no_grad
from turnout_aten.tensor.reads import told_of_reads
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.compiling import engines, errors
from turnout_tracer.compiling.lowering import flat, raw_of
from turnout_tracer.compiling.memory_order import fake_like
from turnout_tracer.compiling.outcomes import made_again
from turnout_tracer.compiling.programs import Program, check_results, facts_of, finished, laid_out
from turnout_tracer.graph import Graph
from turnout_tracer.nodes import Constant, Node, Ref, mapped, refs_in
from turnout_tracer.recording import trace
from turnout_tracer.replay import Replay
from turnout_tracer.structures import take_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout_tracer.compiling.capture import Capture
    from turnout_tracer.compiling.outcomes import Outcomes
    from turnout_tracer.compiling.signatures import Walk


class NotOneNodeError(Exception):
    """A call that does more than to compute new tensors: it runs as it is."""


class Differentiable(Program):
    """What a signature runs whose results record."""

    def __init__(self, walk: Walk, capture: Capture, outcomes: Outcomes, name: str, engine: str) -> None:
        of_inputs = any(each.is_input and each.view is not None for each in outcomes.tensors)
        if outcomes.grads or outcomes.slots or walk.groups or of_inputs or capture.has_own_gradients:
            raise NotOneNodeError
        self.name = name
        self.calls = 0
        self.sizes = ""
        self.slots = []
        if not outcomes.kept_for_gradients(capture):
            raise NotOneNodeError
        self._raw = Replay(raw_of(walk, capture, outcomes, name, None))
        self._constants = capture.constants
        self._count = len(outcomes.memories)
        self._recording = [i for i, each in enumerate(outcomes.memories) if each.tensor.gmask]
        tracked = [i for i, each in enumerate(walk.tensors) if each.gmask]
        joint, self._to, mode, fakes = self._joint(walk, outcomes, tracked)
        self._tracked = tracked
        halves = Halves(joint, len(walk.tensors), len(walk.generators), self._constants, self._count)
        self._used, self._from_results = halves.used, halves.from_results
        examples = fakes[: len(walk.tensors) + len(walk.generators)]
        self.recorded = graph_of(name, examples, halves.forward, halves.constants(halves.forward), halves.results)
        self.graph = finished(self.recorded, examples)
        with no_grad(), mode:
            made = self.recorded(*examples)
            saved = [examples[i] for i in self._used] + [made[i] for i in self._from_results] + list(made[self._count :])
        of_backward = [*saved, *fakes[len(fakes) - len(self._recording) :]]
        backward = halves.backward_graph(f"{name}_backward", of_backward)
        self._backward_graph = finished(backward, of_backward)
        self._expected = [facts_of(each.tensor) for each in outcomes.memories]
        self._strides = [each.tensor.stride() for each in outcomes.memories]
        device = engines.one_device([*walk.tensors, *[each.tensor for each in outcomes.memories]])
        self._tensors, self._leaves, self._structure = outcomes.tensors, outcomes.leaves, outcomes.structure
        self.engine, compile = engines.chosen(engine, device)
        self._run = engines.compiled(self.engine, compile, self.graph, examples, name, device)
        self._run_backward = engines.compiled(self.engine, compile, self._backward_graph, of_backward, name, device)
        self.notes = (
            *getattr(self._run, "notes", ()),
            f"one node for gradients, whose backward has {len(self._backward_graph.nodes)} operators",
        )

    def _joint(self, walk: Walk, outcomes: Outcomes, tracked: list[int]) -> tuple[Graph, list[int], Any, list[Any]]:
        """The call and its backward without writes, which inputs get gradients, and the mode and the fake inputs."""
        mode = turnout.FakeMode(allow_non_fake_inputs=True)
        numbers = len(walk.tensors), len(walk.tensors) + len(walk.generators)
        end = numbers[1] + len(self._constants)
        reached: list[int] = []

        def inputs() -> list[Any]:
            tensors = [fake_like(each) for each in walk.tensors]
            generators = [mode.generator(each.device) for each in walk.generators]
            copies = [fake_like(each.tensor) for each in self._constants]
            return [*tensors, *generators, *copies, *[fake_like(outcomes.memories[i].tensor) for i in self._recording]]

        def joint(*given: Any) -> list[Any]:
            copies = {f"c{i}": each for i, each in enumerate(given[numbers[1] : end])}
            with postponed() as noted:
                made = self._raw.run(list(given[: numbers[1]]), [], copies)
            if noted:  # a check of numbers, which eager calls make
                raise NotOneNodeError
            found = turnout.autograd.grad(
                [made[i] for i in self._recording], [given[i] for i in tracked], given[end:], allow_unused=True
            )
            reached[:] = [i for i, each in zip(tracked, found, strict=True) if each is not None]
            return [*made, *[each for each in found if each is not None]]

        with no_grad(), mode:
            fakes = inputs()
            for i in tracked:
                fakes[i].requires_grad_()
        with enable_grad(), mode, told_of_reads(_refuse):
            first = trace(joint)(*fakes)
        with no_grad(), mode:
            plain = inputs()
            second = trace(turnout.func.functionalize(first))(*plain)
        if first.constants or second.constants or not all(isinstance(each, Ref) for each in second.results):
            raise NotOneNodeError
        return second, reached, mode, plain

    def may_run(self, tensors: Sequence[Tensor]) -> bool:
        """It writes nothing."""
        return True

    def __call__(self, tensors: Sequence[Tensor], generators: Sequence[Any], places: Sequence[tuple[Any, Any]]) -> Any:
        """One call, for what a walk or a guard found."""
        self.calls += 1
        memories = Call.apply(self, generators, *tensors)
        return self._returned(made_again(self._tensors, tensors, memories))

    def forward(self, ctx: Any, generators: Sequence[Any], tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The new memories; `ctx` gets what backward needs."""
        made = self._run(*tensors, *generators)
        check_results(made[: self._count], self._expected, self.engine, self.name)
        memories = [laid_out(each, strides) for each, strides in zip(made, self._strides, strict=False)]
        ctx.save_for_backward(*[tensors[i] for i in self._used], *[memories[i] for i in self._from_results], *made[self._count :])
        ctx.mark_non_differentiable(*[each for i, each in enumerate(memories) if i not in self._recording])
        ctx.given = tensors, generators, [each.version() for each in tensors]
        return tuple(memories)

    def backward(self, ctx: Any, grads: Sequence[Any]) -> list[Any]:
        """The gradients of the inputs."""
        given = [grads[i] for i in self._recording]
        saved = ctx.saved_tensors
        if turnout.is_grad_enabled():
            found = dict(zip(self._tracked, self._again(ctx, given), strict=True))
        else:
            found = dict(zip(self._to, self._run_backward(*saved, *given), strict=True))
        return [found.get(i) for i in range(len(ctx.given[0]))]

    def _again(self, ctx: Any, grads: list[Any]) -> Sequence[Any]:
        """The gradients, recorded: the operators of the call run again."""
        tensors, generators, versions = ctx.given
        if any(SEEDED in node.op.tags for node in self.recorded.nodes):
            raise errors.CompileError(errors.second_of_random(self.name))
        if [each.version() for each in tensors] != versions:
            raise errors.CompileError(errors.second_of_written(self.name))
        copies = {f"c{i}": each.tensor.clone() for i, each in enumerate(self._constants)}
        made = self._raw.run([*tensors, *generators], [], copies)
        outputs, inputs = [made[i] for i in self._recording], [tensors[i] for i in self._tracked]
        return turnout.autograd.grad(outputs, inputs, grads, create_graph=True, allow_unused=True)


def _refuse(what: str) -> None:
    """A gradient that is computed in one way or another, as values are: a graph has one way."""
    raise NotOneNodeError(what)


class Call(turnout.autograd.Function):  # type: ignore[misc] # its module comes from another package
    """The node."""

    @staticmethod
    def forward(ctx: Any, program: Differentiable, generators: Sequence[Any], *tensors: Tensor) -> tuple[Tensor, ...]:
        """See `Differentiable.forward`."""
        ctx.program = program
        return program.forward(ctx, generators, tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        """See `Differentiable.backward`."""
        return None, None, *ctx.program.backward(ctx, grads)


class Halves:
    """A joint graph, cut where it needs the gradients of the results.

    forward       the calls that do not
    results       the new memories, and what backward needs beside inputs and memories
    used          the inputs that backward needs
    from_results  the memories that it needs
    """

    def __init__(self, joint: Graph, tensors: int, generators: int, constants: list[Constant], count: int) -> None:
        self._tensors = tensors
        self._first = tensors + generators  # of the constants
        self._constants = constants
        self._late = self._first + len(constants)
        self.forward: list[Node] = []
        backward: list[Node] = []
        late = set(range(self._late, len(joint.inputs)))
        self._grads = sorted(late)
        for node in joint.nodes:
            is_late = any(ref.index in late for ref in refs_in(node.args))
            written = [
                ref.index
                for a, value in zip(node.op.schema.arguments, node.args, strict=True)
                if a.is_write
                for ref in refs_in(value)
            ]
            if any(i < len(joint.inputs) or (is_late and i not in late) for i in written):
                raise NotOneNodeError
            if is_late:
                late |= {ref.index for ref in refs_in(node.outputs)}
            (backward if is_late else self.forward).append(node)
        results: list[Any] = list(joint.results)
        memories, self._found = results[:count], results[count:]
        needed = {ref.index for ref in refs_in([node.args for node in backward])} | {ref.index for ref in self._found}
        if any(tensors <= i < self._first for i in needed):
            raise NotOneNodeError  # a generator
        again: list[Node] = []
        for node in reversed(self.forward):  # views are made anew: what is saved shares no memory
            outputs = {ref.index for ref in refs_in(node.outputs)}
            if node.op.schema.is_view and outputs & needed:
                again.append(node)
                needed = (needed - outputs) | {ref.index for ref in refs_in(node.args)}
        self._backward = [*again[::-1], *backward]
        made = {ref.index for node in self.forward for ref in refs_in(node.outputs)} - {
            ref.index for node in again for ref in refs_in(node.outputs)
        }
        at = {ref.index: i for i, ref in enumerate(memories)}
        self.used = sorted(i for i in needed if i < tensors)
        self.from_results = sorted(at[i] for i in needed & made if i in at)
        saved = [Ref(i) for i in sorted(needed & made) if i not in at]
        self.results = [*memories, *saved]
        self._inputs = [*self.used, *[memories[i].index for i in self.from_results], *[ref.index for ref in saved], *self._grads]

    def constants(self, nodes: list[Node], results: Sequence[Any] = ()) -> list[Constant]:
        """The constants that some calls or results name."""
        named = {ref.index for ref in refs_in([[node.args for node in nodes], list(results)])}
        every = [Constant(Ref(self._first + i), each.tensor) for i, each in enumerate(self._constants)]
        return [each for each in every if each.ref.index in named]

    def backward_graph(self, name: str, examples: list[Any]) -> Graph:
        """The other calls: a graph of what was saved and of the gradients of the results."""
        constants = self.constants(self._backward, self._found)
        order = [*self._inputs, *[each.ref.index for each in constants]]
        numbers = {old: new for new, old in enumerate(order)}
        for node in self._backward:
            for ref in refs_in(node.outputs):
                numbers.setdefault(ref.index, len(numbers))

        def renumbered(value: Any) -> Any:
            return mapped(lambda each: Ref(numbers[each.index]) if isinstance(each, Ref) else each, value)

        nodes = [
            Node(each.op, renumbered(each.args), renumbered(each.outputs), each.no_grad, each.line) for each in self._backward
        ]
        kept = [Constant(renumbered(each.ref), each.tensor) for each in constants]
        return graph_of(name, examples, nodes, kept, renumbered(list(self._found)))


def graph_of(name: str, examples: list[Any], nodes: list[Node], constants: list[Constant], results: list[Any]) -> Graph:
    """A graph with flat inputs and results."""
    inputs = tuple([f"x{i}" for i in range(len(examples))])
    return Graph(name, inputs, take_apart([(*examples,), {}], lambda _: None), nodes, constants, flat(len(results)), results)
