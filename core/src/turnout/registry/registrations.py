"""`Registrations`: the one way to change a registry, a group of registrations that can be undone.

Every change has four steps: check, mutate, note the undo, clear the affected caches. A check that fails leaves everything as it
was. `undo` takes back all changes, newest first. A step of it may be repeated: an interrupt (Ctrl-C) can end it anywhere.
"""

from __future__ import annotations

from functools import cache, partial

from turnout.devices import Backend, register_device_type, unregister_device_type
from turnout.errors import ConflictError, KernelSignatureError, RegistrationError, UniverseError, printed
from turnout.errors import registry as texts
from turnout.errors.calls import describe
from turnout.keys import EXPLICIT, IMPLICIT, NON_FUNCTIONAL, OLD_NAMES, BackendRow, Functionality
from turnout.keys.rows import KEY_NAME, check_name, check_names
from turnout.operators import Operator
from turnout.operators.kernels import ARRAY, BOXED, FALLTHROUGH, FORMS, INTERNAL, UNBOXED, Kernel, KernelTable, LazyFunction
from turnout.registry.store import REGISTRY, Registry, conflict_error, without_default

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from turnout.registry.store import Source
    from turnout.schema import FunctionSchema

    Call = Callable[..., Any]
    Step = Callable[[], object]  # takes one change back


