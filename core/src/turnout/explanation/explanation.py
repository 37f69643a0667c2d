"""`explain`: why a call would run its kernel, from the plan that the call itself would make.

Nothing here decides. The key set comes from the arguments and the state, every step from `Operator.plan`. When a kernel would
redispatch, the next plan is made for the key set that it would use. No kernel is called.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from turnout import config
from turnout.devices import default_device, device
from turnout.errors import CallError, OverloadError, TurnoutError, UnknownOperatorError, printed
from turnout.errors import calls as texts
from turnout.errors.registry import quoted
from turnout.explanation.html import table
from turnout.keys import Functionality
from turnout.operators import Operator, Packet
from turnout.operators.kernels import ARRAY, Kernel
from turnout.operators.missing import remedy
from turnout.operators.path import path
from turnout.operators.stubs import passed_on
from turnout.operators.tracebacks import shortening
from turnout.operators.values import keys_of
from turnout.registry import REGISTRY, Registry
from turnout.registry.namespaces import ops
from turnout.state import current, in_effect
from turnout.table import AMBIGUOUS, CHOSEN, DISABLED, MISSING, Plan
from turnout.table import Step as PlanStep


@dataclass(frozen=True)
class Argument:
    """One argument: its name, its value in words, and the keys that it brings, highest priority first."""

    name: str
    value: str
    keys: list[str]


@dataclass(frozen=True)
class State:
    """What the context adds to the keys of the arguments and removes from them, and what plugins note about the context."""

    added: list[str]
    removed: list[str]
    notes: list[str]


@dataclass(frozen=True)
class Step:
    """One step of a plan.

    verdict   the outcome: "chosen", "fallthrough", "missing", ... (`turnout.operators`)
    reason    the word of the computed table for the entry, "" when there is none
    at        the key at which the kernel was registered: the key itself or an alias
    kernel    the kernel's name; `distribution`, `version` and `source` (`file:line`) say where it is from
    note      where a disabled key was disabled, how to get a missing one, which setting prefers the kernel, and of one that
              serves some arguments by the operator's composite kernel, whether it does so for these
    path      of a kernel on arrays: which path serves the call there, and why ("compiled: kept plan")
    """

    key: str
    verdict: str
    reason: str = ""
    at: str = ""
    kernel: str = ""
    form: str = ""
    distribution: str = ""
    version: str = ""
    source: str = ""
    note: str = ""
    path: str = ""

    def __str__(self) -> str:
        if not self.kernel:
            return self.verdict + (f" ({self.note})" if self.note else "")
        where = ", ".join(part for part in (f"{self.distribution} {self.version}".strip(), self.source) if part)
        at = f", registered at {self.at}" if self.at != self.key else ""
        verdict = "" if self.verdict in (CHOSEN, self.kernel) else f"{self.verdict}: "
        return f"{verdict}{self.kernel} [{self.reason}{at}] ({where})" + (f" {self.note}" if self.note else "")


@dataclass(frozen=True)
class Hop:
    """A key set, and the steps from its highest key to the one that is chosen or missing."""

    keys: list[str]
    steps: list[Step]

    @property
    def end(self) -> Step:
        return self.steps[-1]


@dataclass(frozen=True)
class Explanation:
    """Why a call runs its kernel. str() is for people, `to_dict()` for JSON.

    `hops[0]` is the call itself. Each further hop is the redispatch that the kernel before it would make.
    """

    operator: str
    schema: str
    arguments: list[Argument]
    state: State
    hops: list[Hop] = field(default_factory=list)

    @property
    def chosen(self) -> Step:
        """The last step of the call's own look-up."""
        return self.hops[0].end

    @property
    def path(self) -> list[Step]:
        """The last step of every hop: the kernels that run, one below the other."""
        return [hop.end for hop in self.hops]

    def to_dict(self) -> dict[str, Any]:
        """The explanation as data for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [self.schema, "arguments"]
        width = max((len(a.name) for a in self.arguments), default=0)
        values = max((len(a.value) for a in self.arguments), default=0)
        for argument in self.arguments:
            keys = f"  brings {', '.join(argument.keys)}" if argument.keys else ""
            lines.append(f"  {argument.name:<{width}}  {argument.value:<{values if keys else 0}}{keys}")
        lines += ["state", f"  added    {', '.join(self.state.added) or 'nothing'}"]
        lines += [f"  removed  {', '.join(self.state.removed) or 'nothing'}", *(f"  {note}" for note in self.state.notes)]
        for i, hop in enumerate(self.hops):
            title = "next, if it redispatches: " if i else "keys: "
            lines.append(f"{title}{', '.join(hop.keys) or 'none'}")
            width = max(len(step.key) for step in hop.steps)
            for step in hop.steps:
                lines.append(f"{'->' if step is hop.end else '  '} {step.key:<{width}}  {step}")
            if hop.end.path:
                lines.append(f"   path  {hop.end.path}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        arguments = [(a.name, a.value, ", ".join(a.keys)) for a in self.arguments]
        parts = [table(("argument", "value", "brings"), arguments, self.schema)]
        state = [("added", ", ".join(self.state.added) or "nothing"), ("removed", ", ".join(self.state.removed) or "nothing")]
        parts.append(table(("state", ""), [*state, *(("note", note) for note in self.state.notes)]))
        for i, hop in enumerate(self.hops):
            steps = [(step.key, str(step)) for step in hop.steps]
            title = f"{'next, if it redispatches: ' if i else 'keys: '}{', '.join(hop.keys) or 'none'}"
            parts.append(table(("key", "kernel"), steps, title, len(steps) - 1))
        return "".join(parts)


@shortening
def explain(op: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Say which kernel `op(*args, **kwargs)` would run in the present state, and why. Calls no kernel.
    Raises UnknownOperatorError for an unknown name, CallError or OverloadError for arguments that the operator does not take.

    Arguments:
        op: an operator, a packet, a public function such as `turnout.add`, a Tensor method, or a name: "mylib::add.Tensor"
        args: the positional arguments of the call
        kwargs: the keyword arguments of the call

    Example:
        >>> turnout.explain("add", turnout.ones(2), 1).chosen.key
        'CPU'
    """
    target = find(op)
    if isinstance(target, Packet):
        target, values = _chosen(target, args, dict(kwargs))
    else:
        values = target.bind(args, kwargs)
    return _explained(target, values)


