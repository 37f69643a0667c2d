"""`Operator`, and `Operator.plan`: the walk from a key set to the kernel that runs.

A call is one dict look-up, `op.cache[ks]`. At a miss the plan is made under the registry's lock, bound to a callable and
cached. Any change to the registry clears the caches that it can affect under the same lock.
"""

from __future__ import annotations

from turnout.config.installed import installed
from turnout.errors import ArgumentError, CallError, NoKernelError, StaleOperatorError
from turnout.errors import calls as texts
from turnout.keys import ALWAYS, IMPLICIT, TRACKED, UNDEFINED, UNTRACKED
from turnout.operators.kernels import Kernel, bind
from turnout.operators.missing import no_kernel
from turnout.operators.placement import checked, mixed
from turnout.operators.stubs import compile_stub, forget_source
from turnout.operators.values import keys_of
from turnout.state import FRESH, current

from turnout.table import (  # isort: skip
    AMBIGUOUS, CHOSEN, DISABLED, FALLBACK, FALLS_THROUGH, MISSING, ONLY_TRACKED, ONLY_UNTRACKED, PASSED_OVER, Entry, Plan, Step,
    compute_entry,
)  # fmt: skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from turnout.keys import Functionality
    from turnout.operators.packet import Packet
    from turnout.registry import Registrations, Registry
    from turnout.schema import FunctionSchema

    Call = Callable[..., Any]


