"""Texts and error classes of `turnout.library`: registrations that cannot be accepted, kernels that return what they may not."""

from __future__ import annotations

from turnout.errors import DeviceError, RegistrationError, TurnoutError, printed
from turnout.errors.layout import near, report

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


# Texts that are filled in with `format`.
UNKNOWN_KIND = "Library: kind must be 'DEF', 'IMPL' or 'FRAGMENT', got {}"
BAD_NAMESPACE = "Library: a namespace is a name such as 'mylib', got {}"
UNDONE = "the library of namespace {!r} was undone; make a new one"
DEFINITION_IN_IMPL = (
    "define({schema!r}): this library is of kind IMPL and defines no operators\n"
    "  to fix  Library({namespace!r}, 'FRAGMENT').define(...)"
)
ALIAS_ANALYSIS = "define: alias_analysis must be '', 'FROM_SCHEMA' or 'CONSERVATIVE', got {!r}"
OTHER_KEY = (
    "impl({op!r}): the library is for {own}, and the kernel for {key}\n  to fix  omit the key, or use a library without a key"
)
ARRAYS_WITH_KEYSET = "impl({!r}): a kernel on arrays calls no operators and gets no key set; choose arrays or with_keyset"
FALLBACK_NAMESPACE = (
    "fallback: a fallback serves all namespaces, and this library is of {!r}\n  to fix  Library('_', 'IMPL').fallback(...)"
)
NO_KEY = "fallback: a dispatch key is missing\n  to fix  fallback(function, 'Tracer'), or Library('_', 'IMPL', 'Tracer')"
BAD_NAME = "{}: an operator is named 'namespace::name', got {}"
BAD_SCHEMA = "{}: the schema is written without a name, as '(Tensor x) -> Tensor', got {}"
NO_DEVICE_ARGUMENT = (
    "{name}: kernels by device need a tensor or an argument 'Device device' to choose by\n  schema  {schema}\n"
    "  to fix  add the argument, or register one kernel for all devices (device_types=None)"
)
REDEFINED_ELSEWHERE = "{} is a custom operator already\n  first   {}\n  second  {}\n  to fix  use a namespace of your own"
RULE_NOT_FUNCTIONAL = (
    "{name}: a gradient rule needs an operator that writes nothing and returns no view\n  schema  {schema}\n"
    "  to fix  give the rule to a functional operator, and call that"
)
NO_CONTEXT = "get_ctx: only a kernel that register_fake registered can call it, while the kernel runs"
NO_DYNAMIC_SIZES = (
    "{op}: its fake kernel asks for a size that depends on data, and {key} tensors have only known sizes\n"
    "  to fix  call it on tensors with data, or on fake tensors"
)
BAD_BOUNDS = "new_dynamic_size: min and max must be ints with 0 <= min <= max, got min={!r}, max={!r}"
NOT_CALLABLE = "{}: a kernel is a function, got {}"
BAD_OP = "{0}: an operator is given by its name, as an operator or as what custom_op returned, got {1.__class__.__name__}"
NO_DEVICE_TYPE = "{}: device_type must be a str such as 'cpu', got {}"


def reserved(namespace: str, kind: str) -> str:
    """A namespace that nobody defines operators in."""
    why = "it is for fallbacks" if namespace == "_" else "it is reserved"
    head = f"Library: no operator can be defined in namespace {namespace!r}, {why}"
    return report(head, ("asked", kind), ("to fix", "use a name of your own"))


def second_definer(namespace: str, first: str) -> str:
    """Two libraries of kind DEF in one namespace."""
    remedy = f"Library({namespace!r}, 'FRAGMENT') adds operators to it, Library({namespace!r}, 'IMPL') kernels"
    return report(f"Library: namespace {namespace!r} is defined already", ("first", first), ("to fix", remedy))


def key_with_definitions(namespace: str, kind: str, key: str) -> str:
    """A default key for a library that is not of kind IMPL."""
    found, remedy = (f"Library({namespace!r}, {kind!r}, {key!r})", f"Library({namespace!r}, 'IMPL', {key!r}) for the kernels")
    return report("Library: a default dispatch key goes with kind IMPL", ("found", found), ("to fix", remedy))


def other_namespace(what: str, namespace: str) -> str:
    other = what.partition("::")[0]
    remedy = f"omit {other}::, or use a library of namespace {other!r}"
    return report(f"{what}: the library is of namespace {namespace!r}", ("to fix", remedy))


