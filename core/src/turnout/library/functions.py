"""The functions of `turnout.library` that need no Library object.

Without `lib`, their registrations are kept for the life of the process, in one library for each namespace and calling
package. Within a package the newest registration wins; between packages there is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from turnout.dtypes import DType
from turnout.keys import EXPLICIT
from turnout.library import fake, rules
from turnout.library.custom import CUSTOM, CustomOpDef
from turnout.library.libraries import Library, calling_package, kept, key_of, listed, parse_nameless, parse_namespace, registered
from turnout.operators import Operator
from turnout.operators.tracebacks import shortening
from turnout.registry import REGISTRY
from turnout.registry.modes import add_rule

Call = Callable[..., Any]
Named = str | Operator | CustomOpDef
Words = str | Iterable[str]


@shortening
def define(
    qualname: str | Library, schema: str, alias_analysis: str = "", *, lib: Library | None = None, tags: Words = ()
) -> Any:
    """Define an operator. Raises LibraryError for a bad name, SchemaError, ConflictError for a taken name.

    Arguments:
        qualname: "namespace::name"; or a Library, for a decorator that also registers the CompositeImplicitAutograd kernel
        schema: "(Tensor x) -> Tensor"
        alias_analysis: accepted, and without effect
        lib: the library to which the definition belongs
        tags: words that describe the operator
    """
    if isinstance(qualname, Library):
        owner = qualname
        return registered("define", None, lambda f: owner.impl(owner.define(schema, alias_analysis), f))
    namespace, name = parse_namespace("define", qualname)
    parse_nameless("define", qualname, schema)
    library = kept(namespace, calling_package()) if lib is None else lib
    library.define(f"{namespace}::{name}{schema.strip()}", alias_analysis, tags=tags)
    return None


@shortening
def impl(
    qualname: str | Library, types: Words, func: Call | str | None = None, *, lib: Library | None = None, arrays: bool = False
) -> Any:
    """Register a kernel of an operator, which may be defined later; a decorator if `func` is omitted.
    Raises DeviceError for an unknown word, KernelSignatureError, ConflictError. Then nothing is registered.

    Arguments:
        qualname: "namespace::name"; with a Library instead, this is `lib.impl` as a decorator: `@impl(lib, "sin", "CPU")`
        types: device types such as "cpu", "default" for all of them, or names of dispatch keys
        func: the kernel
        lib: the library to which the kernel belongs
        arrays: whether the function takes and returns the backend's arrays in place of tensors

    Example:
        >>> turnout.library.define("docs::double", "(Tensor x) -> Tensor")
        >>> double = turnout.library.impl("docs::double", "default", lambda x: x * 2)
        >>> turnout.ops.docs.double(turnout.ones(2))
        tensor([2., 2.])
    """
    if isinstance(qualname, Library):
        owner, key = qualname, func if isinstance(func, str) else ""
        return registered("impl", None, lambda f: owner.impl(str(types), f, key))
    namespace, _ = parse_namespace("impl", qualname)
    keys = [key_of(word) for word in listed(types)]
    library = kept(namespace, calling_package()) if lib is None else lib
    name = library.qualified(qualname)
    # differs from torch: `library.impl` as a decorator returns the function, so that its name keeps its meaning.
    return registered("impl", func, lambda f: library.impl_all(name, keys, f, arrays=arrays))  # type: ignore[arg-type]


@shortening
def register_kernel(
    op: Named, device_types: Words | None, func: Call | None = None, /, *, lib: Library | None = None, arrays: bool = False
) -> Any:
    """Register a kernel for device types; a decorator if `func` is omitted.
    Raises the errors of `CustomOpDef.register_kernel` for custom operators, those of `impl` for others.

    Arguments:
        op: the operator or its name
        device_types: the device types, None for all
        func: the kernel
        lib: the library to which the kernel belongs
        arrays: whether the function takes and returns the backend's arrays in place of tensors

    Example:
        >>> square = turnout.library.register_kernel("docs::square", "cpu", lambda x: x * x)
    """
    target, name = _target("register_kernel", op, lib)
    if isinstance(target, CustomOpDef):
        return target.register_kernel(device_types, func, arrays=arrays)
    keys = [EXPLICIT] if device_types is None else [key_of(word) for word in listed(device_types)]
    return registered("register_kernel", func, lambda f: target.impl_all(name, keys, f, arrays=arrays))


@shortening
def register_fake(
    op: Named, func: Call | None = None, /, *, lib: Library | None = None, allow_override: bool | None = None
) -> Any:
    """Register what an operator does for tensors without data, which is to compute shapes; a decorator without `func`.
    It serves every backend without data, and the key Fake. Raises as `impl` does.

    Arguments:
        op: the operator or its name
        func: returns empty tensors of the right shapes; `get_ctx()` has sizes that depend on data
        lib: the library to which the function belongs
        allow_override: True replaces another library's function; False refuses a second one, but for operators of `custom_op`
    """
    target, name = _target("register_fake", op, lib)
    overrides = bool(allow_override) if isinstance(target, CustomOpDef) else allow_override
    how: dict[str, Any] = {"binder": fake.in_context, "allow_override": overrides}
    return registered("register_fake", func, lambda f: target.impl_all(name, fake.fake_keys(), f, **how))


@shortening
def register_autograd(op: Named, backward: Call, /, *, setup_context: Call | None = None, lib: Library | None = None) -> None:
    """Register the gradient of an operator that is defined already: see `CustomOpDef.register_autograd`.

    Arguments:
        op: the operator or its name
        backward: `backward(ctx, *grads)` returns a gradient or None for each input
        setup_context: `setup_context(ctx, inputs, output)` saves in `ctx` what `backward` needs
        lib: the library to which the gradient belongs
    """
    target, name = _target("register_autograd", op, lib)
    rules.add_gradient(target.impl_all, name, REGISTRY.find(name).schema, backward, setup_context)


@shortening
def register_autocast(op: Named, device_type: str, cast_inputs: DType, /, *, lib: Library | None = None) -> None:
    """Inside `turnout.autocast(device_type)`, cast the floating-point arguments of an operator, and run it without autocast.
    See `CustomOpDef.register_autocast`. Raises ConflictError when another package has a rule.

    Arguments:
        op: the operator or its name
        device_type: the device type of the tensors
        cast_inputs: the dtype to which they are cast
        lib: the library to which the rule belongs
    """
    target, name = _target("register_autocast", op, lib)
    rules.add_cast(target.impl_all, name, device_type, cast_inputs)


@shortening
def register_vmap(op: Named, func: Call | None = None, /, *, lib: Library | None = None, opaque: bool = False) -> Any:
    """Register how an operator computes a batch inside `turnout.vmap`; a decorator if `func` is omitted.
    Raises CallError for a value that is not a function, ConflictError when another package has a rule.

    Arguments:
        op: the operator or its name
        func: `func(info, in_dims, *args)` returns (result, out_dims): see `CustomOpDef.register_vmap`
        lib: the library to which the rule belongs
        opaque: whether `func` calls an array library, and no operators
    """
    target, name = _target("register_vmap", op, lib)
    return registered("register_vmap", func, lambda f: rules.add_batching(target.impl_all, name, f, opaque))


impl_abstract = register_fake  # its former name, which ported code still uses


@shortening
def register_torch_dispatch(op: Named, cls: type, func: Call | None = None, /, *, lib: Library | None = None) -> Any:
    """Register how a mode or Tensor subclass handles `op`; a decorator without `func`. Raises CallError, ConflictError.

    Arguments:
        op: the operator, or its name
        cls: a DispatchMode, or a Tensor subclass that has `__turnout_dispatch__`
        func: `func(mode or class, op, types, args, kwargs)`, called in place of the class's method
        lib: the library with which the rule ends

    Example:
        >>> class Quiet(turnout.DispatchMode): pass
        >>> rule = turnout.library.register_torch_dispatch("mylib::f", Quiet, lambda mode, op, types, args, kwargs: None)
    """
    target, name = _target("register_torch_dispatch", op, lib)
    return registered("register_torch_dispatch", func, lambda f: add_rule(target.registrations, name, cls, f))


@shortening
def get_kernel(op: Named, dispatch_key: str) -> Call:
    """The kernel that serves a runtime key of `op` now, as a function of its arguments. Raises NoKernelError, UniverseError.

    Arguments:
        op: the operator, or its name
        dispatch_key: the key, such as "CPU"

    Example:
        >>> op = turnout.library.custom_op("mylib::f", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
        >>> turnout.library.get_kernel(op, "CPU")(turnout.tensor([1, 2]))
        tensor([2, 4])
        >>> op.undo()
    """
    return REGISTRY.find(_target("get_kernel", op, None)[1]).kernel(REGISTRY.key_name(dispatch_key))


def _target(api: str, op: Named, lib: Library | None) -> tuple[Library | CustomOpDef, str]:
    """The handle of a custom operator or the library to register in, and the operator's qualified name."""
    if isinstance(op, CustomOpDef):
        return op, op.name
    name = op.qualified_name if isinstance(op, Operator) else op
    namespace, _ = parse_namespace(api, name)
    handle = CUSTOM.get(name)
    if handle is not None:
        return handle, name
    library = kept(namespace, calling_package()) if lib is None else lib
    return library, library.qualified(name)