def find(op: Any) -> Operator | Packet:
    """The operator or packet that `op` stands for. The plugins of its namespace are activated.

    Raises UnknownOperatorError for an unknown name, TypeError for a value that does not stand for an operator.
    """
    if isinstance(op, (Operator, Packet)):
        return op
    if isinstance(op, str):
        return _named(op)
    for found in (getattr(op, "operator", None), getattr(op, "packet", None)):
        if isinstance(found, (Operator, Packet)):
            return found
    # A stub has its operator's whole name; other functions of an operator say which.
    name = str(getattr(op, "operator_name", None) or getattr(op, "__qualname__", ""))
    if "::" in name:
        return _named(name)
    raise CallError(f"explain: expected an operator, a function of an operator or a name such as 'mylib::add', got {printed(op)}")


def _named(name: str) -> Operator | Packet:
    """The operator or packet of a name. Without a namespace, all namespaces are searched in alphabetical order."""
    namespace, _, rest = name.rpartition("::") if "::" in name else ("", "", name)
    packet_name, _, overload = rest.partition(".")
    for each in [namespace] if namespace else dir(ops):
        try:
            packet = getattr(getattr(ops, each), packet_name)
        except TurnoutError:  # no such name there, or a broken plugin
            continue
        return getattr(packet, overload) if overload else packet  # type: ignore[no-any-return]
    return REGISTRY.find(name)


def _chosen(packet: Packet, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Operator, tuple[Any, ...]]:
    """The overload and all its arguments, for any form in which public functions can be called."""
    if kwargs.get("out", 0) is None:
        del kwargs["out"]
    spellings = [(args, kwargs)]
    if "input" in kwargs:
        spellings.append((args, {("self" if name == "input" else name): value for name, value in kwargs.items()}))
    if args and all(isinstance(value, int) for value in args):
        spellings.append(((args,), kwargs))
    problems: list[TurnoutError] = []
    for positional, keywords in spellings:
        try:
            op = packet.choose(*positional, **keywords)
            return op, op.bind(positional, keywords)
        except (OverloadError, CallError) as error:
            problems.append(error)
    raise problems[0]


