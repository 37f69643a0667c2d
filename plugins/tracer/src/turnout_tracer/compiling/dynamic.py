"""`dynamic=True`: one trace with sizes that are symbols, for calls of all sizes for which it holds.

After the first call, the function runs once more, on fake tensors whose sizes are symbols. What it decides about sizes becomes a
guard. The record is lowered as that of the first call is, and its graph, with the numbers of a size put in, goes to the engine:
once for each size. A function that does more than to compute and to write its arguments does not run again: it has a graph for
each size, as it has without `dynamic`.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import turnout
from turnout.guards import during
from turnout.operators.values import is_symbol
from turnout_aten import trees
from turnout_aten.shapes.extents import contiguous_strides
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.compiling import errors
from turnout_tracer.compiling.errors import NotLoweredError, NotWorthwhileError
from turnout_tracer.compiling.functions import LIMIT, Compiled, Entry
from turnout_tracer.compiling.lowering import Lowered, symbolic_like
from turnout_tracer.compiling.memory_order import STRIDED, fake_like
from turnout_tracer.compiling.outcomes import Kind, Memory
from turnout_tracer.compiling.programs import UNTRUE, Program
from turnout_tracer.compiling.reach import Code
from turnout_tracer.compiling.signatures import Walk, put
from turnout_tracer.graph import Graph
from turnout_tracer.nodes import Node, Ref, mapped, refs_in
from turnout_tracer.recording import RECORDING, Recording, while_tracing
from turnout_tracer.sizes import Formula, SizeRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from turnout.operators import Operator
    from turnout_tracer.compiling.capture import Capture
    from turnout_tracer.compiling.outcomes import Outcomes

# What a function names that asks where in its memory a tensor begins. A test asks everything that a tensor tells.
ABOUT_MEMORY = frozenset(("storage_offset", "sym_storage_offset"))
TRACES = 8  # of one signature without sizes: each holds for other sizes


class DynamicCompiled(Compiled):
    """A function that `turnout.compile` returned with `dynamic=True`."""

    def __init__(self, function: Callable[..., Any], engine: str, strict: bool) -> None:
        super().__init__(function, engine, strict)
        self._generals: dict[Any, list[General]] = {}

    def _first(self, walk: Walk, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The first call with these sizes: a trace may hold for them."""
        for general in list(self._generals.get(general_key(walk, sized(walk, args, kwargs, self._code)), ())):
            if general.serves(walk):
                try:
                    program = general.program(walk, self._name, self._engine)
                except NotWorthwhileError as error:
                    self._keep(walk, Entry(walk, None, str(error), False, 0))
                    return self._function(*args, **kwargs)
                except NotLoweredError:
                    break  # the engine does not take it: the call says so
                if not program.may_run(walk.tensors):
                    break
                self._keep(walk, Entry(walk, program, "", False, 0))
                made = program(*walk.found(program.slots))
                return self._function(*args, **kwargs) if made is UNTRUE else made
        return super()._first(walk, args, kwargs)

    def _program(
        self, walk: Walk, capture: Capture, outcomes: Outcomes, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Program:
        at = sized(walk, args, kwargs, self._code)
        known = self._generals.setdefault(general_key(walk, at), [])
        general, why = None, errors.SIZED_KIND if self._code.asks_kinds else errors.TRACED_OFTEN
        if at and len(known) < TRACES:
            try:
                general = General(self._function, walk, capture, outcomes, args, kwargs, at, self._name, self._code)
            except Exception as error:  # noqa: BLE001 - what a trace of symbols does not take has a graph for each size
                why = str(error).partition("\n")[0]
        if general is None:
            program = super()._program(walk, capture, outcomes, args, kwargs)
            program.notes = (*program.notes, f"for this size alone: {why}") if at or self._code.asks_kinds else program.notes
            return program
        try:
            program = general.program(walk, self._name, self._engine)
        except NotWorthwhileError:
            known.append(general)  # which may serve larger sizes
            raise
        known.append(general)
        return program

    def reset(self) -> None:
        """Forget all programs and traces."""
        super().reset()
        self._generals.clear()


def sized(walk: Walk, args: tuple[Any, ...], kwargs: dict[str, Any], code: Code) -> list[int]:
    """Which tensors of a signature may have symbols for sizes: arguments in row-major order that share memory with no other.

    They may be parts of a larger tensor, as batches are, where the function does not ask for that. Those that require a gradient
    or were made in inference mode may not: a fake tensor would say that it is neither.
    """
    if code.asks_kinds:
        return []
    given = {id(leaf) for leaf in trees.flatten((args, kwargs))[0] if type(leaf) is Tensor}
    shared = {i for group in walk.groups for i in group}
    parts = not (code.computed or any(name in ABOUT_MEMORY or name.startswith(STRIDED) for name in code.names))
    return [
        i
        for i, each in enumerate(walk.tensors)
        if id(each) in given
        and i not in shared
        and (parts or (each.view_of is None and (each.storage is None or not each.storage_offset())))
        and any(size > 1 for size in each.shape)
        and each.stride() == contiguous_strides(tuple(each.shape))
        and each.grad is None
        and not (each.gmask or each.is_inference())
    ]


def general_key(walk: Walk, at: Iterable[int]) -> Any:
    """The key without the sizes of some tensors, and where they begin. Sizes 0 and 1 stay: operators treat them apart."""
    chosen = set(at)
    parts: list[Any] = []
    count = 0  # of tensors: each has one part, in their order
    for part in walk.key:
        if type(part) is tuple and part and part[0] is Tensor:
            if count in chosen:
                _, dtype, device, shape, _, keys, gmask, leaf, role, _, is_view = part
                sizes = tuple([size if size < 2 else "n" for size in shape])
                part = (Tensor, dtype, device, sizes, keys, gmask, leaf, role, is_view)
            count += 1
        parts.append(part)
    return tuple(parts)


class Symbolic(Recording):
    """The record of a call on fake tensors with symbols; its values begin with the tensors of the signature."""

    def __init__(self, walk: Walk, first: Capture, mode: Any, fakes: dict[int, Tensor]) -> None:
        super().__init__()
        self._given = list(first.constants)
        self._sizes = SizeRecord(mode)
        self.inputs = [*[fakes.get(i, each) for i, each in enumerate(walk.tensors)], *walk.generators]
        for each in self.inputs:
            self.bind(each)
            self._sizes.bind_input(each)

    def _capture(self, tensor: Tensor) -> Ref:
        """A tensor that was made from data in the call: it has the values of the first call's, which met them in this order."""
        number = len(self.constants)
        if number >= len(self._given) or tensor.fake_mode is None:
            raise NotLoweredError(errors.HIDDEN_TENSOR)
        value = self._given[number].tensor
        if any(map(is_symbol, tensor.shape)) or tuple(tensor.shape) != tuple(value.shape) or tensor.dtype is not value.dtype:
            raise NotLoweredError(errors.SIZED_DATA)
        return self.keep(tensor, value)

    def _admit_write(self, op: Operator, argument: str, tensor: Tensor) -> None:
        if tensor.fake_mode is None:
            raise NotLoweredError(errors.OUTSIDE_WRITTEN)
        self.mark_written(tensor)

    def _warn_of_number(self, op: Operator, args: tuple[Any, ...], result: Any) -> None:
        """Facts about shapes are not values; the first call has refused to read any."""


class General:
    """A trace with symbols.

    sizes   the names of sizes, and what must hold of them
    guards  that as text
    """

    def __init__(
        self, function: Callable[..., Any], walk: Walk, capture: Capture, outcomes: Outcomes, args: tuple[Any, ...],
        kwargs: dict[str, Any], at: list[int], name: str, code: Code,
    ) -> None:  # fmt: skip
        _check(walk, capture, outcomes, at)
        mode = turnout.FakeMode(allow_non_fake_inputs=True)
        fakes = {i: symbolic_like(mode, walk.tensors[i]) for i in at}
        record = Symbolic(walk, capture, mode, fakes)
        returned = _run_again(
            function, walk, args, kwargs, {id(walk.tensors[i]): fake for i, fake in fakes.items()}, record, code
        )
        found = copy(outcomes)
        found.memories = [
            Memory(ref, each.tensor) for ref, each in zip(_results(record, outcomes, returned), outcomes.memories, strict=True)
        ]
        sizes = record.sizes()
        if sizes is None or sizes.births:
            raise NotLoweredError(errors.dynamic("the graph"))
        self._lowered = Lowered(walk, record, found, name, frozenset(at), sizes)
        assert self._lowered.sizes is not None
        self.sizes = self._lowered.sizes
        if None in self.sizes.inputs[: len(self._lowered.bases)]:
            raise NotLoweredError(errors.dynamic("the graph"))
        self.guards = "; ".join(map(str, self.sizes.assumptions))
        self._programs: dict[tuple[int, ...], Program] = {}
        self._outcomes = copy(found)
        self._outcomes.forget()

    def serves(self, walk: Walk) -> bool:
        """Whether the trace holds for the sizes of a call."""
        return self._named(walk) is not None

    def _named(self, walk: Walk) -> dict[str, Any] | None:
        """The sizes of a call by name; None where the trace does not hold for them."""
        tensors = [walk.tensors[i] for i in self._lowered.bases]
        sizes = {name: tensors[i].shape[dim] for name, i, dim in self.sizes.of_inputs()}
        for tensor, shape in zip(tensors, self.sizes.inputs, strict=False):
            for dim, size in enumerate(shape or ()):
                if size is not None and tensor.shape[dim] != (size.value(sizes) if isinstance(size, Formula) else size):
                    return None
        return sizes if all(each.holds(sizes) for each in self.sizes.assumptions) else None

    def program(self, walk: Walk, name: str, engine: str) -> Program:
        """The program of a size. Raises NotLoweredError where the engine does not take it."""
        sizes = self._named(walk)
        assert sizes is not None
        key = tuple(sizes.values())
        known = self._programs.get(key)
        if known is None:
            known = self._programs[key] = self._made(walk, sizes, name, engine)
            if len(self._programs) > LIMIT:
                del self._programs[next(iter(self._programs))]
        return known

    def _made(self, walk: Walk, sizes: dict[str, Any], name: str, engine: str) -> Program:
        graph = self._lowered.graph
        nodes = [Node(each.op, _valued(each.args, sizes), each.outputs, each.no_grad, each.line) for each in graph.nodes]
        lowered = copy(self._lowered)
        own = graph.signature, nodes, list(graph.constants), graph.output, list(graph.results)
        lowered.graph = Graph(graph.name, graph.inputs, *own)
        with turnout.FakeMode():
            of_tensors = [fake_like(walk.tensors[i]) for i in lowered.bases]
        lowered.examples = [*of_tensors, *lowered.examples[len(of_tensors) :]]
        outcomes = copy(self._outcomes)
        outcomes.memories = [
            Memory(each.ref, _row_major(each.tensor, _valued(shape, sizes)))
            for each, shape in zip(outcomes.memories, self._lowered.shapes, strict=True)
        ]
        program = Program(walk, None, outcomes, name, engine, lowered)
        program.sizes = self.guards
        return program


def _row_major(kind: Kind, shape: tuple[int, ...]) -> Kind:
    """The kind of a memory with another shape."""
    return kind._replace(shape=shape, strides=contiguous_strides(shape))


def _check(walk: Walk, capture: Capture, outcomes: Outcomes, at: list[int]) -> None:
    """Raise NotLoweredError for a call that cannot be made again on fake tensors, or whose results a size does not tell."""
    if outcomes.grads or outcomes.slots:
        raise NotLoweredError(errors.OUTSIDE_WRITTEN)
    if GRAD.get()[0] and any(each.gmask for each in walk.tensors):
        raise NotLoweredError(errors.GRADIENTS)
    written = _written(capture.nodes)
    if any(i in written and i not in at for i in range(len(walk.tensors))):
        raise NotLoweredError(errors.OUTSIDE_WRITTEN)
    whole = all(each.view is None for each in outcomes.tensors)
    if not whole or any(m.tensor.stride() != contiguous_strides(tuple(m.tensor.shape)) for m in outcomes.memories):
        raise NotLoweredError(errors.SIZED_VIEW)


def _written(nodes: list[Node]) -> set[int]:
    """The values whose memory is written."""
    roots: dict[int, int] = {}
    found: set[int] = set()
    for node in nodes:
        for argument, value in zip(node.op.schema.arguments, node.args, strict=True):
            for ref in refs_in(value):
                root = roots.get(ref.index, ref.index)
                if argument.is_write:
                    found.add(root)
                elif argument.annotation is not None:  # a view of it
                    roots |= {made.index: root for made in refs_in(node.outputs)}
    return found


def _run_again(
    function: Callable[..., Any], walk: Walk, args: tuple[Any, ...], kwargs: dict[str, Any], fakes: dict[int, Tensor],
    record: Symbolic, code: Code,
) -> Any:  # fmt: skip
    """What the function returns for fake tensors. What it puts into places of the program and leaves there is taken out again."""
    leaves, structure = trees.flatten((args, kwargs))
    given, named = trees.unflatten(structure, [fakes.get(id(leaf), leaf) for leaf in leaves])
    mode = next(iter(fakes.values())).fake_mode
    try:
        with mode:
            returned = during(RECORDING, record, while_tracing, lambda: function(*given, **named))
        after = Walk(function, args, kwargs, code)
        same = after.main_key == walk.main_key and all(a is b for a, b in zip(after.tensors, walk.tensors, strict=False))
        if not same:
            raise NotLoweredError(errors.OUTSIDE_WRITTEN)
    except BaseException:
        for slot in walk.slots:
            put(slot.owner, slot.name, walk.tensors[slot.index])
        raise
    return returned


def _results(record: Symbolic, outcomes: Outcomes, returned: Any) -> list[Ref]:
    """The values that fill the new memories. Raises NotLoweredError where the results are not those of the first call."""
    leaves, structure = trees.flatten(returned)
    if structure != outcomes.structure or len(leaves) != len(outcomes.leaves):
        raise NotLoweredError(errors.SIZED_RESULT)
    tensors: dict[int, Tensor] = {}
    for leaf, known in zip(leaves, outcomes.leaves, strict=True):
        if type(known) is list:
            if type(leaf) is not Tensor or tensors.setdefault(known[0], leaf) is not leaf:
                raise NotLoweredError(errors.SIZED_RESULT)
        elif is_symbol(leaf) or type(leaf) is not type(known) or repr(leaf) != repr(known):
            raise NotLoweredError(errors.SIZED_RESULT)
    refs: dict[int, Ref] = {}
    for number, tensor in tensors.items():
        outcome = outcomes.tensors[number]
        if outcome.is_input:
            if tensor is not record.inputs[outcome.number]:
                raise NotLoweredError(errors.SIZED_RESULT)
        elif tensor.stride() != contiguous_strides(tuple(tensor.shape)):
            raise NotLoweredError(errors.SIZED_VIEW)
        else:
            refs[outcome.number] = record.ref(tensor)
    return [refs[i] for i in range(len(outcomes.memories))]


def _valued(value: Any, sizes: dict[str, Any]) -> Any:
    """An argument with numbers for its formulas."""
    return mapped(lambda each: each.value(sizes) if isinstance(each, Formula) else each, value)
