"""Texts of registration errors."""

from __future__ import annotations

from turnout.errors.layout import near, report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout.registry import Registrations, Registry


def _who(kernel: Kernel) -> str:
    return f"{kernel.origin}, {kernel.name} ({kernel.source})"


def conflict(op: Operator, key: str, first: Kernel, second: Kernel, *, both_override: bool) -> str:
    fix = "let one of them say allow_override=True, or uninstall one"
    choose = f'choose one with the setting kernels.choose."{op.qualified_name}@{key}"'
    if both_override:
        fix = f"both say allow_override=True: {choose}"
    elif first.binder is not None or second.binder is not None:  # of a table, which has no such word
        fix = f"{choose}, or uninstall one"
    head = f"{op.qualified_name}: two kernels for {key}"
    return report(head, ("first", _who(first)), ("second", _who(second)), ("to fix", fix))


def preferred_twice(op: Operator, key: str, origins: dict[str, object]) -> str:
    """For two settings of `kernels.prefer`, each with its origin, that fit equally well. Their order says nothing."""
    places = [f"{quoted(name)} ({origins[name]})" for name in sorted(origins)]
    fix = f'write kernels.prefer."{op.qualified_name}@{key}", which comes before both'
    head = f"{op.qualified_name}: two settings say whose kernels for {key} come first"
    return report(head, ("first", places[0]), ("second", places[1]), ("to fix", fix))


def quoted(setting: str) -> str:
    """A setting about kernels as a file has it: kernels.prefer."add*@CPU"."""
    table, name = setting.split(".", 2)[:2], setting.split(".", 2)[2]
    return f'{".".join(table)}."{name}"'


def defined_twice(op: Operator, library: Registrations) -> str:
    first = op.defined_by.origin if op.defined_by is not None else "unknown"
    rows = (("first", f"{first}: {op.schema_text}"), ("second", library.origin))
    remedy = ("to fix", "give the second one another overload name or namespace")
    return report(f"{op.qualified_name} is defined already", *rows, remedy)


def fallback_twice(key: str, first: Kernel, second: Kernel) -> str:
    return report(f"{key} has a fallback already", ("first", _who(first)), ("second", _who(second)))


def fallthrough_at_alias(qualified_name: str, key: str) -> str:
    """A composite kernel is called; there is no next key for it."""
    head = f"{qualified_name}: FALLTHROUGH cannot be registered at {key}, which stands for many keys"
    return report(head, ("to fix", "register FALLTHROUGH at each key that should pass the call on"))


def unknown_operator(qualified_name: str, registry: Registry) -> str:
    if not qualified_name.strip(" .:"):
        return f"no operator is named {qualified_name!r}: a name is written like add, add.Tensor or mylib::scale"
    # A list at once, here and below: another thread may define or undo meanwhile.
    names = [name for name, op in list(registry.operators.items()) if op.is_defined]
    if "::" not in qualified_name:
        names = [name.partition("::")[2] for name in names]
    return f"no operator {qualified_name}{near(qualified_name, names, count=3)}"


def unknown_namespace(namespace: str, registry: Registry) -> str:
    there = ", ".join(sorted(name for name, packets in list(registry.packets.items()) if packets))
    return f"no operators in namespace {namespace!r}; there are {there}"


def import_under_lock(module: str) -> str:
    """For the setting `debug.locks`."""
    head = (
        f"{module} is imported by a thread that holds Turnout's lock; a thread that is importing it already may wait for the lock"
    )
    return report(head, ("to fix", "import it before: at the top of the module, or in turnout_available"))
