"""Texts and error classes of `turnout.library`: registrations that cannot be accepted, kernels that return what they may not."""

from __future__ import annotations

from turnout.errors import DeviceError, RegistrationError, TurnoutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout.schema import FunctionSchema


class LibraryError(RegistrationError, ValueError):
    """An argument of `turnout.library` that cannot be accepted; the registry is as it was before."""


class KernelResultError(TurnoutError, RuntimeError):
    """A kernel returned something that its operator's schema does not say."""


# ---- libraries


def unknown_kind(kind: object) -> str:
    """A kind of library that does not exist."""
    return f"Library: kind must be 'DEF', 'IMPL' or 'FRAGMENT', got {kind!r}"


def bad_namespace(namespace: object) -> str:
    """A namespace that is no name."""
    return f"Library: a namespace is a name such as 'mylib', got {namespace!r}"


def reserved(namespace: str, kind: str) -> str:
    """A namespace that nobody defines operators in."""
    why = "it is for fallbacks" if namespace == "_" else "it is reserved"
    return (
        f"Library: no operator can be defined in namespace {namespace!r}, {why}\n  asked   {kind}\n"
        "  to fix  use a name of your own"
    )


def second_definer(namespace: str, first: str) -> str:
    """Two libraries of kind DEF in one namespace."""
    return (
        f"Library: namespace {namespace!r} is defined already\n  first   {first}\n"
        f"  to fix  Library({namespace!r}, 'FRAGMENT') adds operators to it, Library({namespace!r}, 'IMPL') kernels"
    )


def key_with_definitions(namespace: str, kind: str, key: str) -> str:
    """A default key for a library that is not of kind IMPL."""
    return (
        f"Library: a default dispatch key goes with kind IMPL\n  found   Library({namespace!r}, {kind!r}, {key!r})\n"
        f"  to fix  Library({namespace!r}, 'IMPL', {key!r}) for the kernels"
    )


def undone(namespace: str) -> str:
    """A library that is used after it was undone."""
    return f"the library of namespace {namespace!r} was undone; make a new one"


def definition_in_impl(namespace: str, schema: str) -> str:
    """`define` of a library of kind IMPL."""
    return (
        f"define({schema!r}): this library is of kind IMPL and defines no operators\n"
        f"  to fix  Library({namespace!r}, 'FRAGMENT').define(...)"
    )


def other_namespace(what: str, namespace: str) -> str:
    """A name of another namespace than the library's."""
    other = what.partition("::")[0]
    return (
        f"{what}: the library is of namespace {namespace!r}\n"
        f"  to fix  leave {other}:: away, or use a library of namespace {other!r}"
    )


def alias_analysis(value: object) -> str:
    """A kind of alias analysis that does not exist."""
    return f"define: alias_analysis must be '', 'FROM_SCHEMA' or 'CONSERVATIVE', got {value!r}"


def other_key(op_name: str, key: str, own: str) -> str:
    """A key beside the one that the library was made for."""
    return (
        f"impl({op_name!r}): the library is for {own}, and the kernel for {key}\n"
        f"  to fix  leave the key away, or use a library without a key"
    )


def composites(op: Operator, key: str, present: str, kernel: Kernel) -> str:
    """Two kinds of kernel that one operator cannot have."""
    backend = next((each for each in (key, present) if not each.startswith("Composite")), "")
    remedy = (
        f"leave the {backend} kernel away: the operator runs on tensors without data through the operators it calls"
        if backend
        else "choose one: Implicit where gradients come from the operators it calls, Explicit where they have a rule of their own"
    )
    return (
        f"{op.qualified_name}: a kernel for {key} beside one for {present}\n"
        f"  found   {present}: {kernel.origin}, {kernel.name} ({kernel.source})\n  to fix  {remedy}"
    )


def not_callable(api: str, value: object) -> str:
    """Something that is registered as a kernel and cannot be called."""
    return f"{api}: a kernel is a function, got {type(value).__name__} {value!r}"


def arrays_with_keyset(op_name: str) -> str:
    """A kernel on arrays that asks for the key set."""
    return f"impl({op_name!r}): a kernel on arrays calls no operators and gets no key set; choose arrays or with_keyset"


def fallback_namespace(namespace: str) -> str:
    """A fallback in a library of operators."""
    return (
        f"fallback: a fallback serves all namespaces, and this library is of {namespace!r}\n"
        "  to fix  Library('_', 'IMPL').fallback(...)"
    )


def no_key() -> str:
    """A fallback for no key."""
    return (
        "fallback: a dispatch key is missing\n  to fix  fallback(function, 'Tracer'), or Library('_', 'IMPL', 'Tracer')"
    )


# ---- names


def bad_op(api: str, value: object) -> str:
    """Something that names no operator."""
    return f"{api}: an operator is given by its name, as an operator or as what custom_op returned, got {type(value).__name__}"


def bad_name(api: str, value: object) -> str:
    """A name without a namespace."""
    return f"{api}: an operator is named 'namespace::name', got {value!r}"


def bad_schema(api: str, value: object) -> str:
    """A schema with a name in it, or none at all."""
    return f"{api}: the schema is written without a name, as '(Tensor x) -> Tensor', got {value!r}"


