"""The fallback at Tracer, and `trace`.

The one idea: a call is recorded where its key set is about to go below Autograd. A tracked call is first let through to its
Autograd kernel with Tracer still in the key set, so that everything this kernel does is recorded in its turn: the call itself,
what it computes for its own backward, and for a composite the operators that it consists of. Were the call recorded above it,
what backward needs of those would be constants of the graph. A tensor is known by its handle, or by its array where a
saved result comes back under another handle.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from turnout.devices import device
from turnout.errors.plugins import warn
from turnout.explanation.user_frames import user_frame
from turnout.guards import during
from turnout.keys import KEYS, TRACKED
from turnout.operators.tracebacks import shortening_as
from turnout.operators.values import is_symbol, tensors_in
from turnout.plugins import effect, is_ours
from turnout.state import BELOW_AUTOGRAD, StateChange, current
from turnout_aten.tensor.devices import TensorDevice
from turnout_aten.tensor.levels import CLOCK, GRAD, LEVELS
from turnout_aten.tensor.random import Generator
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer import errors
from turnout_tracer.graph import Graph
from turnout_tracer.nodes import Constant, Node, Ref
from turnout_tracer.sizes import Formula, SizeRecord, Sizes
from turnout_tracer.structures import VALUE, Nested, places_in, take_apart

if TYPE_CHECKING:
    from typing import ParamSpec

    from turnout.explanation.user_frames import UserFrame
    from turnout.operators import Operator

    P = ParamSpec("P")

TRACER = KEYS.bit("Tracer")
_BELOW, _TRACING = StateChange(excludes=TRACER), StateChange(includes=TRACER, lifts=TRACER)
UNSEEN = StateChange(drops=-1, excludes=TRACER)  # no trace records what runs in it, whatever modes are active

RECORDING: ContextVar[Recording | None] = ContextVar("turnout_tracer.recording", default=None)


def record(op: Operator, ks: int, args: tuple[Any, ...]) -> Any:
    """The fallback of every operator at Tracer."""
    recording = RECORDING.get()
    if recording is None:  # the state includes the key, by a guard and not by a trace
        return _below(op, ks, args)
    if ks & ~BELOW_AUTOGRAD and ks & TRACKED and GRAD.get()[0] and recording.goes_above(op, ks):
        recording.entered.append((op, recording.is_off()))
        try:
            return op.lookup(ks & ~TRACER)(ks, *args)
        finally:
            recording.entered.pop()
    arguments = recording.arguments(op, args)
    off = recording.is_off()
    if recording.entered and recording.entered[-1][0] is op:
        off = recording.entered[-1][1]  # a gradient rule runs its own operator with gradients off
    result = _below(op, ks, args)
    recording.add(op, args, arguments, result, off)
    return result


def _below(op: Operator, ks: int, args: tuple[Any, ...]) -> Any:
    ks &= ~TRACER
    return _BELOW.run(op.lookup(ks), ks, *args)


def while_tracing(function: Callable[[], Any]) -> Any:
    """`function()` where calls come to Tracer."""
    return _TRACING.run(function)


def _asked_line() -> UserFrame | None:
    """The user's line, where a functionality is on that asks for it. While its own kernel runs, it may be excluded."""
    return user_frame() if current()[0] & KEYS.asking_lines else None


