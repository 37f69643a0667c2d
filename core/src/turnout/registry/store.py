"""`Registry`: the registrations over one key space, and which of them wins at an operator and key.

One lock orders all changes. Every change clears the caches that it can affect under that lock.
"""

from __future__ import annotations

from turnout import config
from turnout.config import LOCK
from turnout.config.installed import installed
from turnout.errors import ConfigError, ConflictError, StaleOperatorError, UniverseError, UnknownOperatorError, calls
from turnout.errors import registry as texts
from turnout.keys import KEYS
from turnout.operators import Operator, Packet
from turnout.operators.arguments import check_tensors
from turnout.operators.kernels import INTERNAL, Kernel, KernelTable
from turnout.registry.preferences import has_preferences, preference
from turnout.state import hide_fresh, unsettle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    from turnout.devices import Backend
    from turnout.keys import KeySpace
    from turnout.registry.preferences import Preference
    from turnout.table import Plan

    Call = Callable[..., Any]

    class Source(Protocol):
        """Defines the operators of a namespace when they are first used."""

        defining: set[str]  # names that `define` is defining now: it asks the registry itself

        def define(self, name: str) -> None:
            """Define the overloads of one name, if there are any, and register their kernels. Under the lock: imports nothing."""

        def names(self) -> Iterable[str]:
            """The packets of all operators that it can define."""

        def knows(self, qualified_name: str) -> bool:
            """Whether it can define this operator."""

        def fitted(self, op: Operator, args: tuple[Any, ...]) -> tuple[Operator, tuple[Any, ...]]:
            """The call that is meant where a stub met what is not a tensor: this one, or one that takes such a value."""


