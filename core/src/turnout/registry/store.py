"""`Registry`: what is registered over one key space, and what wins at one operator and key.

One lock orders all changes; who changes something clears the caches it can affect, under that lock.
"""

from __future__ import annotations

from turnout import config
from turnout.config import LOCK
from turnout.config.installed import installed
from turnout.errors import ConflictError, StaleOperatorError, UniverseError, UnknownOperatorError, calls
from turnout.errors import registry as texts
from turnout.keys import KEYS
from turnout.operators import Operator, Packet
from turnout.operators.arguments import check_tensors
from turnout.operators.kernels import INTERNAL, Kernel
from turnout.operators.placement import checked, mixed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from turnout.devices.backend import Backend
    from turnout.keys import KeySpace
    from turnout.operators import Plan

    Call = Callable[..., Any]

    class Source(Protocol):
        """Who defines the operators of a namespace when they are first asked for."""

        defining: set[str]  # names that `define` is busy with, for it asks the registry itself

        def define(self, name: str) -> None:
            """Define the overloads of one name, and register their kernels; nothing where there are none."""

        def names(self) -> Mapping[str, tuple[str, ...]]:
            """Packet -> overloads, of all that it can define."""


class Registry:
    """Everything registered over one key space.

    The process uses `REGISTRY`, which follows the configuration; tests build others.
    """

    def __init__(self, keys: KeySpace, *, follows_config: bool = False) -> None:
        self.keys = keys
        self.lock = LOCK
        self._operators: dict[str, Operator] = {}  # those made so far; a source may define more
        self._packets: dict[str, dict[str, Packet]] = {}
        self._sources: dict[str, Source] = {}  # namespace -> who defines its operators when they are first asked for
        self._loaded: set[tuple[str, str]] = set()  # (namespace, packet) that the source has defined
        self.backends: dict[str, Backend] = {}
        self.fallbacks: dict[str, Kernel] = {}
        self.fallbacks_by_key: dict[str, Kernel] = {}
        self.follows_config = follows_config
        self._subscribed = False
        self._disabled: frozenset[str] | None = None  # what keys.disable holds, until a setting changes
        self.services: dict[str, Any] = {}  # functionality -> what its plugin offers to core's public functions
        self.instruments: tuple[Callable[[Operator, Plan, Call], Call], ...] = ()
        self.context_notes: list[Callable[[], str]] = []  # each says a line about the context, for `explain`, or ""

    @staticmethod
    def restore(qualified_name: str) -> Operator:
        """What a pickled operator is loaded by: the operator of that name, whose plugin is activated."""
        installed().require_namespace(qualified_name.partition("::")[0])
        return find_operator(qualified_name)

    # ---- looking up

    def find(self, qualified_name: str) -> Operator:
        """The operator "namespace::name.overload"; plugins with operators in the namespace are activated where it is not there.

        Raises UnknownOperatorError naming near ones.
        """
        op = self.get(qualified_name)
        if (op is None or not op.is_defined) and self.follows_config and "::" in qualified_name:
            installed().require_namespace(qualified_name.partition("::")[0])
            op = self.get(qualified_name)
        if op is None or not op.is_defined:
            raise UnknownOperatorError(texts.unknown_operator(qualified_name, self))
        return op

    def get(self, qualified_name: str, *, define: bool = True) -> Operator | None:
        """The operator of that name, or None; undefined where only kernels are known of it.

        `define=False` leaves alone what its source has not defined yet.
        """
        name = without_default(qualified_name)
        op = self._operators.get(name)
        if define and (op is None or op.schema_text is None):
            namespace, _, rest = name.partition("::")
            self.load(namespace, rest.partition(".")[0])
            op = self._operators.get(name)
        return op

    @property
    def operators(self) -> dict[str, Operator]:
        """Every operator by name. Asking for it defines those that nobody has used yet: for tools, not for calls."""
        for namespace in list(self._sources):
            self._load_all(namespace)
        return self._operators

    @property
    def packets(self) -> dict[str, dict[str, Packet]]:
        """Every packet by namespace and name; like `operators`, it defines what is not defined yet."""
        for namespace in list(self._sources):
            self._load_all(namespace)
        return self._packets

    def namespace(self, name: str) -> dict[str, Packet]:
        """The packets of one namespace by name, all of them defined; empty where there is none."""
        self._load_all(name)
        return self._packets.get(name, {})

    def miss(self, op_name: str, args: tuple[Any, ...]) -> Any:
        """The slow path of a stub: resolve a key set seen for the first time, or say which argument is not a tensor."""
        op = self.get(op_name)
        if op is None or not op.is_defined:
            raise StaleOperatorError(calls.gone(op_name))
        check_tensors(op, args)
        ks = op.key_set(args)
        return op.lookup(ks)(ks, *args)

    # ---- sources: operators that are known by name and defined when they are first used

    def add_source(self, namespace: str, source: Source) -> None:
        """Let `source` define the operators of a namespace, one packet at a time, when they are first asked for."""
        with self.lock:
            if namespace in self._sources:
                raise ConflictError(f"the operators of namespace {namespace!r} have a source already")
            self._sources[namespace] = source

    def remove_source(self, namespace: str) -> None:
        """Undo `add_source`; the operators that it defined are undone by their library."""
        with self.lock:
            del self._sources[namespace]
            self._loaded = {(name, packet) for name, packet in self._loaded if name != namespace}

    def load(self, namespace: str, name: str) -> None:
        """Have the source of a namespace define the overloads of one name, if it has any and has not yet."""
        source = self._sources.get(namespace)
        if source is None or (namespace, name) in self._loaded:
            return
        with self.lock:
            if (namespace, name) not in self._loaded and name not in source.defining:
                source.defining.add(name)
                try:
                    source.define(name)
                    self._loaded.add((namespace, name))
                finally:
                    source.defining.discard(name)

    def _load_all(self, namespace: str) -> None:
        source = self._sources.get(namespace)
        if source is not None:
            for name in source.names():
                self.load(namespace, name)

    def knows(self, qualified_name: str) -> bool:
        """Whether an operator of that name is defined, or would be when asked for."""
        op = self._operators.get(qualified_name)
        if op is not None and op.schema_text is not None:
            return True
        namespace, _, rest = qualified_name.partition("::")
        source = self._sources.get(namespace)
        name, _, overload = rest.partition(".")
        return source is not None and overload in source.names().get(name, ())

    def key_name(self, key: str) -> str:
        """The present name of a key that kernels can be registered at, those of plugins that are not active included.

        Kernels may come before the plugin of their backend; they wait. Raises UniverseError for an unknown key.
        """
        try:
            return self.keys.canonical(key)
        except UniverseError:
            if self.follows_config and key in installed().catalog().key_names():
                return key
            raise

    def packet(self, namespace: str, name: str) -> Packet | None:
        """All overloads of a name, or None."""
        self.load(namespace, name)
        return self._packets.get(namespace, {}).get(name)

    def packet_handle(self, namespace: str, name: str) -> Packet:
        """The packet of a name, made where there is none yet, without asking for its overloads.

        Takes no lock: generated modules call it while they are imported, which may happen under the lock in another thread.
        """
        packets = self._packets.setdefault(namespace, {})
        found = packets.get(name)
        return packets.setdefault(name, Packet(self, namespace, name)) if found is None else found

    def dangling(self) -> list[Operator]:
        """Operators with kernels whose schema nobody has defined (yet)."""
        with self.lock:
            waiting = [op for op in self._operators.values() if any(op.kernels.values())]
            return [op for op in waiting if not self.knows(op.qualified_name)]

    def waiting(self) -> list[tuple[Operator, str]]:
        """Operators and keys of kernels whose key does not exist (yet)."""
        with self.lock:
            is_key = self.keys.universe.is_key
            return [(op, key) for op in self._operators.values() for key in op.kernels if not is_key(key)]

    def is_disabled(self, key: str, functionality: str) -> bool:
        """Whether configuration makes this slot fall through."""
        if not self.follows_config:
            return False
        if self._disabled is None:
            self.follow_config()
            self._disabled = config.disabled_keys()
        return bool(self._disabled) and config.key_disabled(key, functionality)

    def choice(self, op: Operator, key: str) -> str | None:
        """The library or distribution that configuration chose for a slot that two libraries claim."""
        if not self.follows_config:
            return None
        self.follow_config()
        return config.kernel_choices().get(f"{op.qualified_name}@{key}")

    def follow_config(self) -> None:
        """From the first resolution on, a change of settings clears the caches."""
        if not self._subscribed:
            self._subscribed = True
            config.on_change(self._config_changed)

    def _config_changed(self, names: object) -> None:
        self._disabled = None
        self.changed()

    # ---- what wins at one operator and key

    def winner(self, op: Operator, key: str, stack: list[Kernel]) -> Kernel:
        """The kernel that stands among those registered at one key: the newest of the library that wins.

        A conflict that a registration would have been refused for can come back, by undoing the library or the setting that
        decided it. Nobody wins then: the kernel is one that raises ConflictError, whatever the order was.
        """
        if len({id(k.library) for k in stack}) == 1:
            return stack[-1]
        chosen = self.choice(op, key)
        if chosen is not None:
            found = [k for k in stack if k.library is not None and chosen in (k.library.name, k.library.distribution)]
            if found:
                return found[-1]
        overriding = [k for k in stack if k.allow_override]
        if len({id(k.library) for k in overriding}) == 1:
            return overriding[-1]
        contenders = sorted(overriding or stack, key=lambda k: (k.origin, k.source))
        text = texts.conflict(op, key, contenders[0], contenders[-1], both_override=bool(overriding))

        def call_conflict(ks: int, *args: Any) -> Any:
            raise ConflictError(text)

        return Kernel(call_conflict, INTERNAL, calls_operators=False, label="conflict")

    def check_conflict(self, op: Operator, key: str, kernel: Kernel) -> None:
        """Raise ConflictError unless exactly one library would say allow_override, or configuration chooses."""
        others = [k for k in op.kernels.get(key, ()) if k.library is not kernel.library]
        if not others or self.choice(op, key) is not None:
            return
        overriding = {id(k.library) for k in (*others, kernel) if k.allow_override}
        if len(overriding) != 1:
            raise ConflictError(texts.conflict(op, key, others[-1], kernel, both_override=bool(overriding)))

    # ---- changes, all under the lock

    def changed(self, op: Operator | None = None) -> None:
        """Clear the caches that a change can affect: one operator's, or everything."""
        if op is not None:
            op.cache.clear()
            return
        self._expand_fallbacks()
        for each in self._operators.values():
            each.forget_specializations()
            each.cache.clear()

    def instrument(self, wrapper: Callable[[Operator, Plan, Call], Call]) -> Callable[[], None]:
        """Pass every callable that resolution binds through `wrapper(op, plan, call)` until the returned undo is called."""

        def change(kept: tuple[Any, ...], added: tuple[Any, ...] = ()) -> None:
            self.instruments = (*kept, *added)
            for each in self._operators.values():
                each.cache.clear()

        def undo() -> None:
            with self.lock:
                change(tuple(w for w in self.instruments if w is not wrapper))

        with self.lock:
            change(self.instruments, (wrapper,))
        return undo

    def _expand_fallbacks(self) -> None:
        """Fallbacks by runtime key; one at an alias covers the keys of the alias that have none of their own."""
        universe = self.keys.universe
        expanded: dict[str, Kernel] = {}
        for key, kernel in self.fallbacks.items():
            for covered in universe.aliases.get(key, ()):
                expanded[covered] = kernel
        expanded.update({key: kernel for key, kernel in self.fallbacks.items() if key in universe.rank})
        self.fallbacks_by_key = expanded

    def operator(self, qualified_name: str) -> Operator:
        """The operator of that name, made as an undefined one when it is new: impl before define waits in it."""
        op = self._operators.get(qualified_name)
        if op is None:
            op = self._operators[qualified_name] = Operator(self, qualified_name)
        return op

    def add(self, op: Operator) -> None:
        """Put an operator that was made for a definition where it is found by name."""
        self._operators[op.qualified_name] = op

    def discard(self, op: Operator) -> None:
        """Forget an operator that is neither defined nor has kernels."""
        if op.schema_text is None and not any(op.kernels.values()):
            self._operators.pop(op.qualified_name, None)

    def attach(self, op: Operator) -> None:
        """Put a defined operator into its packet."""
        packet = self.packet_handle(op.namespace, op.name)
        packet.attached[op.overload] = op
        packet.changed()

    def detach(self, op: Operator) -> None:
        """Take an operator out of its packet, and an empty packet out of its namespace."""
        packet = self._packets[op.namespace][op.name]
        packet.attached.pop(op.overload, None)
        packet.changed()
        if not packet.attached:
            del self._packets[op.namespace][op.name]

    def on_device(self, op: Operator, plan: Plan, call: Call) -> Call:
        """A backend slot's callable with the device check and guard that its key set and backend need."""
        names = self.keys.backends_in(plan.ks)
        if op.device_check and len(names) > 1:
            return mixed(op)
        backend = self.backends.get(names[0]) if names else None
        return checked(op, backend, call) if backend is not None and backend.indexed else call


def without_default(qualified_name: str) -> str:
    """`default` is another name of the overload without one."""
    return qualified_name.removesuffix(".default")


REGISTRY = Registry(KEYS, follows_config=True)


def find_operator(qualified_name: str) -> Operator:
    """The operator of that name in the process's registry; what a pickled operator loads through."""
    return REGISTRY.find(qualified_name)
