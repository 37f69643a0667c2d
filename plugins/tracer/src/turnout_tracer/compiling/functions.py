"""The compiled function: it finds the program of a call by its signature, or makes one, or runs the function as it is."""

from __future__ import annotations

import warnings
from collections import deque
from functools import update_wrapper
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from turnout.config.lock import new_lock
from turnout.config.tuples import NamedTuple
from turnout.state import is_fresh
from turnout_aten.tensor.levels import GRAD, LEVELS
from turnout_aten.tensor.tensor import Tensor
from turnout_tracer.compiling import errors
from turnout_tracer.compiling.capture import Capture
from turnout_tracer.compiling.errors import NotLoweredError, NotWorthwhileError
from turnout_tracer.compiling.outcomes import Outcomes
from turnout_tracer.compiling.programs import UNTRUE, Program
from turnout_tracer.compiling.reach import Code
from turnout_tracer.compiling.signatures import Walk, place_text
from turnout_tracer.graph import Graph

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 64  # signatures of a function
FIRST_USES = 8  # calls of a signature that may change Python objects, each another one, before that is said
GUARDS = 4  # guards of a signature, one after the other
FUNCTIONS: WeakSet[Compiled] = WeakSet()
_LOCK = new_lock()


class Entry:
    """What is known of one signature: its program, or why there is none, and whether that is a fault of which a warning tells.

    guard     what tells without a walk that a call has this signature; None until the second call, and where there is none
    is_small  whether its engine leaves it to eager calls; the guard then asks of tensors for nothing but their shapes
    slots     places that the program gives other tensors
    used      when it was used last, for the order in which signatures are dropped
    changed   calls that changed Python objects
    """

    __slots__ = ("changed", "guard", "guards", "is_fault", "is_small", "keep", "key", "places", "program", "slots", "used", "why")

    def __init__(
        self, walk: Walk, program: Program | None, why: str, is_fault: bool, changed: int, is_small: bool = False
    ) -> None:
        self.program = program
        self.why = why
        self.changed = changed
        self.is_fault = is_fault
        self.is_small = is_small
        self.key = walk.key
        self.places = walk.places
        self.keep = walk.keep
        self.slots = [] if program is None else program.slots
        self.guard: Callable[[tuple[Any, ...], dict[str, Any]], Any] | None = None
        self.guards = 0
        self.used = 0

    def guarded_by(self, walk: Walk) -> None:
        """Make the guard, from a walk that found this signature. A guard that fails for it is made anew, a few times."""
        if self.guards < GUARDS:
            self.guards += 1
            self.guard = walk.guard_of_sizes() if self.is_small else walk.guard(self.slots)


class Signature(NamedTuple):
    """What is known of one signature of a compiled function, as `turnout.compiler.signatures` returns it.

    guards    what a call must have to be of this signature, in lines
    why       why its calls run eagerly, or ""
    engine    the engine of its graph, or ""
    calls     how often the compiled graph ran
    sizes     of a trace with symbols: what must hold of the sizes that it serves
    notes     what the engine says of the compiled graph, in lines
    recorded  the graph before it was optimised, or None
    graph     the graph that the engine was given, or None
    """

    guards: tuple[str, ...]
    why: str
    engine: str
    calls: int
    sizes: str
    notes: tuple[str, ...]
    recorded: Graph | None
    graph: Graph | None

    @property
    def lines(self) -> list[str]:
        """It as text."""
        lines = [f"  guard   {guard}" for guard in self.guards]
        if self.graph is None or self.recorded is None:
            return [*lines, f"  eager   {self.why}"]
        lines.append(f"  engine  {self.engine}, {self.calls} calls")
        lines += [f"  sizes   of a trace that holds where {self.sizes}"] if self.sizes else []
        lines += [f"  note    {note}" for note in self.notes]
        lines.append(f"  graph   {len(self.graph.nodes)} operators, {len(self.recorded.nodes)} before it was optimised")
        return lines + [f"    {line}" for line in self.graph.code.rstrip().splitlines()]