class Operator:
    """One overload. Call it, `redispatch` it from a given key set, or get the `kernel` of one key.

    Attributes: `namespace`, `name`, `overload` ("" for the unnamed one), `qualified_name` ("mylib::add.Tensor"), `schema`,
    `tags`, `kernels` (key -> registered kernels, oldest first).
    """

    __slots__ = (
        "__weakref__", "_schema", "_special", "cache", "call", "defined_by", "device_check", "device_guard", "kernels",
        "name", "namespace", "overload", "qualified_name", "registry", "schema_text", "tags",
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
        return self.call(*args, **kwargs)

    def _first_call(self, /, *args: Any, **kwargs: Any) -> Any:
        """Takes the place of the stub until the first call compiles it."""
        return self.stub(*args, **kwargs)

    @property
    def stub(self) -> Call:
        """The call stub, compiled from the schema at the first use. Raises StaleOperatorError if the definition was undone."""
        if self.call == self._first_call:
            with self.registry.lock:
                if not self.is_defined:
                    raise StaleOperatorError(texts.stale(self))
                if self.call == self._first_call:  # no other thread was faster
                    self.call = compile_stub(self)
        return self.call

    def lookup(self, ks: int) -> Call:
        """The callable that serves a key set, in the internal convention `call(ks, *args)`."""
        try:
            return self.cache[ks]
        except KeyError:
            return self.resolve(ks)

    def redispatch(self, ks: int, /, *args: Any, **kwargs: Any) -> Any:
        """Call with `ks` instead of the key set of the arguments and the state."""
        if kwargs or len(args) != len(self.schema.arguments):
            args = self.bind(args, kwargs)
        return self.lookup(ks)(ks, *args)

    def key_set(self, args: Iterable[Any]) -> int:
        """The key set of a call with these arguments, the state included, as the stub computes it."""
        ks = keys_of(args)
        state = current()
        if state is FRESH and ks and self.schema.takes_tensors:
            return ks
        return (ks | state[0]) & state[1]

    def call_boxed(self, args: tuple[Any, ...]) -> Any:
        """Call with the full tuple of arguments in schema order."""
        ks = self.key_set(args)
        return self.lookup(ks)(ks, *args)

    def kernel(self, key: str) -> Call:
        """One key's kernel as a function of the schema's arguments. Calling it does not dispatch.

        The kernel gets the key set of the call, from which it may redispatch. Raises NoKernelError when nothing serves the key.
        """
        registry = self.registry
        key = registry.keys.canonical(key)
        with registry.lock:
            entry = self.entry(key)
            if entry is None or entry.kernel is None or entry.kernel.is_fallthrough:
                raise NoKernelError(texts.no_kernel_at(self, key))
            call = bind(entry.kernel, self, key)

        def call_kernel(*args: Any, **kwargs: Any) -> Any:
            bound = self.bind(args, kwargs)
            return call(self.key_set(bound), *bound)

        return call_kernel

    def has_kernel_for_dispatch_key(self, key: str) -> bool:
        """Whether a kernel is registered at this very key, an alias too, rather than serves it from another one."""
        return self.is_defined and bool(self.kernels.get(self.registry.key_name(key)))

    def decompose(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the kernel at CompositeImplicitAutograd, which is written in other operators. NotImplemented if there is none."""
        with self.registry.lock:
            if not self.has_kernel_for_dispatch_key(IMPLICIT):
                return NotImplemented
            call = bind(self.registry.winner(self, IMPLICIT, self.kernels[IMPLICIT]), self, IMPLICIT)
        bound = self.bind(args, kwargs)
        return call(self.key_set(bound), *bound)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in schema order with the schema's defaults. Raises CallError for a wrong number or name."""
        schema = self.schema
        if not kwargs and len(args) == len(schema.arguments):
            return args
        positional = [a for a in schema.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            raise CallError(texts.too_many(self, len(positional), len(args)))
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
        """The entry of the computed table for a runtime key, with specialised fallbacks. Needs the lock."""
        registry = self.registry
        winners = {k: registry.winner(self, k, stack) for k, stack in self.kernels.items() if stack}
        entry = compute_entry(registry.keys.universe, key, winners, registry.fallbacks_by_key)
        if entry is not None and entry.reason == FALLBACK and entry.kernel.specialize is not None:
            special = self._specialized(key, entry.kernel)
            return None if special is None else Entry(special, entry.reason, entry.key)
        return entry

    def _specialized(self, key: str, fallback: Kernel) -> Kernel | None:
        slot = (key, id(fallback))
        if slot not in self._special:
            specialize = fallback.specialize
            made: Any = specialize(self, key) if self.is_defined and specialize is not None else None
            if made is not None and not isinstance(made, Kernel):
                made = Kernel(made, fallback.form, library=fallback.library, label=fallback.label)
            elif made is not None and made.library is None:
                made.library = fallback.library
            self._special[slot] = made
        return self._special[slot]

    def forget(self) -> None:
        """Called by the registry when specialised fallbacks or the kernels of any key set may have changed."""
        self._special.clear()
        self.cache.clear()

    def table(self) -> dict[str, Entry]:
        """The whole computed table, runtime key -> entry, without missing entries.

        Every plugin that can be activated is activated first, so that the table does not depend on what was used before.
        """
        if self.registry.follows_config:
            installed().activate_all()
        with self.registry.lock:
            found = ((key, self.entry(key)) for key in self.registry.keys.universe.runtime_keys)
            return {key: entry for key, entry in found if entry is not None}

    def plan(self, ks: int) -> Plan:
        """How a key set resolves, step by step. Takes the lock, and calls no kernel."""
        with self.registry.lock:
            steps: list[Step] = []
            self.registry.keys.discovered()
            for key, functionality in self.registry.keys.active(ks):
                step = self._step(key, functionality, ks)
                steps.append(step)
                if step.verdict in (CHOSEN, MISSING):
                    return Plan(ks, steps, functionality)
            entry = self.entry(UNDEFINED)
            steps.append(Step(UNDEFINED, entry, CHOSEN if entry is not None else MISSING))
            return Plan(ks, steps, None)

    def _step(self, key: str, functionality: Functionality, ks: int) -> Step:
        if self.registry.is_disabled(key, functionality.name):
            return Step(key, None, DISABLED)
        entry = self.entry(key)
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
        registry = self.registry
        with registry.lock:
            if not self.is_defined:
                raise StaleOperatorError(texts.stale(self))
            plan = self.plan(ks)
            call = self._bind_plan(plan)
            for instrument in registry.instruments:
                call = instrument(self, plan, call)
            self.cache[int(ks)] = call
            return call

    def _bind_plan(self, plan: Plan) -> Call:
        entry = plan.entry
        if entry is None or entry.reason == AMBIGUOUS:

            def call_missing(ks: int, *args: Any) -> Any:
                for argument, value in zip(self.schema.arguments, args, strict=True):
                    if argument.type.is_tensor_list and not value:
                        raise ArgumentError(texts.empty_list(self, argument.name))
                raise NoKernelError(no_kernel(self, plan, args))

            return call_missing
        functionality = plan.functionality
        keys = self.registry.keys
        if functionality is None or not keys.is_guarded(functionality):
            return bind(entry.kernel, self, plan.key)
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