def _explained(op: Operator, args: tuple[Any, ...]) -> Explanation:
    if not op.is_defined:
        raise UnknownOperatorError(texts.gone(op.qualified_name))
    registry = op.registry
    include, brought = current()[0], keys_of(args)
    ks = in_effect(brought)
    arguments = [_argument(registry, a.name, value) for a, value in zip(op.schema.arguments, args, strict=True)]

    def explained() -> Explanation:
        state = _state(registry, brought, ks, include)
        return Explanation(op.qualified_name, str(op.schema), arguments, state, _hops(op, ks, args))

    return op.settled(explained)


def _argument(registry: Registry, name: str, value: Any) -> Argument:
    bits = keys_of((value,))
    several = isinstance(value, (list, tuple)) and bits
    words = f"[{', '.join(map(texts.describe, value))}]" if several else texts.describe(value)
    return Argument(name, words, registry.keys.names(bits))


def _state(registry: Registry, brought: int, ks: int, include: int) -> State:
    keys = registry.keys
    added = [f for f in reversed(keys.functionalities) if (include & f.bit and not brought & f.bit) or include & f.switch]
    wanted = [f for f in reversed(keys.functionalities) if (brought | include) & f.bit]
    removed = [f for f in wanted if not f.takes_part(ks)]
    setting = config.current_store().value("keys.enable")

    def added_by(f: Functionality) -> str:
        return f" (keys.enable, {setting.origin})" if not {f.name, f.family}.isdisjoint(setting.value) else ""

    return State(
        [f.name + (added_by(f) or (" (switched on)" if include & f.switch else "")) for f in added],
        [f.name + (" (off by default)" if ks & f.bit else "") for f in removed],
        [note for note in (describe() for describe in registry.context_notes) if note],
    )


def _hops(op: Operator, ks: int, args: tuple[Any, ...]) -> list[Hop]:
    """The call's plan, and the plan of each redispatch below."""
    active = op.registry.keys.active
    plans = path(op, ks, lambda: _selected(op, args))
    return [Hop([key for key, _ in active(plan.ks)], [_step(op, plan, step, args) for step in plan.steps]) for plan in plans]


def _selected(op: Operator, args: tuple[Any, ...]) -> int:
    """The bits of the device's backend, which BackendSelect adds to the calls of operators without tensors."""
    if op.schema.takes_tensors:
        return 0
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if str(argument.type).rstrip("?") == "Device":
            place = default_device() if value is None else device(value)
            try:
                return op.registry.keys.bit("Dense") | op.registry.keys.backend_bit(place.backend.name)
            except TurnoutError:
                return 0
    return 0


def _step(op: Operator, plan: Plan, step: PlanStep, args: tuple[Any, ...]) -> Step:
    entry = step.entry
    note = ""
    if step.verdict == DISABLED:
        note = f"keys.disable, {config.origin('keys.disable')}"
    elif step.verdict == MISSING:
        note = remedy(op, plan, args).removesuffix("; ")
        if not note and plan.functionality is None:
            note = "no argument is a tensor" if not keys_of(args) else "no key of the arguments is left"
    if entry is None:
        return Step(step.key, step.verdict, note=note)
    if entry.reason == AMBIGUOUS:
        return Step(step.key, AMBIGUOUS, entry.reason, entry.key, note="a composite kernel and a backend's own both apply")
    kernel, library = entry.kernel, entry.kernel.library
    if (wish := op.registry.preference(op, entry.key)) and wish.decides(kernel, op.kernels.get(entry.key, ())):
        note = f"preferred by {quoted(wish.setting)}, {config.origin(wish.setting)}"
    distribution, version = ("", "") if library is None else (library.distribution or library.name, library.version)
    source = "" if kernel.is_fallthrough else source_of(kernel)
    if step.verdict == CHOSEN and kernel.composes is not None:
        composes = kernel.composes(passed_on(op, args))
        note = "; ".join(filter(None, (note, f"here it {'runs' if composes else 'does not run'} the composite kernel")))
    backend = op.registry.backends.get(step.key) if step.verdict == CHOSEN and kernel.form == ARRAY else None
    way = "" if backend is None else backend.path_of(op, kernel, plan.ks, passed_on(op, args))
    words = entry.reason, entry.key, kernel.name, kernel.form, distribution, version, source, note, way
    return Step(step.key, step.verdict, *words)


def source_of(kernel: Kernel) -> str:
    """`file:line` of a kernel. One that cannot be imported is chosen all the same, so the text says why."""
    try:
        return kernel.source
    except (ImportError, AttributeError) as error:
        return f"cannot be imported: {error}"