def composites(op: Operator, key: str, present: str, kernel: Kernel) -> str:
    """Two kinds of kernel that one operator cannot have."""
    backend = next((each for each in (key, present) if not each.startswith("Composite")), "")
    remedy = "choose one: Implicit where gradients come from the operators it calls, Explicit where they have a rule of their own"
    if backend:
        remedy = f"omit the {backend} kernel: the operator runs on tensors without data through the operators it calls"
    found = f"{present}: {kernel.origin}, {kernel.name} ({kernel.source})"
    head = f"{op.qualified_name}: a kernel for {key} beside one for {present}"
    return report(head, ("found", found), ("to fix", remedy))


def unknown_type(value: object, devices: Iterable[str]) -> DeviceError:
    """A word that is neither a device nor a key."""
    known = sorted(devices)
    head = f"{printed(value)} is neither a device type nor a dispatch key{near(value, known, spell=repr)}"
    return DeviceError(report(head, ("devices", ", ".join(known) or "none"), ("also", "'default' for all of them")))


def mutates(name: str, said: Iterable[str], schema: FunctionSchema) -> str:
    """`mutates_args` and a schema that disagree."""
    written = ", ".join(a.name for a in schema.mutated_arguments) or "nothing"
    rows = ("mutates_args", ", ".join(sorted(map(str, said))) or "nothing"), ("schema", f"{written}: {schema}")
    return report(f"{name}: mutates_args and schema disagree", *rows)


def no_kernel_to_switch(name: str, device: str, present: Iterable[str]) -> str:
    """`set_kernel_enabled` for a device without a kernel."""
    there = ", ".join(sorted(present)) or "none"
    return f"{name}: set_kernel_enabled({device!r}) has no effect, no kernel is registered for it; there are {there}"


def no_fake(op: Operator) -> str:
    """A tensor without data met a custom operator of which nobody said what shape its result has."""
    call = f"turnout.library.register_fake({op.qualified_name!r}, function)"
    remedy = f"{call}: the arguments in, empty results of the right shape out"
    return report(f"{op.qualified_name}: no fake kernel", ("asked for by", "a tensor without data"), ("to fix", remedy))


def rule_keyword_tensors(name: str, schema: object, names: Iterable[str]) -> str:
    rows = ("found", f"{', '.join(names)} after '*'"), ("schema", schema), ("to fix", "declare them before '*'")
    return report(f"{name}: a gradient rule answers for positional tensors only", *rows)


def second_kernel(name: str, key: str, first: Kernel, second: Kernel) -> str:
    """A kernel where there is one, by a library that overrides nothing, not even its own."""
    rows = [
        (word, f"{kernel.origin}, {kernel.name} ({kernel.source})") for word, kernel in (("first", first), ("second", second))
    ]
    return report(f"{name}: there is a kernel for {key}, and allow_override=False", *rows, ("to fix", "leave allow_override out"))


def _shown(kernel: Kernel) -> tuple[str, str]:
    return "kernel", f"{kernel.name} ({kernel.source})"


def aliased(op: Operator, kernel: Kernel, found: str) -> str:
    """A result that shares memory with an argument or another result, and the schema says nothing of it."""
    head = f"{op.qualified_name}: a custom operator's kernel may not return an input or a view of one"
    return report(head, ("found", found), _shown(kernel), ("to fix", "return a copy, such as x.clone()"))


def not_returned(op: Operator, kernel: Kernel, names: str) -> str:
    """A written argument that the schema returns and the kernel does not."""
    head = f"{op.qualified_name}: its schema returns the written {names}, its kernel something else"
    return report(head, ("schema", op.schema), _shown(kernel), ("to fix", f"return {names} itself"))


def wrong_result(op: Operator, kernel: Kernel, expected: str, found: str) -> str:
    head = f"{op.qualified_name}: its kernel must return {expected}, got {found}"
    return report(head, ("schema", op.schema), _shown(kernel))


def no_arrays(op: Operator, kernel: Kernel, key: str) -> str:
    """A kernel on arrays at a key that no backend's tensors bring."""
    head = f"{op.qualified_name}: a kernel on arrays was reached at {key}, which is not a backend's key"
    return report(head, _shown(kernel), ("to fix", "register it without arrays=True, or for device types"))


def no_floating_dtype(what: str, value: object) -> str:
    return f"{what}: tensors are cast to a floating dtype, got {getattr(value, 'name', repr(value))}"
