"""A third party's native function file at run time: its operators are defined, and kernel names become functions of a module.

Entries have the same form as in `native_functions.yaml`. Kernels at composite keys take tensors. Kernels at backend keys also
take tensors; with `arrays=True`, and always for structured operators, they take the backend's arrays instead. A kernel for a
backend that does not exist yet waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from os import PathLike, fspath
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from turnout.operators.kernels import ARRAY, INTERNAL, LazyFunction
from turnout.registry import REGISTRY
from turnout_aten.declarations import variants as autogen
from turnout_aten.declarations.entries import NOT_DENSE
from turnout_aten.declarations.model import NativeFunction, NativeFunctions
from turnout_aten.declarations.reading import load
from turnout_aten.errors.declarations import DeclarationError, Problem, near

if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout.registry import Registrations
    from turnout_aten.backend.tensor_backend import TensorBackend
    from turnout_aten.declarations.tables import Table

    Call = Callable[..., Any]

META = "Meta"


def load_yaml(
    path: str | PathLike[str],
    *,
    module: ModuleType | str,
    library: Registrations,
    arrays: bool = False,
    shapes: Mapping[str, Call] | None = None,
    tags: Iterable[str] = (),
) -> NativeFunctions:
    """Define the operators of a yaml file and register the kernels that it names.

    path     the file; entries without a namespace use the library's name
    module   the module of the kernels; `dispatch: CPU: ops.f` is its attribute path ops.f
    library  receives the registrations; undoing it undoes them
    arrays   whether kernels of dense backends take the backend's arrays, not tensors
    shapes   structured out operator -> its shape function; by default the kernel that the entry names for Meta
    tags     allowed tags in addition to the standard ones

    Raises one DeclarationError for all problems of the file, including wrong kernel names, and KernelSignatureError for a
    kernel that cannot take the schema's arguments. In either case nothing stays registered.
    """
    if isinstance(module, str):
        module = import_module(module)
    functions = load(path, namespace=library.name, tags=tags)
    kernels = resolve_kernels(functions, module)
    shapes = _shape_functions(functions, kernels, shapes or {}, fspath(path))
    with library.registry.lock:
        before = library.mark()
        try:
            for function in functions:
                op = library.define(function.schema_text, namespace=function.namespace, tags=sorted(function.tags))
                op.device_check = function.device_check == "ExactSame"
                op.device_guard = function.device_guard
            for function in functions:
                _register(function, functions, kernels, shapes, library, arrays)
        except BaseException:
            library.undo_to(before)
            raise
    return functions


def resolve_kernels(functions: NativeFunctions, module: ModuleType) -> dict[tuple[str, str], Call]:
    """(operator, key) -> function of `module`. Raises DeclarationError with every name that is not a function."""
    found: dict[tuple[str, str], Call] = {}
    problems: list[Problem] = []
    for f in functions:
        for key, name in () if f.is_generated else f.dispatch.items():
            value: Any = module
            for part in name.split("."):
                value = getattr(value, part, None)
            if callable(value):
                found[f.qualified_name, key] = value
                continue
            fact = f"{module.__name__} has no function '{name}'{near(name, dir(module))}"
            if value is not None:
                fact = f"{module.__name__}.{name} is not a function: {value!r}"
            problems.append(Problem(f.source, f.line, f.name, f"dispatch: {key}: {fact}"))
    if problems:
        raise DeclarationError(problems)
    return found


def _shape_functions(
    functions: NativeFunctions, kernels: Mapping[tuple[str, str], Call], given: Mapping[str, Call], source: str
) -> dict[str, Call]:
    shapes: dict[str, Call] = {}
    problems: list[Problem] = []
    for f in functions:
        if not f.structured:
            continue
        shape = given.get(f.name) or given.get(f.qualified_name) or kernels.get((f.qualified_name, META))
        if shape is None:
            fact = "structured: the shape function is missing; name it as `dispatch: Meta: f`, or pass it in shapes="
            problems.append(Problem(source, f.line, f.name, fact))
        else:
            shapes[f.qualified_name] = shape
    if problems:
        raise DeclarationError(problems)
    return shapes


def _register(
    f: NativeFunction,
    functions: NativeFunctions,
    kernels: Mapping[tuple[str, str], Call],
    shapes: Mapping[str, Call],
    library: Registrations,
    arrays: bool,
) -> None:
    name = f.qualified_name
    if f.is_generated:
        source = autogen.source_of(f, functions.by_name, functions.group_of(f)).qualified_name
        kind = "out" if f.schema.kind == "out" else "functional"
        for key in f.dispatch:
            library.impl(name, key, None, form=INTERNAL, binder=_autogen_binder(kind, source), label="generated variant")
        return
    delegate = functions.delegate_of(f)
    if delegate is not None:
        _register_structured(f, delegate, kernels, shapes[delegate.qualified_name], library)
    for key in f.dispatch:
        if f.structured and is_dense(key):
            continue
        if arrays and is_dense(key):
            library.impl(name, key, kernels[name, key], form=ARRAY, binder=_plain_binder, waits=True)
        else:
            library.impl(name, key, kernels[name, key], waits=True)


def _register_structured(
    f: NativeFunction, delegate: NativeFunction, kernels: Mapping[tuple[str, str], Call], shape: Call, library: Registrations
) -> None:
    """The delegate's array kernels for one of its variants; at Meta only the shape function."""
    precomputed = {} if delegate.precomputed is None else delegate.precomputed.names
    for key in {META: None, **dict.fromkeys(k for k in delegate.dispatch if is_dense(k))}:
        fn = _no_values if key == META else kernels[delegate.qualified_name, key]
        library.impl(
            f.qualified_name, key, fn, form=ARRAY, binder=_structured_binder(f.schema.kind, shape, precomputed), waits=True
        )


