"""`Operator`, and `Operator.plan`: the walk from a key set to the kernel that runs.

A call is one dict look-up, `op.cache[ks]`. At a miss the plan is made under the registry's lock, bound to a callable without it,
because that may import, and cached under it. Any change to the registry clears the caches that it can affect under the same lock.
"""

from __future__ import annotations

from functools import partial

from turnout.config.installed import installed
from turnout.errors import ArgumentError, CallError, NoKernelError, StaleOperatorError
from turnout.errors import calls as texts
from turnout.keys import ALWAYS, IMPLICIT, TRACKED, UNDEFINED, UNTRACKED
from turnout.operators.kernels import ARRAY, Kernel, bind
from turnout.operators.path import Next, following
from turnout.operators.placement import checked, mixed
from turnout.operators.stubs import compile_stub, forget_source
from turnout.operators.tracebacks import shorten
from turnout.operators.values import keys_of
from turnout.state import in_effect

from turnout.table import (  # isort: skip
    AMBIGUOUS, CHOSEN, DISABLED, FALLBACK, FALLS_THROUGH, MISSING, ONLY_TRACKED, ONLY_UNTRACKED, PASSED_OVER, Entry, Plan, Step,
    compute_entry,
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from turnout.keys import Functionality
    from turnout.operators.packet import Packet
    from turnout.registry import Registrations, Registry
    from turnout.schema import FunctionSchema

    Call = Callable[..., Any]
    T = TypeVar("T")


class _Unmade(Exception):
    """The walk has met fallbacks that are not specialised yet for the operator: pairs of a runtime key and its fallback."""

    def __init__(self, *fallbacks: tuple[str, Kernel]) -> None:
        self.fallbacks = fallbacks


class Operator:
    """One overload. Call it, `redispatch` it from a given key set, or get the `kernel` of one key.

    Attributes: `namespace`, `name`, `overload` ("" for the unnamed one), `qualified_name` ("mylib::add.Tensor"), `schema`,
    `tags`, `kernels` (key -> registered kernels, oldest first).
    """

    __slots__ = (
        "__weakref__", "_next", "_schema", "_special", "cache", "call", "changes", "defined_by", "device_check", "device_guard",
        "kernels", "name", "namespace", "overload", "qualified_name", "registry", "schema_text", "tags",
    )  # fmt: skip

    def __init__(self, registry: Registry, qualified_name: str) -> None:
        self.registry = registry
        self.qualified_name = qualified_name
        self.namespace, _, rest = qualified_name.partition("::")
        self.name, _, self.overload = rest.partition(".")
        self.schema_text: str | None = None
        self._schema: FunctionSchema | None = None
        self._special: dict[tuple[str, int], Kernel | None] = {}
        self.defined_by: Registrations | None = None
        self.tags: tuple[str, ...] = ()
        self.device_check = True
        self.device_guard = True
        self.kernels: dict[str, list[Kernel]] = {}
        self.cache: dict[int, Call] = {}
        self._next: dict[int, Next] = {}
        self.changes = 0  # how often the cache was cleared
        self.call: Call = self._first_call

    # ---- what it is

    @property
    def schema(self) -> FunctionSchema:
        """The parsed schema. Raises StaleOperatorError if the definition was undone."""
        if self._schema is None:
            if not self.is_defined:
                raise StaleOperatorError(texts.stale(self))
            from turnout.schema import FunctionSchema

            self._schema = FunctionSchema.parse(self.schema_text)  # type: ignore[arg-type]
        return self._schema

    @property
    def is_defined(self) -> bool:
        """Whether it has a schema. If only its kernels are known, the source of its namespace is asked to define it."""
        if self.schema_text is None:
            self.registry.load(self.namespace, self.name)
        return self.schema_text is not None

    def undefine(self) -> None:
        """Called by the registry. From now on every call through this handle raises StaleOperatorError."""
        self.schema_text = None
        self._schema = None
        self.defined_by = None
        self.forget()
        if self.call != self._first_call:
            forget_source(f"<stub of {self.qualified_name}>")
        self.call = self._first_call

    def retire(self) -> None:
        """Called by the registry when it forgets the operator: without its bound method the handle is in no cycle."""
        name = self.qualified_name

        def retired(*args: Any, **kwargs: Any) -> Any:
            raise StaleOperatorError(texts.gone(name))

        self.call = retired

    @property
    def __name__(self) -> str:
        """The name and the overload, without the namespace: "add.Tensor", "sin.default"."""
        return f"{self.name}.{self.overload or 'default'}"

    @property
    def overloadpacket(self) -> Packet:
        """All overloads of the name."""
        return self.registry.packet_handle(self.namespace, self.name)

    @property
    def is_view(self) -> bool:
        """Whether a return shares memory with an argument that is not written."""
        return self.schema.is_view

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<Operator {self.qualified_name}>"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (self.registry.restore, (self.qualified_name,))

    # ---- calling

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        try:
            return self.call(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    def _first_call(self, /, *args: Any, **kwargs: Any) -> Any:
        """Takes the place of the stub until the first call compiles it."""
        try:
            return self.stub(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    @property
    def stub(self) -> Call:
        """The call stub, compiled from the schema at the first use. Raises StaleOperatorError if the definition was undone."""
        if self.call == self._first_call:
            self.is_defined  # noqa: B018 - defines it, which is a change
            self.settled(self._compiled, self._keep_stub)
        return self.call

    def _compiled(self) -> Call:
        if not self.is_defined:
            raise StaleOperatorError(texts.stale(self))
        return compile_stub(self)

    def _keep_stub(self, stub: Call) -> None:
        if self.call == self._first_call:  # no other thread was faster
            self.call = stub

    def lookup(self, ks: int) -> Call:
        """The callable that serves a key set, in the internal convention `call(ks, *args)`."""
        try:
            return self.cache[ks]
        except KeyError:
            return self.resolve(ks)

    def opted_in(self, ks: int) -> Call | None:
        """What serves a key set, where a functionality that takes part only if it is switched on does, such as Autocast."""
        functionality = self.plan(ks).functionality
        return self.lookup(ks) if functionality is not None and functionality.opt_in else None

    def redispatch(self, ks: int, /, *args: Any, **kwargs: Any) -> Any:
        """Call with `ks` instead of the key set of the arguments and the state."""
        if kwargs or len(args) != len(self.schema.arguments):
            args = self.bind(args, kwargs)
        return self.lookup(ks)(ks, *args)

    def next(self, ks: int, args: tuple[Any, ...] | None = None) -> Next:
        """What `redispatch(ks, *args)` would run, all arguments given: its key and kernel, and whether that is a composite.

        Without arguments it says what their key set decides. It calls no kernel, and is kept for the key set.
        """
        try:
            found = self._next[ks]
        except KeyError:
            self.is_defined  # noqa: B018 - defines it, which is a change
            found = self.settled(lambda: following(self, ks), lambda made: self._next.__setitem__(int(ks), made))
        if found.composes is None or args is None or found.composes(args):
            return found
        return found.otherwise

    def key_set(self, args: Iterable[Any]) -> int:
        """The key set of a call with these arguments, the state included, as the stub computes it."""
        ks = keys_of(args)
        return in_effect(ks, ks != 0 and self.schema.takes_tensors)

    def call_boxed(self, args: tuple[Any, ...]) -> Any:
        """Call with the full tuple of arguments in schema order."""
        ks = self.key_set(args)
        return self.lookup(ks)(ks, *args)

    def kernel(self, key: str) -> Call:
        """One key's kernel as a function of the schema's arguments. Calling it does not dispatch.

        The kernel gets the key set of the call, from which it may redispatch. Raises NoKernelError when nothing serves the key.
        """
        key = self.registry.keys.canonical(key)
        call = self.settled(lambda: self._bound(key))

        def call_kernel(*args: Any, **kwargs: Any) -> Any:
            bound = self.bind(args, kwargs)
            return call(self.key_set(bound), *bound)

        return call_kernel

    def _bound(self, key: str) -> Call:
        entry = self.entry(key)
        if entry is None or entry.kernel is None or entry.kernel.is_fallthrough:
            raise NoKernelError(texts.no_kernel_at(self, key))
        return bind(entry.kernel, self, key)

    def has_kernel_for_dispatch_key(self, key: str) -> bool:
        """Whether a kernel is registered at this very key, an alias too, rather than serves it from another one."""
        return self.is_defined and bool(self.kernels.get(self.registry.key_name(key)))

    def decompose(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the kernel at CompositeImplicitAutograd, which is written in other operators. NotImplemented if there is none."""
        call = self.settled(self._bound_composite)
        if call is None:
            return NotImplemented
        bound = self.bind(args, kwargs)
        return call(self.key_set(bound), *bound)

    def _bound_composite(self) -> Call | None:
        with self.registry.lock:
            if not self.has_kernel_for_dispatch_key(IMPLICIT):
                return None
            kernel = self.registry.winner(self, IMPLICIT)
        return bind(kernel, self, IMPLICIT)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in schema order with the schema's defaults. Raises CallError for a wrong number or name."""
        schema = self.schema
        if not kwargs and len(args) == len(schema.arguments):
            return args
        positional = [a for a in schema.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            raise CallError(f"{self.qualified_name}: {texts.too_many(len(positional), len(args))}")
        values = list(args)
        left = dict(kwargs)
        for argument in schema.arguments[len(args) :]:
            if argument.name in left:
                values.append(left.pop(argument.name))
            elif argument.has_default:
                values.append(argument.default)
            else:
                raise CallError(texts.missing_argument(self.qualified_name, argument.name, argument.type))
        if left:
            raise CallError(texts.unexpected_argument(self, next(iter(left)), args))
        return tuple(values)

    # ---- resolution

    def entry(self, key: str) -> Entry | None:
        """The entry of the computed table for a runtime key, with specialised fallbacks."""
        return self._walked(lambda: self._entry(key, self._winners()))

    def _walked(self, walk: Callable[[], T]) -> T:
        """What a walk finds under the lock. It starts again when the fallbacks that it lacks were specialised, outside of it."""
        registry = self.registry
        registry.keys.discovered()
        registry.follow_config()
        registry.know_owners(self)
        while True:
            try:
                with registry.lock:
                    return walk()
            except _Unmade as unmade:
                lacking = unmade.fallbacks
            for key, fallback in lacking:
                keep = partial(self._special.__setitem__, (key, id(fallback)))
                self.settled(partial(self._specialized, key, fallback), keep)

    def _winners(self) -> dict[str, Kernel]:
        """Key -> the kernel that wins there."""
        winner = self.registry.winner
        return {key: winner(self, key, stack) for key, stack in self.kernels.items() if stack}

    def _entry(self, key: str, winners: dict[str, Kernel]) -> Entry | None:
        """The entry of a runtime key under the lock. Raises _Unmade."""
        registry = self.registry
        entry = compute_entry(registry.keys.universe, key, winners, registry.fallbacks_by_key)
        if entry is not None and entry.reason == FALLBACK and entry.kernel.specialize is not None:
            if (key, id(entry.kernel)) not in self._special:
                raise _Unmade((key, entry.kernel))
            special = self._special[key, id(entry.kernel)]
            return None if special is None else Entry(special, entry.reason, entry.key)
        return entry

    def _specialized(self, key: str, fallback: Kernel) -> Kernel | None:
        specialize = fallback.specialize
        made: Any = specialize(self, key) if self.is_defined and specialize is not None else None
        if made is not None and not isinstance(made, Kernel):
            return Kernel(made, fallback.form, library=fallback.library, label=fallback.label)
        if made is not None and made.library is None:
            made.library = fallback.library
        return made  # type: ignore[no-any-return]

    def forget(self) -> None:
        """Called by the registry when specialised fallbacks or the kernels of any key set may have changed."""
        self._special.clear()
        self.clear()

    def clear(self) -> None:
        """Called by the registry when a key set may be served otherwise."""
        self.changes += 1
        self.cache.clear()
        self._next.clear()

    def settled(self, make: Callable[[], T], keep: Callable[[T], object] = lambda made: None) -> T:
        """What `make()` returns, made without the lock, because that may import, and given to `keep` under the lock.

        If the operator was changed meanwhile, it is made again. Where that happens time and again, it is made under the lock:
        what it needs was imported by then.
        """
        for _ in range(4):
            changes = self.changes
            try:
                made = make()
            except Exception:
                with self.registry.lock:  # a change may be half made
                    if changes == self.changes:
                        raise
                continue
            with self.registry.lock:
                if changes == self.changes:
                    keep(made)
                    return made
        with self.registry.lock:
            made = make()
            keep(made)
            return made

    def table(self) -> dict[str, Entry]:
        """The whole computed table, runtime key -> entry, without missing entries.

        Every plugin that can be activated is activated first, so that the table does not depend on what was used before.
        """
        if self.registry.follows_config:
            installed().activate_all()
        return self.entries()

    def entries(self) -> dict[str, Entry]:
        """The table as the plugins that are active now make it: what reads many of them activates all plugins once."""
        return self.settled(lambda: self._walked(self._entries))

    def _entries(self) -> dict[str, Entry]:
        winners = self._winners()
        found: dict[str, Entry] = {}
        lacking: list[tuple[str, Kernel]] = []
        for key in self.registry.keys.universe.runtime_keys:
            try:
                entry = self._entry(key, winners)
            except _Unmade as unmade:
                lacking += unmade.fallbacks
            else:
                if entry is not None:
                    found[key] = entry
        if lacking:
            raise _Unmade(*lacking)
        return found

    def plan(self, ks: int) -> Plan:
        """How a key set resolves, step by step. Takes the lock, and calls no kernel."""
        return self._walked(lambda: self._plan(ks))

    def _plan(self, ks: int) -> Plan:
        steps: list[Step] = []
        winners = self._winners()
        for key, functionality in self.registry.keys.active(ks):
            step = self._step(key, functionality, ks, winners)
            steps.append(step)
            if step.verdict in (CHOSEN, MISSING):
                return Plan(ks, steps, functionality)
        entry = self._entry(UNDEFINED, winners)
        steps.append(Step(UNDEFINED, entry, CHOSEN if entry is not None else MISSING))
        return Plan(ks, steps, None)

    def _step(self, key: str, functionality: Functionality, ks: int, winners: dict[str, Kernel]) -> Step:
        if self.registry.is_disabled(key, functionality.name):
            return Step(key, None, DISABLED)
        entry = self._entry(key, winners)
        if entry is not None and entry.kernel is not None and entry.kernel.form == ARRAY:
            # One from another plugin than the backend's is there where the backend is not active: nobody knows its arrays.
            keys = self.registry.keys
            inactive = [name for name in keys.backends_in(ks)[:1] if name not in self.registry.backends]
            entry = None if inactive and keys.is_installed_backend(inactive[0]) else entry
        if entry is None:
            untracked = functionality.passes == UNTRACKED and not ks & TRACKED
            passed = PASSED_OVER if functionality.passes == ALWAYS else ONLY_UNTRACKED if untracked else MISSING
            return Step(key, None, passed)
        kernel = entry.kernel
        if kernel is not None and kernel.is_fallthrough:
            return Step(key, entry, FALLS_THROUGH)
        if kernel is not None and kernel.tracked_only and not ks & TRACKED:
            return Step(key, entry, ONLY_TRACKED)
        return Step(key, entry, CHOSEN)

    def resolve(self, ks: int) -> Call:
        """Make a plan, bind it and cache the callable. For a missing kernel, that raises NoKernelError when it is called."""
        self.is_defined  # noqa: B018 - defines it, which is a change
        return self.settled(lambda: self._resolved(ks), lambda call: self.cache.__setitem__(int(ks), call))

    def _resolved(self, ks: int) -> Call:
        if not self.is_defined:
            raise StaleOperatorError(texts.stale(self))
        plan = self.plan(ks)
        call = self._bind_plan(plan)
        for instrument in self.registry.instruments:
            call = instrument(self, plan, call)
        return call

    def _bind_plan(self, plan: Plan) -> Call:
        entry = plan.entry
        if entry is None or entry.reason == AMBIGUOUS:

            def call_missing(ks: int, *args: Any) -> Any:
                from turnout.operators.missing import no_kernel  # only this error needs it

                for argument, value in zip(self.schema.arguments, args, strict=True):
                    if argument.type.is_tensor_list and not value:
                        raise ArgumentError(texts.empty_list(self, argument.name))
                raise NoKernelError(no_kernel(self, plan, args))

            return call_missing
        functionality = plan.functionality
        keys = self.registry.keys
        if functionality is None or not keys.is_guarded(functionality):
            call = bind(entry.kernel, self, plan.key)
            for keeping in self.registry.line_keepers if functionality is not None and functionality.asks_lines else ():
                call = keeping(call)
            return call
        # The call has passed a functionality that guards what is below, if its key set lacks one that every plain tensor brings.
        passed = keys.plain_guards & ~plan.ks if entry.key != IMPLICIT else 0
        call = bind(entry.kernel, self, plan.key, below=~keys.guards if passed else None)
        if not functionality.backend_key:
            return call
        names = keys.backends_in(plan.ks)
        if self.device_check and len(names) > 1:
            return mixed(self)
        backend = self.registry.backends.get(names[0]) if names else None
        return checked(self, backend, call) if backend is not None and backend.indexed else call