def unknown_type(value: object, devices: Iterable[str]) -> DeviceError:
    """A word that is neither a device nor a key."""
    from difflib import get_close_matches

    known = sorted(devices)
    near = get_close_matches(str(value), known, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return DeviceError(
        f"{value!r} is neither a device type nor a dispatch key{hint}\n  devices  {', '.join(known) or 'none'}\n"
        "  also     'default' for all of them"
    )


# ---- custom operators


def mutates(name: str, said: Iterable[str], schema: FunctionSchema) -> str:
    """`mutates_args` and a schema that disagree."""
    written = [a.name for a in schema.mutated_arguments]
    return (
        f"{name}: mutates_args and schema disagree\n  mutates_args  {', '.join(sorted(said)) or 'nothing'}\n"
        f"  schema        {', '.join(written) or 'nothing'}: {schema}"
    )


def no_device_argument(name: str, schema: object) -> str:
    """Kernels by device for an operator whose calls name no device."""
    return (
        f"{name}: kernels by device need a tensor or an argument 'Device device' to choose by\n  schema  {schema}\n"
        "  to fix  add the argument, or register one kernel for all devices (device_types=None)"
    )


def redefined_elsewhere(name: str, first: str, second: str) -> str:
    """A custom operator that another package has defined."""
    return f"{name} is a custom operator already\n  first   {first}\n  second  {second}\n  to fix  use a namespace of your own"


def no_kernel_to_switch(name: str, device: str, present: Iterable[str]) -> str:
    """`set_kernel_enabled` for a device without a kernel."""
    there = ", ".join(sorted(present)) or "none"
    return f"{name}: set_kernel_enabled({device!r}) has no effect, no kernel is registered for it; there are {there}"


def no_fake(op: Operator) -> str:
    """A tensor without data met a custom operator of which nobody said what shape its result has."""
    return (
        f"{op.qualified_name}: no fake kernel\n"
        "  asked for by  a tensor without data\n"
        f"  to fix        turnout.library.register_fake({op.qualified_name!r}, function): "
        "the arguments in, empty results of the right shape out"
    )


def rule_not_functional(name: str, schema: object) -> str:
    """A gradient rule for an operator that writes or returns views."""
    return (
        f"{name}: a gradient rule needs an operator that writes nothing and returns no view\n  schema  {schema}\n"
        "  to fix  give the rule to a functional operator, and call that"
    )


def rule_keyword_tensors(name: str, schema: object, names: Iterable[str]) -> str:
    """A gradient rule for an operator with keyword-only tensors."""
    return (
        f"{name}: a gradient rule answers for positional tensors only\n  found   {', '.join(names)} after '*'\n"
        f"  schema  {schema}\n  to fix  declare them before '*'"
    )


# ---- what kernels return


def _kernel(kernel: Kernel) -> str:
    return f"{kernel.name} ({kernel.source})"


def aliased(op: Operator, kernel: Kernel, found: str) -> str:
    """A result that shares memory with an argument or another result, and the schema says nothing of it."""
    return (
        f"{op.qualified_name}: a custom operator's kernel may not return an input or a view of one\n  found   {found}\n"
        f"  kernel  {_kernel(kernel)}\n  to fix  return a copy, such as x.clone()"
    )


def not_returned(op: Operator, kernel: Kernel, names: str) -> str:
    """A written argument that the schema returns and the kernel does not."""
    return (
        f"{op.qualified_name}: its schema returns the written {names}, its kernel something else\n  schema  {op.schema}\n"
        f"  kernel  {_kernel(kernel)}\n  to fix  return {names} itself"
    )


def wrong_result(op: Operator, kernel: Kernel, expected: str, found: str) -> str:
    """A result of another type or number than the schema says."""
    return (
        f"{op.qualified_name}: its kernel must return {expected}, got {found}\n  schema  {op.schema}\n"
        f"  kernel  {_kernel(kernel)}"
    )


def no_arrays(op: Operator, kernel: Kernel, key: str) -> str:
    """A kernel on arrays at a key that no backend's tensors bring."""
    return (
        f"{op.qualified_name}: a kernel on arrays was reached at {key}, which is no backend's key\n"
        f"  kernel  {_kernel(kernel)}\n  to fix  register it without arrays=True, or for device types"
    )


# ---- fake kernels


def no_context() -> str:
    """`get_ctx` outside of a fake kernel."""
    return "get_ctx: only a kernel that register_fake registered can ask for it, while it runs"


def no_dynamic_sizes(op_name: str, key: str) -> str:
    """A size that depends on data, where tensors have none."""
    return (
        f"{op_name}: its fake kernel asks for a size that depends on data, and {key} tensors have only known sizes\n"
        "  to fix  call it on tensors with data, or on fake tensors"
    )


def bad_bounds(low: object, high: object) -> str:
    """Bounds of a size that no size lies between."""
    return f"new_dynamic_size: min and max are ints, 0 <= min <= max, got min={low!r}, max={high!r}"


# ---- autocast rules


def no_device_type(value: object) -> str:
    """A rule for something that is no device type."""
    return f"register_autocast: device_type must be a str such as 'cpu', got {type(value).__name__}"


def no_floating_dtype(value: object) -> str:
    """A rule that casts to something that is no floating dtype."""
    return f"register_autocast: cast_inputs must be a floating dtype, got {getattr(value, 'name', repr(value))}"