class Compiled:
    """A function that `turnout.compile` returned. Called, it does what the function does."""

    def __init__(self, function: Callable[..., Any], engine: str, strict: bool) -> None:
        update_wrapper(self, function)
        self._function = function
        self._engine = engine
        self._strict = strict
        self._code = Code()
        self._name = getattr(function, "__qualname__", type(function).__name__).rpartition(".")[2]
        self._name = self._name if self._name.isidentifier() else "function"
        self.entries: dict[Any, Entry] = {}
        self.warned: set[str] = set()
        self._refused: dict[str, None] = {}  # why calls have no signature
        # What calls that changed Python objects have left: the key then, why they are not compiled, what its numbers are of.
        self._left: deque[tuple[Any, str, list[Any]]] = deque(maxlen=LIMIT)
        self._recent: tuple[Entry, ...] = ()  # those with a guard, the last one used first
        self._calls = 0
        self.__turnout_own__ = frozenset(vars(self)) - frozenset(getattr(function, "__dict__", ()))
        FUNCTIONS.add(self)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @property
    def __turnout_compiled__(self) -> Callable[..., Any]:
        """The function itself."""
        return self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self._function
        if not is_fresh() or LEVELS.get() or GRAD.get()[1] != 1:
            return function(*args, **kwargs)  # something watches the operators: it sees those of the function
        for entry in self._recent:
            guard = entry.guard
            found = None if guard is None else guard(args, kwargs)
            if found is not None:
                break
        else:
            walk = Walk(function, args, kwargs, self._code)
            if walk.reason:
                self._refused[walk.reason] = None
                self._tell(walk.reason)
                return function(*args, **kwargs)
            known = self.entries.get(walk.key)
            if known is None or known.changed:
                return self._first(walk, args, kwargs)
            entry = known
            entry.guarded_by(walk)
            found = walk.found(entry.slots)
        recent = self._recent
        if not recent or recent[0] is not entry:
            self._recent = (entry, *[each for each in recent if each is not entry])
        self._calls = entry.used = self._calls + 1
        program = entry.program
        if program is not None and program.may_run(found[0]):
            made = program(*found)
            return function(*args, **kwargs) if made is UNTRUE else made  # the function raises what is wrong
        if entry.is_fault:
            self._tell(entry.why)
        return function(*args, **kwargs)

    def _first(self, walk: Walk, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The first call with a signature: it runs eagerly, and what ran is compiled."""
        capture = Capture(walk, self._name, self._strict)
        returned = capture.run(self._function, args, kwargs)
        program, after, left = None, None, ""
        if not capture.reason or capture.changed:
            after = Walk(self._function, args, kwargs, self._code)
        if not capture.reason and after is not None:
            outcomes = Outcomes(walk, after, returned, capture)
            if not capture.reason:
                try:
                    make = self._differentiable if outcomes.records else self._program
                    program = make(walk, capture, outcomes, args, kwargs)
                except NotWorthwhileError as error:
                    left = str(error)
                except NotLoweredError as error:
                    capture.refuse(str(error), line=False)
                except errors.CompileError:
                    raise
                except errors.RecordsError:
                    capture.reason = errors.RECORDS
                except Exception as error:  # noqa: BLE001 - an operator without a fake kernel, or a functional form
                    capture.refuse(errors.not_functional(error), line=False)
        earlier = self.entries.get(walk.key)
        changed = capture.changed + (0 if earlier is None else earlier.changed)
        fault = capture.reason not in ("", errors.RECORDS)
        self._keep(walk, Entry(walk, program, capture.reason or left, fault, changed if capture.changed else 0, left != ""))
        if capture.changed and after is not None:
            # The first use of an object may make its state. A call that changes what such a call has left does so each time.
            again = any(walk.main_key == key and capture.reason == why for key, why, _ in list(self._left))
            self._left.append((after.main_key, capture.reason, after.keep))
            if again or changed > FIRST_USES:
                self._tell(capture.reason, 4)
        elif fault:
            self._tell(capture.reason, 4)
        return returned

    def _program(
        self, walk: Walk, capture: Capture, outcomes: Outcomes, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Program:
        """The program of what ran."""
        return Program(walk, capture, outcomes, self._name, self._engine)

    def _differentiable(
        self, walk: Walk, capture: Capture, outcomes: Outcomes, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Program:
        """The program of what ran and recorded. Raises RecordsError where the function has to record itself."""
        from turnout_tracer.compiling.gradients import Differentiable

        try:
            return Differentiable(walk, capture, outcomes, self._name, self._engine)
        except (errors.CompileError, NotLoweredError, NotWorthwhileError):
            raise
        except Exception as error:
            raise errors.RecordsError from error

    def _keep(self, walk: Walk, entry: Entry) -> None:
        with _LOCK:
            known = self.entries.get(walk.key)
            if known is not None and known.program is not None:
                return  # another thread was first: its program, guard and count stay
            last = max(self.entries.values(), key=lambda each: each.used, default=None)
            self.entries[walk.key] = entry
            self._calls = entry.used = self._calls + 1
            full = len(self.entries) > LIMIT
            if full:
                dropped = min(self.entries.values(), key=lambda each: each.used)
                del self.entries[dropped.key]
                self._recent = tuple([each for each in self._recent if each is not dropped])
        if full and last is not None and "" not in self.warned:
            self.warned.add("")
            at = next((i for i, (a, b) in enumerate(zip(last.key, walk.key, strict=False)) if a != b), len(walk.places) - 1)
            guard = place_text(walk.places[at]) or "the mode"
            warnings.warn(errors.too_many(self._name, LIMIT, guard), errors.CompileWarning, stacklevel=4)

    def _tell(self, why: str, level: int = 3) -> None:
        """Warn once of each reason, or raise."""
        if self._strict:
            raise errors.CompileError(errors.not_compiled(self._name, why))
        if why not in self.warned:
            self.warned.add(why)
            warnings.warn(errors.runs_eagerly(self._name, why), errors.CompileWarning, stacklevel=level)

    def signatures(self) -> list[Signature]:
        """What is known of its signatures, the one used longest ago first, and of calls that have none."""
        found = [Signature((), why, "", 0, "", (), None, None) for why in list(self._refused)]
        for key, entry in sorted(self.entries.items(), key=lambda item: item[1].used):
            guards = tuple([f"{place_text(place)}: {_shown(part)}" for part, place in zip(key, entry.places, strict=False)])
            program = entry.program
            if program is None:
                found.append(Signature(guards, entry.why, "", 0, "", (), None, None))
            else:
                facts = program.engine, program.calls, program.sizes, program.notes, program.recorded, program.graph
                found.append(Signature(guards, "", *facts))
        return found

    def explained(self) -> str:
        """The text of `turnout.compiler.explain`."""
        found = self.signatures()
        lines = [f"{self._name}: {len(found)} signature{'' if len(found) == 1 else 's'}"]
        for number, signature in enumerate(found, 1):
            lines += [f"signature {number}", *signature.lines]
        return "\n".join(lines)

    def reset(self) -> None:
        """Forget all programs."""
        with _LOCK:
            self.entries.clear()
            self._recent = ()
            self.warned.clear()
            self._left.clear()
            self._refused.clear()
            self._code = Code()


def _shown(part: Any) -> str:
    """A part of a key for people."""
    if isinstance(part, tuple) and part and part[0] is Tensor:
        _, dtype, device, shape, strides, _, tracked, leaf, *_ = part
        recording = ", requires_grad" + ("" if leaf else ", not a leaf") if tracked else ""
        return f"tensor {dtype.name} {list(shape)}, strides {list(strides)}, on {device}{recording}"
    if isinstance(part, tuple) and part and part[0] is Graph:
        return "a graph, its calls"
    if isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], type):
        if part[0] is FunctionType:
            return "its code"
        return f"{part[0].__name__} {part[1]!r}" if part[1] is not None else "None"
    return str(part)