class Recording:
    """A graph in the making.

    entered  the tracked calls that are in their Autograd kernels now, innermost last, and whether gradients were off there
    """

    admits_traces = False  # whether others may begin while this one is recorded, which misses what they run

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.constants: list[Constant] = []
        self.entered: list[tuple[Operator, bool]] = []
        self._epoch = CLOCK.advance()  # tensors made from here on are younger
        self._grad = GRAD.get()[0] & 1
        self._count = 0
        self._names: dict[int, Ref] = {}
        self._arrays: dict[int, Ref] = {}
        self._alive: list[Any] = []  # while an object lives, its id is its own
        self._captured: list[tuple[Tensor, Constant]] = []
        self._routes: dict[tuple[Operator, int], bool] = {}
        self._sizes: SizeRecord | None = None

    # ---- sizes

    def bind_sizes(self, inputs: list[Any]) -> None:
        """Note the sizes of inputs, if any is a fake tensor."""
        fakes = [each for each in inputs if isinstance(each, Tensor) and each.fake_mode is not None]
        if fakes:
            self._sizes = SizeRecord(fakes[0].fake_mode)
            for each in inputs:
                self._sizes.bind_input(each)

    def sizes(self) -> Sizes | None:
        """The sizes of the graph; None where all are those of the traced inputs, unchecked."""
        return None if self._sizes is None else self._sizes.finished()

    def formula(self, size: Any) -> Any:
        """A size that is a symbol, as the graph computes it."""
        if self._sizes is None:
            raise errors.TraceError(errors.unknown_size(str(size), size.symbols[0]))
        return self._sizes.formula(size)

    # ---- values

    def bind(self, value: Any) -> Ref:
        """A new number for a tensor or generator, which goes by it from now on."""
        ref = Ref(self._count)
        self._count += 1
        self._names[id(value)] = ref
        self._alive.append(value)
        if isinstance(value, Tensor):
            self._alive.append(value.array)
            self._arrays.setdefault(id(value.array), ref)
        return ref

    def known(self, value: Any) -> Ref | None:
        """The number of a value, or None for one from outside."""
        found = self._names.get(id(value))
        if found is None and isinstance(value, Tensor):
            found = self._arrays.get(id(value.array))
        return found

    def ref(self, tensor: Tensor) -> Ref:
        """The number of a tensor; one from outside becomes a constant."""
        return self.known(tensor) or self._capture(tensor)

    def result(self, value: Any) -> Any:
        """What the graph returns in the place of a tensor, a generator or a size."""
        return self.formula(value) if is_symbol(value) else self.ref(value)

    def _capture(self, tensor: Tensor) -> Ref:
        if tensor.fake_mode is not None:
            raise errors.TraceError(errors.fake_constant())
        # A tensor from outside may share memory with a constant, for none is written, but not with an input.
        if not any(captured.is_alias_of(tensor) for captured, _ in self._captured) and self.shares(tensor):
            raise errors.TraceError(errors.captured_view())
        ref = self.keep(tensor)
        self._captured.append((tensor, self.constants[-1]))
        return ref

    def shares(self, tensor: Tensor) -> bool:
        """Whether a tensor shares memory with one that was met."""
        return tensor.storage is not None and any(isinstance(each, Tensor) and each.is_alias_of(tensor) for each in self._alive)

    def keep(self, tensor: Tensor, value: Tensor | None = None) -> Ref:
        """Make a tensor a constant, with a copy of its values, or with the value that is given."""
        ref = self.bind(tensor)
        if value is None:
            value = during(GRAD, (0, GRAD.get()[1]), UNSEEN.run, lambda: tensor.detach().clone())
        self.constants.append(Constant(ref, value))
        return ref

    def mark_written(self, tensor: Tensor) -> None:
        """Note that a call writes into a tensor, which may be a constant."""
        for constant in self.constants:
            constant.written = constant.written or constant.ref == self.known(tensor)

    # ---- calls

    def is_off(self) -> bool:
        """Whether gradients were on when the trace began and are off now."""
        return bool(self._grad) and not GRAD.get()[0] & 1

    def goes_above(self, op: Operator, ks: int) -> bool:
        """Whether the call goes to a kernel above ADInplaceOrView: Autograd's, or that of a functionality on its way there."""
        found = self._routes.get((op, ks))
        if found is None:
            functionality = op.plan(ks & ~TRACER).functionality
            names = [f.name for f in KEYS.functionalities]
            found = functionality is not None and names.index(functionality.name) > names.index("ADInplaceOrView")
            self._routes[op, ks] = found
        return found

    def arguments(self, op: Operator, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a node holds of a call's arguments. Raises TraceError for a write into a tensor from outside."""
        found = tuple([self._argument(a) for a in args])
        for argument, value in zip(op.schema.arguments, args, strict=True):
            if argument.is_write:
                for tensor in tensors_in((value,)):
                    self._admit_write(op, argument.name, tensor)
        return found

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.ref(value)
        if isinstance(value, Generator):
            return self.known(value) or value
        if isinstance(value, list):
            return [self._argument(each) for each in value]
        if isinstance(value, tuple):
            return tuple([self._argument(each) for each in value])
        if is_symbol(value):
            return self.formula(value)
        if isinstance(value, TensorDevice) and value.backend.fake_mode is not None:
            return device(value.type, value.index)
        return value

    def _admit_write(self, op: Operator, argument: str, tensor: Tensor) -> None:
        for captured, constant in self._captured:
            if captured.is_alias_of(tensor):
                if captured.version() < self._epoch:
                    raise errors.TraceError(errors.captured_written(op.qualified_name, argument))
                constant.written = True

    def add(self, op: Operator, args: tuple[Any, ...], arguments: tuple[Any, ...], result: Any, off: bool) -> None:
        """Add a call that ran."""
        makes_tensors = next(tensors_in(_listed(result)), None) is not None
        if not makes_tensors and not op.schema.is_mutable:
            if is_symbol(result):
                self._add_number(op, arguments, result, off)
            else:
                self._warn_of_number(op, args, result)
            return
        written = {id(t) for a, v in zip(op.schema.arguments, args, strict=True) if a.is_write for t in tensors_in((v,))}
        if isinstance(result, Tensor) and next(tensors_in(args), None) is None:
            arguments = tuple(
                [self._argument(a) if isinstance(a, TensorDevice) else a for a in _on_device(op, arguments, result)]
            )
        self.nodes.append(Node(op, arguments, self._outputs(result, written), off, _asked_line()))

    def _outputs(self, result: Any, written: set[int]) -> Any:
        """New numbers for what came out. A tensor that was written keeps its own."""
        if isinstance(result, Tensor):
            if id(result) in written:
                return None
            ref = self.bind(result)
            if self._sizes is not None:
                self._sizes.bind_output(len(self.nodes), ref, result)
            return ref
        if isinstance(result, list):
            return [self._outputs(each, written) for each in result]
        if isinstance(result, tuple):
            return tuple([self._outputs(each, written) for each in result])
        return None

    def _add_number(self, op: Operator, arguments: tuple[Any, ...], result: Any, off: bool) -> None:
        """Add a call that returned a size, if replays need it to know the size."""
        named = None if self._sizes is None else self._sizes.bind_number(len(self.nodes), result)
        if named is not None:
            self.nodes.append(Node(op, arguments, named, off))

    def _warn_of_number(self, op: Operator, args: tuple[Any, ...], result: Any) -> None:
        constants = {constant.ref for constant in self.constants}
        if any(self.known(t) not in constants for t in tensors_in(args) if isinstance(t, Tensor)):
            warn(errors.became_number(op.qualified_name, result), is_ours, errors.TraceWarning)


def _listed(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (list, tuple)) else (result,)


def _on_device(op: Operator, arguments: tuple[Any, ...], result: Tensor) -> tuple[Any, ...]:
    """A factory that was told no device made its tensor on the default one; the graph says which that was."""
    return tuple(
        result.device if a.name == "device" and value is None else value
        for a, value in zip(op.schema.arguments, arguments, strict=True)
    )


# ---- trace


def is_tracing() -> bool:
    """Whether a trace is being recorded in this context.

    Example:
        >>> turnout.graphs.is_tracing()
        False
    """
    return RECORDING.get() is not None


def trace(function: Callable[P, Any], *, replay: str = "") -> Callable[P, Graph]:
    """`trace(f)(*inputs)` runs f once and returns the graph of the operators that it called.

    Those of backward are included, and custom ones. Inputs and results are tensors (and generators), nested in lists, tuples
    and dicts, beside other values, which are constants of the graph; so is what the function computes without operators:
    sizes, `item()` (with a TraceWarning), `tolist()`. Tensors from outside are copied into the graph, without their
    gradients. Writes into inputs are part of the graph; those into tensors from outside raise TraceError, as do an input
    given twice, a trace inside another one, and one inside vmap.

    Inputs may be fake tensors. Sizes of theirs that are symbols are in each replay those of its inputs. A replay raises
    TraceError where sizes are such that the function, traced with them, would have decided otherwise.

    Arguments:
        function: the function
        replay: how calls of the graph run its operators: "" one by one, else a way that the device of the inputs offers, such
            as "cuda_graph"

    Example:
        >>> graph = turnout.trace(lambda x: x + 1)(turnout.tensor([1]))
        >>> graph(turnout.tensor([2]))
        tensor([3])
    """

    @shortening_as(function)
    def traced(*args: Any, **kwargs: Any) -> Graph:
        if LEVELS.get():
            raise errors.TraceError(errors.inside_vmap())
        effect("turnout.trace()")
        outside = RECORDING.get()
        if outside is not None and not outside.admits_traces:
            raise errors.TraceError(errors.nested())
        recording = Recording()
        names: list[str] = []
        signature = _bind_inputs(recording, function, args, kwargs, names)
        returned = during(RECORDING, recording, while_tracing, lambda: function(*args, **kwargs))
        results: list[Ref | Formula] = []
        output = take_apart(returned, lambda value: results.append(recording.result(value)), symbols=True)
        _check_output(output)
        name = getattr(function, "__name__", "graph")
        name = name if name.isidentifier() and not iskeyword(name) else "graph"
        made = Graph(name, tuple(names), signature, recording.nodes, recording.constants, output, results, recording.sizes())
        made.replay = replay
        return made

    return traced


def _bind_inputs(recording: Recording, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], names: list[str]) -> Nested:
    """Number the tensors among the inputs and name them after the function's parameters."""
    positional = _parameters(function, len(args))
    values: list[Any] = []
    signature = take_apart([args, kwargs], values.append)
    named = zip(places_in(signature.structure), signature.leaves, strict=True)
    places = [place for place, leaf in named if leaf is VALUE]
    for value, place in zip(values, places, strict=True):
        kind, _, keys = place.partition("[")
        first, *rest = [key.strip("'") for key in keys[:-1].split("][")]
        name = "_".join([positional[int(first)] if kind == "args" else first, *rest])
        name = name if name.isidentifier() and not iskeyword(name) and name not in names else f"x{len(names)}"
        for i, other in enumerate(values[: len(names)]):
            if other is value:
                raise errors.TraceError(errors.given_twice(names[i], name))
        recording.bind(value)
        names.append(name)
    recording.bind_sizes(values)
    return signature


def _parameters(function: Any, count: int) -> list[str]:
    """Names for positional arguments: those of the signature, x0, x1, ... where there are none."""
    from inspect import Parameter, signature

    try:
        found = signature(function).parameters.values()
    except (TypeError, ValueError):
        found = ()  # type: ignore[assignment]
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in found if p.kind in kinds][:count]
    return names + [f"x{i}" for i in range(len(names), count)]


def _check_output(output: Nested) -> None:
    for leaf in output.leaves:
        if leaf is not VALUE and not isinstance(leaf, (bool, int, float, complex, str, type(None))):
            raise errors.TraceError(errors.not_an_output(leaf))