class Registrations:
    """A group of registrations by one package, which are undone together. As a context manager it undoes them on exit.

    name          used in messages; usually the plugin's name or the namespace
    distribution  the distribution that registers, and its `version`, shown by `explain` and in conflicts
    package       a top-level package, from which the distribution is found when it is shown
    registry      where it registers; None: the registry of the process

    Any combination of alias keys is accepted here. `turnout.library.Library` refuses those that exclude each other.
    """

    def __init__(
        self, name: str, *, distribution: str = "", version: str = "", package: str = "", registry: Registry | None = None
    ) -> None:
        self.name = name
        self.package = package
        self._named = (distribution, version) if distribution or not package else None
        self.registry = REGISTRY if registry is None else registry
        self._undo: list[Step] = []
        self._provided: list[str | KernelTable] = []

    @property
    def distribution(self) -> str:
        """The distribution that registers, "" if there is none."""
        return self._owner[0]

    @property
    def version(self) -> str:
        """The distribution's version."""
        return self._owner[1]

    @property
    def _owner(self) -> tuple[str, str]:
        return self._named or distribution_of(self.package)

    @property
    def origin(self) -> str:
        """`distribution version`, or the name of the group if it has no distribution."""
        return f"{self.distribution} {self.version}".strip() if self.distribution else self.name

    def provided(self, *, tables: bool = True) -> set[str]:
        """What was registered, as "backend:CPU", "functionality:Tracer", "namespace:mylib", "fallback:Autograd".

        `tables` says whether the kernels of tables count, which are many.
        """
        found = {each for each in self._provided if isinstance(each, str)}
        for table in [each for each in self._provided if tables and isinstance(each, KernelTable)]:
            found.update(f"kernel:{name}@{table.key}" for name in table.rows)
        return found

    def provides(self, what: str) -> bool:
        """Whether something was registered, in the words of `provided`; of kernels, those that no table has."""
        return what in self._provided

    # ---- operators

    def define(
        self, schema: str, *, namespace: str | None = None, tags: Iterable[str] = (), cache: dict[int, Call] | None = None,
        trusted: bool = False,
    ) -> Operator:  # fmt: skip
        """Define an operator from its schema text, "name.overload(...) -> ...", which may start with "namespace::".

        `cache` is the operator's dict from key set to callable, if compiled functions hold it already. `trusted` skips the
        checks of a schema that was checked at build time. Raises SchemaError for a bad schema, ConflictError for a name that
        is defined already.
        """
        registry = self.registry
        if not isinstance(schema, str):
            raise RegistrationError(f"define: a schema is a text, got {describe(schema)}")
        head = schema[: schema.index("(")] if "(" in schema else schema
        if "::" not in head:
            schema = f"{namespace or self.name}::{schema}"
        if trusted:
            parsed, qualified = None, schema[: schema.index("(")]
        else:
            import turnout.schema.kernels  # noqa: F401 - for the checks under the lock, which must not import
            from turnout.schema import FunctionSchema

            parsed = FunctionSchema.parse(schema)
            qualified = without_default(str(parsed.name))
        with registry.lock:
            op = registry.get(qualified) or Operator(registry, qualified)
            if op.schema_text is not None:
                error = ConflictError(texts.defined_twice(op, self))
                error.operator, error.definer = qualified, op.defined_by.name if op.defined_by is not None else ""
                raise error
            if parsed is not None:
                self._check_definition(op, parsed)
            undo = partial(self._undefine, op)
            try:
                op.schema_text = schema
                op.tags = tuple(tags)
                op.defined_by = self
                if cache is not None:
                    op.cache = cache
                registry.attach(op)
                registry.changed(op)
                self._did(f"namespace:{op.namespace}", undo)
            except BaseException:  # no memory, or an interrupt
                undo()
                raise
        return op

    def _check_definition(self, op: Operator, schema: FunctionSchema) -> None:
        """Check for ties with other overloads, and the kernels that wait for this definition."""
        from turnout.schema import overloads
        from turnout.schema.kernels import check_kernel_signature

        packet = self.registry.packet(op.namespace, op.name)
        if packet is not None:
            overloads.check_no_tie([other.schema for other in packet], schema)
        for stack in op.kernels.values():
            for kernel in stack:
                if _has_signature(kernel):
                    check_kernel_signature(kernel.fn, schema, with_keyset=kernel.with_keyset)

    def _undefine(self, op: Operator) -> None:
        self.registry.detach(op)
        op.undefine()
        self.registry.discard(op)
        self.registry.changed(op)

    # ---- kernels

    def impl(
        self, op_name: str, key: str, fn: Any, *, form: str = UNBOXED, with_keyset: bool = False, tracked_only: bool = False,
        allow_override: bool = False, calls_operators: bool = True,
        binder: Callable[[Operator, Kernel, str], Call] | None = None, label: str = "", waits: bool = False,
        yields: bool = False, may_decline: bool = False, composes: Callable[[tuple[Any, ...]], bool] | None = None,
    ) -> Kernel:  # fmt: skip
        """Register a kernel for "name.overload" (or "namespace::name.overload") at a runtime or alias key.

        The operator may be defined later. With `waits` the key may be unknown: the kernel serves it once a backend or
        functionality adds the key. The other parameters are those of `Kernel`. Raises KernelSignatureError when `fn` cannot
        take the schema's arguments, UniverseError for an unknown key, ConflictError when another library has a kernel there.
        """
        registry = self.registry
        _check_form(fn, form, made_later=binder is not None)
        if not isinstance(op_name, str):
            raise RegistrationError(f"impl: the name of an operator is a text, got {describe(op_name)}")
        qualified = without_default(op_name if "::" in op_name else f"{self.name}::{op_name}")
        kernel = Kernel(
            fn, form, library=self, with_keyset=with_keyset, tracked_only=tracked_only, allow_override=allow_override,
            calls_operators=calls_operators, binder=binder, label=label, yields=yields, may_decline=may_decline,
            composes=composes,
        )  # fmt: skip
        if _has_signature(kernel):
            import turnout.schema.kernels  # noqa: F401 - for the check under the lock, which must not import
        registry.keys.discovered()
        registry.follow_config()  # which may import: before the lock
        with registry.lock:
            if not waits or registry.keys.universe.is_key(OLD_NAMES.get(key, key)):
                key = registry.key_name(key)
            if kernel.is_fallthrough and key in (IMPLICIT, EXPLICIT, NON_FUNCTIONAL):
                raise RegistrationError(texts.fallthrough_at_alias(qualified, key))
            # A backend gets hundreds of kernels on arrays, where no source has one: they must not define operators. Neither
            # must a kernel that yields to what a source has.
            known = registry.get(qualified, define=form != ARRAY and not yields)
            if known is not None and _has_signature(kernel) and known.is_defined:
                from turnout.schema.kernels import check_kernel_signature

                check_kernel_signature(fn, known.schema, with_keyset=with_keyset)
            conflict = registry.conflict(known, key, kernel) if known is not None else None
            if known is None or conflict is None:
                op = registry.operator(qualified)
                try:
                    op.kernels.setdefault(key, []).append(kernel)
                    registry.changed(op)
                    self._did(f"kernel:{qualified}@{key}", partial(self._remove_kernel, op, key, kernel))
                except BaseException:  # no memory, or an interrupt
                    self._remove_kernel(op, key, kernel)
                    raise
                return kernel
        raise conflict_error(known, key, kernel, *conflict)  # without the lock: its text may import a kernel

    def impl_table(self, key: str, rows: Mapping[str, Any], make: Callable[[str, Any], Kernel], *, yields: bool = False) -> None:
        """Register a kernel of the form "array" for each of many operators at one key, as `impl` does, and whole or not at all.

        `rows` is qualified name -> what `make(name, row)` makes the kernel of when the operator is first named; it imports
        nothing. `yields` is that of `Kernel`, and of all of them. Raises UniverseError for an unknown key, ConflictError when
        another library has a kernel there.
        """
        registry = self.registry
        registry.keys.discovered()
        registry.follow_config()  # which may import: before the lock
        with registry.lock:
            table = KernelTable(self, registry.key_name(key), rows, make, yields)
            named = [op for name in registry.settles(table) if (op := registry.get(name, define=False)) is not None]
            conflicts = ((op, registry.conflict(op, table.key, table.kernel(op.qualified_name))) for op in named)
            op, found = next((each for each in conflicts if each[1] is not None), (None, None))
            if op is None or found is None:
                try:
                    registry.tables = (*registry.tables, table)
                    for op in named:
                        table.add_to(op)
                        registry.changed(op)
                    self._did(table, partial(self._remove_table, table))
                except BaseException:  # no memory, or an interrupt
                    self._remove_table(table)
                    raise
                return
        raise conflict_error(op, table.key, table.kernel(op.qualified_name), *found)  # without the lock, as in `impl`

    def _remove_table(self, table: KernelTable) -> None:
        registry = self.registry
        registry.tables = tuple([each for each in registry.tables if each is not table])
        for name, kernel in table.made.items():
            op = registry.get(name, define=False)
            if op is not None:
                self._remove_kernel(op, table.key, kernel)

    def _remove_kernel(self, op: Operator, key: str, kernel: Kernel) -> None:
        stack = op.kernels.get(key, [])
        if kernel in stack:
            stack.remove(kernel)
        if not stack:
            op.kernels.pop(key, None)
        self.registry.discard(op)
        self.registry.changed(op)

    def fallback(
        self, key: str, fn: Any, *, form: str = BOXED, tracked_only: bool = False, calls_operators: bool = True,
        specialize: Callable[..., Any] | None = None, by_key: bool = False, label: str = "",
    ) -> Kernel:  # fmt: skip
        """Register the fallback of a runtime key, or of the alias Autograd or Autocast, for all operators.

        `specialize(op)`, or `specialize(op, key)` with `by_key`, may give each operator its own: a function of the same form, a
        Kernel, FALLTHROUGH, or None for "missing". At an alias it is called for each runtime key. Raises RegistrationError when
        the key has a fallback already.
        """
        registry = self.registry
        _check_form(fn, form, made_later=specialize is not None)
        kernel = Kernel(
            fn, form, library=self, tracked_only=tracked_only, calls_operators=calls_operators, label=label,
            specialize=specialize if by_key or specialize is None else lambda op, key: specialize(op),
        )  # fmt: skip
        registry.keys.discovered()
        with registry.lock:
            key = registry.key_name(key)
            other = registry.fallbacks.get(key)
            if other is None:
                registry.fallbacks[key] = kernel
                self._did(f"fallback:{key}", lambda: registry.fallbacks.pop(key, None), affects_all=True)
                return kernel
        raise RegistrationError(texts.fallback_twice(key, other, kernel))

    def fallthrough(self, key: str) -> Kernel:
        """Let every operator without a kernel at `key` fall through to the next key."""
        return self.fallback(key, FALLTHROUGH, form=INTERNAL)

    # ---- the universe

    def backend(self, backend: Backend, **row: Any) -> None:
        """Add a backend: its name to the universe, its device string to `turnout.device`.

        A plugin's manifest has its row already. `rank`, `functional_only`, `dataless` and `adopts` (see `BackendRow`) are for
        a backend without a manifest. Raises UniverseError when the name or the device string is taken, or is not one.
        """
        registry = self.registry
        if not isinstance(backend, Backend):
            raise UniverseError(f"a backend is of a class that derives from turnout.devices.Backend, got {describe(backend)}")
        check_names(type(backend).__name__, backend.name, backend.device_type)
        registry.keys.discovered()
        with registry.lock:
            added = not registry.keys.is_installed_backend(backend.name)
            if not added and backend.name in registry.backends:
                raise UniverseError(f"backend {backend.name} exists already")
            if added:
                registry.keys.add_backend(BackendRow(backend.name, device=backend.device_type, **row))
            try:
                register_device_type(backend.device_type, backend)
            except UniverseError:
                if added:
                    registry.keys.remove_backend(backend.name)
                raise
            backend.keys = registry.keys.tensor_bits(backend.name)
            backend.dense = registry.keys.bit("Dense") | registry.keys.backend_bit(backend.name)
            registry.backends[backend.name] = backend

            def undo() -> None:
                registry.backends.pop(backend.name, None)
                unregister_device_type(backend.device_type)
                if added:
                    registry.keys.remove_backend(backend.name)

            self._did(f"backend:{backend.name}", undo, affects_all=True)
            self._provided.append(f"device:{backend.device_type}")
            backend.registered(self)

    def functionality(self, name: str, *, per_backend: str | None = None, **row: Any) -> None:
        """Add a functionality, placed by `before` or `after` another one. A plugin names its own in the manifest.

        `per_backend` is None for one key of that name, else the prefix of one key per backend. `before`, `after`, `passes`,
        `opt_in`, `backend_key`, `holds_values` and `asks_lines` are those of `turnout.keys.Functionality`.
        """
        keys = self.registry.keys
        check_name("functionality", KEY_NAME, name, "Profiler")
        keys.discovered()
        with self.registry.lock:
            keys.add_functionality(Functionality(name, per_backend, **row))
            self._did(f"functionality:{name}", lambda: keys.remove_functionality(name), affects_all=True)

    def alias(self, name: str, covers: Iterable[str]) -> None:
        """Declare an alias key of a functionality (rule 2.5 of the computed table)."""
        self.registry.keys.discovered()
        with self.registry.lock:
            self.registry.keys.add_alias(name, covers)
            self._did(f"alias:{name}", lambda: self.registry.keys.remove_alias(name), affects_all=True)

    def source(self, namespace: str, source: Source) -> None:
        """Let `source` define the operators of a namespace, through this group, when they are first used.

        Raises ConflictError when the namespace has a source already.
        """
        with self.registry.lock:
            self.registry.add_source(namespace, source)
            self._did(f"namespace:{namespace}", lambda: self.registry.remove_source(namespace))

    def service(self, functionality: str, offered: Any) -> None:
        """Offer an object that other packages get from `turnout.plugins.service(functionality)`.

        Raises ConflictError when another library offers one for the functionality.
        """
        registry = self.registry
        with registry.lock:
            if functionality in registry.services:
                raise ConflictError(f"{functionality} has a service already; {self.origin} cannot offer a second one")
            registry.services[functionality] = offered
            self._did(f"service:{functionality}", lambda: registry.services.pop(functionality, None))

    def keeps_lines(self, keeping: Callable[[Call], Call]) -> None:
        """Let `keeping(call)` wrap the kernels of functionalities with `asks_lines`, to keep lines with what is recorded."""
        with self.registry.lock:
            self.registry.line_keepers.append(keeping)
            self._undo.append(partial(_let_go, self.registry.line_keepers, keeping))
            self.registry.changed()

    def context_note(self, describe: Callable[[], str]) -> None:
        """Let `explain` show the line that `describe()` returns about the present context; "" for none."""
        with self.registry.lock:
            self.registry.context_notes.append(describe)
            self._undo.append(partial(_let_go, self.registry.context_notes, describe))

    def on_undo(self, callback: Callable[[], object]) -> None:
        """Run `callback` when the group is undone, in its place among the other undos."""
        with self.registry.lock:
            self._undo.append(callback)

    # ---- undo

    def _did(self, what: str | KernelTable, undo: Step, *, affects_all: bool = False) -> None:
        """Note a change and its undo. `affects_all`: both clear the caches of all operators."""
        self._provided.append(what)
        if affects_all:
            self._undo.append(self.registry.changed)  # runs after `undo`, before which it is noted
        self._undo.append(undo)
        if affects_all:
            self.registry.changed()

    def undo(self) -> None:
        """Take back everything, newest first; overridden kernels are back. A second call does nothing.

        A step that raises, such as one for a functionality by which another is placed, does not stop the other steps. The
        first error is raised at the end, and another `undo` tries the failed steps again. After an interrupt, too, all
        other steps run, and the interrupted one again.
        """
        self.undo_to((0, 0))

    def mark(self) -> tuple[int, int]:
        """The present point, for `undo_to`."""
        return len(self._undo), len(self._provided)

    def undo_to(self, mark: tuple[int, int]) -> None:
        """Take back everything since `mark`, to make several registrations whole or not at all."""
        begun: list[Step] = []
        failed: list[Step] = []
        with self.registry.lock:
            try:
                problem = self._take_back(mark[0], begun, failed)
            except BaseException:  # an interrupt
                self._undo += begun
                self._take_back(mark[0], [], failed)
                raise
            finally:
                self._undo += reversed(failed)
            if problem is not None:
                try:
                    raise problem
                finally:
                    problem = None  # it holds this frame, and so the library, which would wait for the next collection
            del self._provided[mark[1] :]

    def _take_back(self, kept: int, begun: list[Step], failed: list[Step]) -> Exception | None:
        """Take back all changes but the first `kept`. Returns the first error. An interrupt leaves in `begun` what it ended."""
        problem: Exception | None = None
        while len(self._undo) > kept:
            step = self._undo[-1]
            begun.append(step)
            self._undo.pop()  # before it runs: a callback may call `undo`
            try:
                step()
            except Exception as error:  # noqa: BLE001 - an `on_undo` callback may raise anything
                problem = problem or error
                failed.append(step)
            begun.pop()
        try:
            return problem
        finally:
            problem = None  # it holds this frame: see `undo_to`

    def __enter__(self) -> Registrations:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        return f"<Registrations {self.name} from {self.origin}>"


@cache
def distribution_of(package: str) -> tuple[str, str]:
    """(name, version) of the distribution of a top-level package; ("", "") when none is known."""
    from importlib import metadata

    found = metadata.packages_distributions().get(package)
    return (found[0], metadata.version(found[0])) if found else ("", "")


def _let_go(held: list[Any], each: object) -> None:
    """Take an object out of a list, if it is there: a step of `undo` may be repeated."""
    if each in held:
        held.remove(each)


def _check_form(fn: Any, form: str, *, made_later: bool) -> None:
    """Raise for a form or function that no call could run. `made_later`: a binder or specialiser makes the function."""
    if form not in FORMS:
        raise RegistrationError(f"a kernel's form is one of {', '.join(FORMS)}, got {printed(form)}")
    if not made_later and not callable(fn) and fn is not FALLTHROUGH:
        raise KernelSignatureError(f"a kernel is a function or FALLTHROUGH, got {describe(fn)}")


def _has_signature(kernel: Kernel) -> bool:
    """Whether the function takes the schema's arguments and can be inspected now."""
    made_later = kernel.binder is not None or isinstance(kernel.fn, LazyFunction)
    return kernel.form == UNBOXED and not made_later and not kernel.is_fallthrough