class Registry:
    """All registrations over one key space.

    The process uses `REGISTRY`, which follows the configuration. Tests build others.
    """

    def __init__(self, keys: KeySpace, *, follows_config: bool = False) -> None:
        self.keys = keys
        self.lock = LOCK
        self._operators: dict[str, Operator] = {}  # a source may define more, and tables have kernels of more
        self.tables: tuple[KernelTable, ...] = ()
        self._packets: dict[str, dict[str, Packet]] = {}
        self._sources: dict[str, Source] = {}  # by namespace
        self._loaded: set[tuple[str, str]] = set()  # (namespace, packet) that the source has defined
        self.backends: dict[str, Backend] = {}
        self.fallbacks: dict[str, Kernel] = {}
        self.fallbacks_by_key: dict[str, Kernel] = {}
        self.follows_config = follows_config
        self._subscribed = False
        self._disabled: frozenset[str] | None = None  # what keys.disable holds, until a setting changes
        self._added_by_state: set[str] = set()  # the keys at which kernels serve what only the state adds to a call with tensors
        self._deciding: set[Operator] = set()  # operators with tensors that have a kernel there
        self.services: dict[str, Any] = {}  # functionality -> the object that its plugin offers to other packages
        self.line_keepers: list[Callable[[Call], Call]] = []  # what wraps the kernels of functionalities with `asks_lines`
        self.instruments: tuple[Callable[[Operator, Plan, Call], Call], ...] = ()
        self.context_notes: list[Callable[[], str]] = []  # each returns a line about the context for `explain`, or ""

    @staticmethod
    def restore(qualified_name: str, *packet: str) -> Operator | Packet:
        """Load a pickled operator, or the packet of a namespace: find it by name in the process's registry."""
        if not packet:
            return REGISTRY.find(qualified_name)
        installed().require_namespace(qualified_name)
        return REGISTRY.packet(qualified_name, *packet) or REGISTRY.find(f"{qualified_name}::{packet[0]}")

    # ---- looking up

    def find(self, qualified_name: str) -> Operator:
        """The operator "namespace::name.overload". The plugins of its namespace are activated if it is not defined yet.

        Raises UnknownOperatorError, which names the nearest operators.
        """
        op = self.get(qualified_name)
        if (op is None or not op.is_defined) and self.follows_config and "::" in qualified_name:
            installed().require_namespace(qualified_name.partition("::")[0])
            op = self.get(qualified_name)
        if op is None or not op.is_defined:
            raise UnknownOperatorError(texts.unknown_operator(qualified_name, self))
        return op

    def get(self, qualified_name: str, *, define: bool = True) -> Operator | None:
        """The operator of that name, or None. It is undefined if only its kernels are known.

        With `define=False`, its source is not asked to define it.
        """
        name = without_default(qualified_name)
        op = self._operators.get(name)
        if op is None and any(name in table.rows for table in self.tables):
            with self.lock:
                op = self.operator(name)
        if define and (op is None or op.schema_text is None):
            namespace, _, rest = name.partition("::")
            self.load(namespace, rest.partition(".")[0])
            op = self._operators.get(name)
        return op

    @property
    def operators(self) -> dict[str, Operator]:
        """Every operator by name. Reading this defines the operators of all sources: use it in tools, not in calls."""
        self._load_all(*self._sources)
        self._name_all()
        return self._operators

    @property
    def packets(self) -> dict[str, dict[str, Packet]]:
        """Every packet by namespace and name. Reading this defines the operators of all sources."""
        self._load_all(*self._sources)
        return self._packets

    def namespace(self, name: str) -> dict[str, Packet]:
        """The packets of one namespace by name, all of them defined."""
        self._load_all(name)
        return self._packets.get(name, {})

    def miss(self, op_name: str, args: tuple[Any, ...]) -> Any:
        """The slow path of a stub: resolve a new key set, or raise for an argument that is not a tensor."""
        op = self.get(op_name)
        if op is None or not op.is_defined:
            raise StaleOperatorError(calls.gone(op_name))
        if source := self._sources.get(op.namespace):
            op, args = source.fitted(op, args)
        check_tensors(op, args)
        ks = op.key_set(args)
        return op.lookup(ks)(ks, *args)

    # ---- sources

    def add_source(self, namespace: str, source: Source) -> None:
        """Let `source` define the operators of a namespace, one packet at a time, when they are first used."""
        with self.lock:
            if namespace in self._sources:
                raise ConflictError(f"the operators of namespace {namespace!r} have a source already")
            self._sources[namespace] = source

    def remove_source(self, namespace: str) -> None:
        """Undo `add_source`. The operators that the source defined are undone by their library."""
        with self.lock:
            self._sources.pop(namespace, None)
            self._loaded = {(name, packet) for name, packet in self._loaded if name != namespace}

    def load(self, namespace: str, name: str) -> None:
        """Let the source of a namespace, if there is one, define the overloads of one name. It does so once."""
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

    def _load_all(self, *namespaces: str) -> None:
        for namespace in namespaces:
            source = self._sources.get(namespace)
            for name in source.names() if source is not None else ():
                self.load(namespace, name)

    def _name_all(self) -> None:
        """Make the operators for which kernels of tables wait."""
        with self.lock:
            for table in self.tables:
                for name in table.rows:
                    self.operator(name)

    def knows(self, qualified_name: str) -> bool:
        """Whether an operator of that name is defined or can be defined by a source."""
        op = self._operators.get(qualified_name)
        if op is not None and op.schema_text is not None:
            return True
        source = self._sources.get(qualified_name.partition("::")[0])
        return source is not None and source.knows(qualified_name)

    def key_name(self, key: str) -> str:
        """The present name of a key at which kernels can be registered.

        The keys of installed and known plugins count: their kernels wait for the plugin. Raises UniverseError for other keys.
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
        """The packet of a name, made if there is none. Its overloads are not loaded.

        Takes no lock: generated modules call this during their import, which another thread may wait for under the lock.
        """
        packets = self._packets.setdefault(namespace, {})
        return packets.get(name) or packets.setdefault(name, Packet(self, namespace, name))

    def dangling(self) -> list[Operator]:
        """Operators that have kernels and no definition."""
        with self.lock:
            self._name_all()
            waiting = [op for op in self._operators.values() if any(op.kernels.values())]
            return [op for op in waiting if not self.knows(op.qualified_name)]

    def is_disabled(self, key: str, functionality: str) -> bool:
        """Whether configuration disables the key, so that its slots fall through."""
        if not self.follows_config:
            return False
        if self._disabled is None:
            self.follow_config()
            self._disabled = frozenset(config.get("keys.disable"))
        return bool(self._disabled and config.key_disabled(key, functionality))

    def preference(self, op: Operator, key: str) -> Preference | None:
        """Whose kernels come first in a slot, as configuration says; None if it does not."""
        if not self.follows_config:
            return None
        self.follow_config()
        return preference(op.qualified_name, key)

    def know_owners(self, op: Operator) -> None:
        """Learn whose kernels an operator has, if a setting prefers some: that may import, so it comes before the lock."""
        if self.follows_config and has_preferences():
            for kernel in [k for stack in list(op.kernels.values()) for k in stack]:
                kernel.library.distribution if kernel.library is not None else None  # noqa: B018 - found at its first use

    def follow_config(self) -> None:
        """Clear the caches at every change of settings from now on, if this registry follows them."""
        if self.follows_config and not self._subscribed:
            self._subscribed = True
            config.on_change(self._config_changed)

    def _config_changed(self, names: object) -> None:
        self._disabled = None
        self.changed()

    # ---- what wins at one operator and key

    def winner(self, op: Operator, key: str, stack: list[Kernel] | None = None) -> Kernel:
        """The kernel that wins among those of a stack, or all that are registered at one key: the newest of the winning library.

        Undoing the library or the setting that decided a conflict brings the conflict back. Then the kernel that wins raises
        ConflictError, whatever the order of registration was.
        """
        stack = op.kernels[key] if stack is None else stack
        if len({id(k.library) for k in stack}) == 1:
            return stack[-1]
        wish = self.preference(op, key)
        if wish is not None:
            if wish.equal:
                origins: dict[str, object] = {name: config.origin(name) for name in (wish.setting, wish.equal)}
                return _raising(lambda: ConfigError(texts.preferred_twice(op, key, origins)))
            first = min(map(wish.place, stack))
            if first < len(wish.names):
                return [k for k in stack if wish.place(k) == first][-1]
        if yielding := [k for k in stack if k.yields]:
            firm = [k for k in stack if not k.yields]
            own = f"backend:{key}"
            is_own = all(k.library is not None and k.library.provides(own) for k in firm)
            stack = yielding if is_own else firm
            if len({id(k.library) for k in stack}) == 1:
                return stack[-1]
        overriding = [k for k in stack if k.allow_override]
        if len({id(k.library) for k in overriding}) == 1:
            return overriding[-1]

        def conflict() -> ConflictError:
            contenders = sorted(overriding or stack, key=lambda k: (k.origin, k.source))
            return ConflictError(texts.conflict(op, key, contenders[0], contenders[-1], both_override=bool(overriding)))

        return _raising(conflict)

    def behind(self, op: Operator, key: str, kernel: Kernel) -> list[Kernel]:
        """The kernels at a key of other libraries than this one's, without those that come before it."""
        wish = self.preference(op, key)

        def place(k: Kernel) -> tuple[int, bool]:
            return 0 if wish is None else wish.place(k), not k.yields

        return [k for k in op.kernels[key] if k.library is not kernel.library and place(k) >= place(kernel)]

    def settles(self, table: KernelTable) -> list[str]:
        """The operators of a new table that have been named, or whose kernel conflicts with one of another table."""
        others = [t for t in self.tables if (t.key, t.yields) == (table.key, table.yields) and t.library is not table.library]
        taken = self._operators.keys() | {name for other in others for name in other.rows}
        return [name for name in table.rows if name in taken]

    def check_conflict(self, op: Operator, key: str, kernel: Kernel) -> None:
        """Raise ConflictError for a kernel that conflicts with others. The text may import them."""
        if found := self.conflict(op, key, kernel):
            raise conflict_error(op, key, kernel, *found)

    def conflict(self, op: Operator, key: str, kernel: Kernel) -> tuple[Kernel, bool] | None:
        """The newest kernel that conflicts with this one, and whether both override.

        None where configuration chooses, or exactly one of the libraries has `allow_override`.
        """
        others = [k for k in op.kernels.get(key, ()) if k.library is not kernel.library and k.yields == kernel.yields]
        if not others or self.preference(op, key) is not None:
            return None
        overriding = {id(k.library) for k in (*others, kernel) if k.allow_override}
        return None if len(overriding) == 1 else (others[-1], bool(overriding))

    # ---- changes, all under the lock

    def changed(self, op: Operator | None = None) -> None:
        """Clear the caches that a change can affect: those of one operator, or all."""
        if op is not None:
            op.clear()
            if self.follows_config and (self._deciding or not self._added_by_state.isdisjoint(op.kernels)):
                self._note_deciding(op)
            return
        self._expand_fallbacks()
        if self.follows_config:
            self._expand_added_by_state()
            unsettle()
        for each in self._operators.values():
            each.forget()

    def instrument(self, wrapper: Callable[[Operator, Plan, Call], Call]) -> Callable[[], None]:
        """Wrap every callable that resolution binds by `wrapper(op, plan, call)`. Returns the undo."""

        def change(instruments: tuple[Callable[[Operator, Plan, Call], Call], ...]) -> None:
            self.instruments = instruments
            for each in self._operators.values():
                each.clear()

        def undo() -> None:
            with self.lock:
                change(tuple(w for w in self.instruments if w is not wrapper))

        with self.lock:
            change((*self.instruments, wrapper))
        return undo

    def _expand_fallbacks(self) -> None:
        """Compute the fallbacks by runtime key. The one of an alias covers the keys without a fallback of their own."""
        universe, fallbacks = self.keys.universe, self.fallbacks.items()
        covered = {key: kernel for alias, kernel in fallbacks for key in universe.aliases.get(alias, ())}
        self.fallbacks_by_key = covered | {key: kernel for key, kernel in fallbacks if key in universe.rank}

    def _expand_added_by_state(self) -> None:
        """Compute the keys whose kernels serve a functionality that a fresh context includes, and no tensor brings."""
        rows = {row.name for row in self.keys.functionalities if row.included and not row.on_tensors}
        found = rows | {alias for alias, covered in self.keys.universe.aliases.items() if not rows.isdisjoint(covered)}
        if found != self._added_by_state:
            self._added_by_state = found
            for op in self._operators.values():
                self._note_deciding(op)

    def _note_deciding(self, op: Operator) -> None:
        """Keep the fact that lets calls with tensors skip the state: no such operator has a kernel where only the state leads."""
        stacks = [stack for key in self._added_by_state if (stack := op.kernels.get(key))]
        # Of several kernels, what wins may be a conflict, even if all of them fall through.
        leads = any(len(stack) > 1 or not stack[0].is_fallthrough for stack in stacks)
        if leads and op.schema_text is not None and op.schema.takes_tensors:
            self._deciding.add(op)
        else:
            self._deciding.discard(op)
        hide_fresh(bool(self._deciding))

    def operator(self, qualified_name: str) -> Operator:
        """The operator of that name. A new one is undefined, and holds the kernels that come before its definition."""
        op = self._operators.get(qualified_name)
        if op is None:
            op = Operator(self, qualified_name)
            for table in self.tables:
                if qualified_name in table.rows:
                    table.add_to(op)
            self._operators[qualified_name] = op
        return op

    def discard(self, op: Operator) -> None:
        """Forget an operator that is neither defined nor has kernels."""
        if op.schema_text is None and not any(op.kernels.values()):
            self._operators.pop(op.qualified_name, None)
            op.retire()

    def attach(self, op: Operator) -> None:
        """Add a defined operator, also to its packet."""
        self._operators[op.qualified_name] = op
        packet = self.packet_handle(op.namespace, op.name)
        packet.attached[op.overload] = op
        packet.changed()

    def detach(self, op: Operator) -> None:
        """Remove an operator from its packet, and an empty packet from its namespace."""
        packet = self._packets.get(op.namespace, {}).get(op.name)
        if packet is None:  # there was no memory to make it
            return
        packet.attached.pop(op.overload, None)
        packet.changed()
        if not packet.attached:
            del self._packets[op.namespace][op.name]


def without_default(qualified_name: str) -> str:
    """The name without ".default", another spelling of the unnamed overload."""
    return qualified_name.removesuffix(".default")


def _raising(error: Callable[[], Exception]) -> Kernel:
    """A kernel whose call is an error. Its text may import other kernels, so it is made at the call and not under the lock."""

    def call_conflict(ks: int, *args: Any) -> Any:
        raise error()

    return Kernel(call_conflict, INTERNAL, calls_operators=False, label="conflict")


def conflict_error(op: Operator, key: str, kernel: Kernel, other: Kernel, both_override: bool) -> ConflictError:
    """The error for what `Registry.conflict` found."""
    return ConflictError(texts.conflict(op, key, other, kernel, both_override=both_override))


REGISTRY = Registry(KEYS, follows_config=True)
find_operator = REGISTRY.find