def is_dense(key: str) -> bool:
    """Whether a dispatch key belongs to the dense tensors of a backend."""
    return not key.startswith(NOT_DENSE)


def _no_values(*arrays: Any) -> None:
    """The kernel for tensors without data."""


def _arrays_of(key: str) -> TensorBackend:
    """The backend of a dense key. Operators of tensors have kernels for those that hold tensors only."""
    return cast("TensorBackend", REGISTRY.backends[key])


def _structured_binder(kind: str, shape: Call, precomputed: Mapping[str, tuple[str, ...]]) -> Any:
    def bind_structured(op: Operator, kernel: Kernel, key: str) -> Call:
        from turnout_aten.kernels.binding import structured
        from turnout_aten.kernels.structured import Structured

        return structured(kind, Structured(op, shape, dict(precomputed)), _arrays_of(key), kernel.fn)

    return bind_structured


def _plain_binder(op: Operator, kernel: Kernel, key: str) -> Call:
    from turnout_aten.kernels.binding import unstructured

    return unstructured(op, _arrays_of(key), kernel.fn)


def _autogen_binder(kind: str, source: str) -> Any:
    def bind_autogen(op: Operator, kernel: Kernel, key: str) -> Call:
        return autogen.kernel(op, kind, op.registry.find(source))

    return bind_autogen


def install_table(library: Registrations, table: Table) -> None:
    """The body of `install` in a generated third-party file: define and register everything, or nothing."""
    overloads = [overload for packet in table for overload in table.overloads(packet)]
    paths = {path for f in overloads for _, path in f.kernels if not path.startswith("autogen:")}
    functions = {path: LazyFunction(path).__wrapped__ for path in paths}  # imported without the lock
    with library.registry.lock:
        before = library.mark()
        try:
            for f in overloads:
                op = library.define(f.schema_text, tags=f.tags, cache=f.cache, trusted=True)
                op.device_check = f.device_check
                op.device_guard = f.device_guard
            for f in overloads:
                for key, path in f.kernels:
                    _register_row(library, f.qualified_name, key, path, functions)
        except BaseException:
            library.undo_to(before)
            raise


def _register_row(library: Registrations, name: str, key: str, path: str, functions: Mapping[str, Call]) -> None:
    if path.startswith("autogen:"):
        _, kind, source = path.split(":", 2)
        library.impl(name, key, None, form=INTERNAL, binder=_autogen_binder(kind, source), label="generated variant")
    else:
        library.impl(name, key, functions[path], waits=True)
