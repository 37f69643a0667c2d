"""`Library`: definitions, kernels and fallbacks that live as long as the object, as in torch.library.

Each has one `Registrations`, a group of the registry, which is undone with the library or when the library is collected.
Every check comes before any change: a call that raises leaves the registry unchanged.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import Any, NoReturn

from turnout import plugins
from turnout.errors import CallError, ConflictError, NoKernelError, RegistrationError, SchemaError, UniverseError, printed
from turnout.errors import library as texts
from turnout.errors.calls import describe
from turnout.errors.library import LibraryError
from turnout.keys import EXPLICIT, IMPLICIT, DispatchKeySet
from turnout.operators import Operator, shorten
from turnout.operators.kernels import ARRAY, FALLTHROUGH, INTERNAL, UNBOXED, Kernel
from turnout.plugins import providers
from turnout.registry import REGISTRY, Registrations
from turnout.schema import FunctionSchema
from turnout.schema.kernels import check_kernel_signature

Call = Callable[..., Any]

RESERVED = ("prim", "_")  # without operators; "_" is the namespace of fallbacks
_KINDS = ("DEF", "IMPL", "FRAGMENT")
# namespace -> the group of its library of kind DEF, of which there is at most one.
_DEFINERS: dict[str, Registrations] = {}


def fallthrough_kernel() -> NoReturn:
    """A kernel or fallback that lets calls fall through to the next key. It is never called.

    Example:
        >>> turnout.library.Library("docs", "IMPL").impl("half", turnout.library.fallthrough_kernel, "AutogradCPU")
    """
    raise NotImplementedError("fallthrough_kernel stands for no kernel and is never called")


def calling_package() -> str:
    """The top-level package of the first caller outside of core."""
    frame: FrameType | None = sys._getframe(1)
    name = ""
    while frame is not None and f"{name}.".startswith(("turnout.", ".")):
        name, frame = str(frame.f_globals.get("__name__", "")), frame.f_back
    return name.partition(".")[0]


class Library:
    """A group of registrations for one namespace.

    ns            the namespace; "_", with kind "IMPL", for fallbacks
    kind          "DEF" for its one owner, "FRAGMENT" for any other that defines operators in it, "IMPL" for kernels only
    dispatch_key  with "IMPL": the key of every kernel

    Its registrations are undone by `undo()`, at the end of a `with` block, or when the object is collected, newest first. A
    registered function that refers to the library keeps it alive; then only the first two undo it.
    Raises LibraryError for an unknown kind, a reserved namespace or a key beside "DEF" and "FRAGMENT", UniverseError for an
    unknown key, ConflictError for a second "DEF".
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        try:
            self._begin(ns, kind, dispatch_key, calling_package())
        except Exception as error:
            shorten(error)
            raise

    def _begin(self, ns: str, kind: str, dispatch_key: str, package: str) -> None:
        if kind not in _KINDS:
            raise LibraryError(texts.UNKNOWN_KIND.format(printed(kind)))
        if not isinstance(ns, str) or not ns.isidentifier():
            raise LibraryError(texts.BAD_NAMESPACE.format(printed(ns)))
        if ns in RESERVED and kind != "IMPL":
            raise LibraryError(texts.reserved(ns, kind))
        if dispatch_key and kind != "IMPL":
            raise LibraryError(texts.key_with_definitions(ns, kind, dispatch_key))
        finish_undoing()
        self.ns = ns
        self.kind = kind
        self.dispatch_key = REGISTRY.key_name(dispatch_key) if dispatch_key else ""
        self.registrations = Registrations(ns, package=package)
        self._live = True
        # Not at exit, where clearing all caches would cost every process time.
        weakref.finalize(self, _undo_collected, self.registrations).atexit = False
        if kind == "DEF":
            _own(ns, self.registrations)

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.undo()

    def undo(self) -> None:
        """Take back all registrations; overridden kernels are back. From then on the library cannot register."""
        self._live = False
        self.registrations.undo()

    _destroy = undo  # as torch.library calls it

    # ---- registering

    def define(self, schema: str, alias_analysis: str = "", *, tags: str | Iterable[str] = ()) -> str:
        """Define an operator from "name.overload(Tensor x) -> Tensor"; returns its name, overload included.

        `alias_analysis` is checked and has no effect: the schema says what an operator writes and shares. Raises SchemaError
        for a schema that is not valid or ties with another overload, ConflictError for a name that is taken.
        """
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise LibraryError(texts.ALIAS_ANALYSIS.format(alias_analysis))
        self._check_live()
        if self.kind == "IMPL":
            raise LibraryError(texts.DEFINITION_IN_IMPL.format(schema=schema, namespace=self.ns))
        name = schema.partition("(")[0].strip()
        if "::" in name and not name.startswith(self.ns + "::"):
            raise LibraryError(texts.other_namespace(name, self.ns))
        self.registrations.define(schema, namespace=self.ns, tags=(tags,) if isinstance(tags, str) else tags)
        # differs from torch: `Library.define` returns the name with its overload, so that `impl` means the same operator.
        return name

    def impl(
        self, op_name: str | Operator, fn: Call, dispatch_key: str = "", *, with_keyset: bool = False,
        allow_override: bool | None = None, arrays: bool = False,
    ) -> None:  # fmt: skip
        """Register a kernel for an operator, which may be defined later.

        dispatch_key    a runtime or alias key; by default the library's, else CompositeImplicitAutograd
        with_keyset     `fn` takes the key set of the call, a DispatchKeySet, first
        arrays          `fn` takes and returns the backend's arrays in place of tensors
        allow_override  True overrides another library's kernel; False refuses a second kernel at the key, of this library too

        Raises KernelSignatureError when `fn` cannot take the arguments, UniverseError for an unknown key, RegistrationError when
        a kernel excludes this one. # differs from torch: `Library.impl` raises ConflictError where another library has a kernel.
        """
        require_callable("impl", fn)
        key = dispatch_key or self.dispatch_key
        if self.dispatch_key and key != self.dispatch_key:
            raise LibraryError(
                texts.OTHER_KEY.format(op=getattr(op_name, "qualified_name", op_name), own=self.dispatch_key, key=key)
            )
        name, keys = self.qualified(op_name), [key or IMPLICIT]
        self.impl_all(name, keys, fn, with_keyset=with_keyset, allow_override=allow_override, arrays=arrays)

    def impl_all(
        self, op_name: str, keys: Iterable[str], fn: Call, *, with_keyset: bool = False,
        allow_override: bool | None = None, arrays: bool = False, tracked_only: bool = False,
        binder: Callable[[Operator, Kernel, str], Call] | None = None, checked: bool = True, label: str = "",
    ) -> None:  # fmt: skip
        """Register one function at several keys, or at none if one is refused: `impl` for the functions of this package.

        `binder` makes the callable from `fn`. `checked=False` skips the check of the signature.
        """
        self._check_live()
        passes_on = fn in (fallthrough_kernel, FALLTHROUGH)
        kernel = FALLTHROUGH if passes_on else _with_key_set(fn) if with_keyset else fn
        with_keyset = with_keyset and not passes_on
        form = UNBOXED if binder is None else INTERNAL
        if arrays and not passes_on:
            if with_keyset:
                raise LibraryError(texts.ARRAYS_WITH_KEYSET.format(op_name))
            form, binder = ARRAY, on_arrays
        keys = list(dict.fromkeys(REGISTRY.key_name(key) for key in keys))
        overrides = bool(allow_override)
        candidate = Kernel(kernel, library=self.registrations, with_keyset=with_keyset, allow_override=overrides)
        for key in keys:
            check_kernel(op_name, key, candidate, checked=checked)  # without the lock, because an error may import kernels
        with REGISTRY.lock:
            for key in keys:
                check_kernel(op_name, key, candidate, checked=checked)
            second = [(key, there[-1]) for key in keys if allow_override is False and (there := self._there(op_name, key))]
            for key in [] if second else keys:
                self.registrations.impl(
                    op_name, key, kernel, form=form, with_keyset=with_keyset, allow_override=overrides,
                    tracked_only=tracked_only, binder=binder, label=label,
                )  # fmt: skip
        for key, first in second:
            raise ConflictError(texts.second_kernel(op_name, key, first, candidate))

    def fallback(self, fn: Call, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Register the fallback of a key for all operators: `fn(op, *args, **kwargs)`, or `fallthrough_kernel`.

        Positional arguments come by position and keyword-only ones by keyword, all of them, with the schema's defaults filled
        in. `with_keyset` puts the DispatchKeySet in front of `op`. Only a library of namespace "_" has fallbacks. Raises
        RegistrationError when the key has one already.
        """
        require_callable("fallback", fn)
        if self.ns != "_":
            raise LibraryError(texts.FALLBACK_NAMESPACE.format(self.ns))
        key = dispatch_key or self.dispatch_key
        if not key:
            raise LibraryError(texts.NO_KEY)
        self._check_live()
        if fn in (fallthrough_kernel, FALLTHROUGH):
            self.registrations.fallthrough(key)
            return

        def adapted(op: Operator) -> Kernel:
            return Kernel(_spread(fn, op, with_keyset), INTERNAL, library=self.registrations)

        self.registrations.fallback(key, fn, form=INTERNAL, specialize=adapted)

    # ---- names and states

    def qualified(self, op_name: str | Operator) -> str:
        """The qualified name of an operator of this namespace. Raises LibraryError for another namespace."""
        if isinstance(op_name, Operator):
            op_name = op_name.qualified_name
        if not isinstance(op_name, str):
            raise LibraryError(texts.BAD_OP.format("impl", op_name))
        if "::" not in op_name:
            return f"{self.ns}::{op_name}"
        if not op_name.startswith(self.ns + "::"):
            raise LibraryError(texts.other_namespace(op_name, self.ns))
        return op_name

    def _there(self, op_name: str, key: str) -> list[Kernel]:
        """The kernels that are registered at a key."""
        op = REGISTRY.get(op_name)
        return [] if op is None else op.kernels.get(key, [])

    def _check_live(self) -> None:
        finish_undoing()
        if not self._live:
            raise LibraryError(texts.UNDONE.format(self.ns))


# ---- libraries without an owner

_KEPT: dict[tuple[str, str], Library] = {}


def kept(namespace: str, package: str) -> Library:
    """The library for what a package registers through functions. It lives as long as the process."""
    with REGISTRY.lock:
        library = _KEPT.get((namespace, package))
        if library is None:
            library = _KEPT[namespace, package] = Library(namespace, "FRAGMENT")
            library.registrations.package = package
        return library


_COLLECTED: deque[Registrations] = deque()


def _undo_collected(group: Registrations) -> None:
    """Undo now or, if the registry is being changed, before the next registration."""
    _COLLECTED.append(group)
    # The collector may run in the middle of an import, which must not wait for the lock. Only `_is_owned` says whether this
    # thread has the lock already.
    if not REGISTRY.lock._is_owned() and REGISTRY.lock.acquire(blocking=False):  # type: ignore[attr-defined]
        try:
            finish_undoing()
        finally:
            REGISTRY.lock.release()


def finish_undoing() -> None:
    """Undo the groups of libraries that were collected."""
    while _COLLECTED:
        try:
            group = _COLLECTED.popleft()
        except IndexError:  # another thread was faster
            return
        group.undo()


# ---- checks and adapters


def require_callable(api: str, *functions: object) -> None:
    """Raise CallError for a value that is not a function."""
    for function in functions:
        if not callable(function) and function is not FALLTHROUGH:
            raise CallError(texts.NOT_CALLABLE.format(api, describe(function)))


def registered(api: str, func: Call | None, register: Callable[[Call], object]) -> Any:
    """Register `func` and return it; if it is None, return the decorator that does so."""

    def decorator(function: Call) -> Call:
        require_callable(api, function)
        register(function)
        return function

    return decorator if func is None else decorator(func)


def _own(namespace: str, group: Registrations) -> None:
    """Note the library of kind DEF. Raises ConflictError if another, a plugin or core defines the namespace."""
    with REGISTRY.lock:
        definers = (op.defined_by for packet in REGISTRY.namespace(namespace).values() for op in packet)
        first = _DEFINERS.get(namespace) or next((d for d in definers if d is not None and not d.package), None)
        if first is not None:
            raise ConflictError(texts.second_definer(namespace, first.origin))
        group.on_undo(lambda: _DEFINERS.pop(namespace, None))
        _DEFINERS[namespace] = group


def on_arrays(op: Operator, kernel: Kernel, key: str) -> Call:
    """The binder of kernels on arrays, which get the backend's own arrays in place of tensors.

    Raises NoKernelError if the key is not that of a backend with arrays.
    """
    backend = REGISTRY.backends.get(key)
    call = None if backend is None else backend.bind_array_kernel(op, kernel)
    if call is None:
        raise NoKernelError(texts.no_arrays(op, kernel, key))
    return call


def check_kernel(op_name: str, key: str, kernel: Kernel, *, checked: bool = True) -> None:
    """Raise the errors of registering `kernel`, and RegistrationError if another excludes it. Needs the registry's lock."""
    op = REGISTRY.get(op_name)
    if op is None:
        return
    if not kernel.is_fallthrough:
        if op.is_defined and checked:
            check_kernel_signature(kernel.fn, op.schema, with_keyset=kernel.with_keyset)
        for other in _excluded_by(key):
            stack = [k for k in op.kernels.get(other, ()) if not k.is_fallthrough]
            if stack:
                raise RegistrationError(texts.composites(op, key, other, stack[-1]))
    REGISTRY.check_conflict(op, key, kernel)


def _excluded_by(key: str) -> tuple[str, ...]:
    """The keys whose kernels exclude one at `key`, because few users know which of the two would run."""
    dataless = REGISTRY.keys.dataless_backends
    if key == IMPLICIT:
        return (EXPLICIT, *dataless)
    return (IMPLICIT,) if key == EXPLICIT or key in dataless else ()


def check_redefinition(op: Operator, schema: str, group: Callable[[Any], bool]) -> None:
    """Raise SchemaError or KernelSignatureError if `op` cannot be redefined with another schema.

    `group(library)` says whether the library's kernels are undone with the old definition.
    """
    from turnout.schema import overloads

    parsed = FunctionSchema.parse(schema)
    packet = REGISTRY.packet(op.namespace, op.name)
    overloads.check_no_tie([other.schema for other in packet or () if other is not op], parsed)
    for stack in op.kernels.values():
        for kernel in stack:
            if kernel.form != INTERNAL and not kernel.is_fallthrough and not group(kernel.library):
                check_kernel_signature(kernel.fn, parsed, with_keyset=kernel.with_keyset)


def _with_key_set(fn: Call) -> Call:
    new = int.__new__

    @functools.wraps(fn)
    def with_key_set(ks: int, *args: Any, **kwargs: Any) -> Any:
        return fn(new(DispatchKeySet, ks), *args, **kwargs)

    return with_key_set


def _spread(fn: Call, op: Operator, with_keyset: bool) -> Call:
    """A fallback in torch's form as a callable of the internal convention."""

    @functools.wraps(fn)
    def spread(ks: int, *args: Any) -> Any:
        given, keywords = op.schema.by_keyword(args)
        if with_keyset:
            return fn(int.__new__(DispatchKeySet, ks), op, *given, **keywords)
        return fn(op, *given, **keywords)

    return spread


def key_of(word: str) -> str:
    """The key of a device type, of "default" (CompositeExplicitAutograd), or of a dispatch key's name.

    The backend's plugin may be inactive or not installed: its kernels wait, and nothing is activated. Raises DeviceError for
    any other word.
    """
    if word == "default":
        return EXPLICIT
    active = {backend.device_type: backend.name for backend in REGISTRY.backends.values()}
    if isinstance(word, str):
        if word in active:
            return active[word]
        with suppress(UniverseError):
            return REGISTRY.key_name(word)
    rows = (row for row in providers.data().values() if len(row["devices"]) == len(row["backends"]) == 1)
    known: dict[str, str] = {row["devices"][0]: row["backends"][0] for row in rows}
    known.update((backend.device, backend.name) for each in plugins.catalog().manifests for backend in each.backends)
    if not isinstance(word, str) or word not in known:
        raise texts.unknown_type(word, active.keys() | known.keys())
    return known[word]


def listed(words: Any) -> list[Any]:
    """A device or key, or several, as a list."""
    return [words] if isinstance(words, str) or not isinstance(words, Iterable) else list(words)


def parse_namespace(api: str, qualname: object) -> tuple[str, str]:
    """("mylib", "sin.overload") of "mylib::sin.overload". Raises LibraryError."""
    if not isinstance(qualname, str):
        raise LibraryError(texts.BAD_OP.format(api, qualname))
    namespace, separator, name = qualname.partition("::")
    if not separator or not namespace or not name or "::" in name:
        raise LibraryError(texts.BAD_NAME.format(api, printed(qualname)))
    return namespace, name


def parse_nameless(api: str, name: str, schema: object) -> FunctionSchema:
    """The schema of a text without a name. Raises LibraryError for a wrong form, SchemaError for a bad schema."""
    if not isinstance(schema, str) or not schema.lstrip().startswith("("):
        raise LibraryError(texts.BAD_SCHEMA.format(api, printed(schema)))
    try:
        return FunctionSchema.parse(f"{name}{schema.strip()}")
    except SchemaError:
        if "->" not in schema:
            raise LibraryError(texts.BAD_SCHEMA.format(api, printed(schema))) from None
        raise
