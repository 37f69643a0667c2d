"""Texts of registration errors."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout.registry import Registrations, Registry


def _who(kernel: Kernel) -> str:
    return f"{kernel.origin}, {kernel.name} ({kernel.source})"


def conflict(op: Operator, key: str, first: Kernel, second: Kernel, *, both_override: bool) -> str:
    """Two libraries claim one slot."""
    fix = (
        f'both say allow_override=True: choose one with the setting kernels.choose."{op.qualified_name}@{key}"'
        if both_override
        else "let one of them say allow_override=True, or uninstall one"
    )
    return f"{op.qualified_name}: two kernels for {key}\n  first   {_who(first)}\n  second  {_who(second)}\n  to fix  {fix}"


def defined_twice(op: Operator, library: Registrations) -> str:
    """A name that is defined already."""
    first = op.defined_by.origin if op.defined_by is not None else "unknown"
    return (
        f"{op.qualified_name} is defined already\n  first   {first}: {op.schema_text}\n  second  {library.origin}\n"
        "  to fix  give the second one another overload name or namespace"
    )


def fallback_twice(key: str, first: Kernel, second: Kernel) -> str:
    """A key has one fallback."""
    return f"{key} has a fallback already\n  first   {_who(first)}\n  second  {_who(second)}"


def unknown_operator(qualified_name: str, registry: Registry) -> str:
    """An operator that nobody defined, with near names."""
    from difflib import get_close_matches

    # A list at once, here and below: another thread may define or undo meanwhile.
    names = [name for name, op in list(registry.operators.items()) if op.is_defined]
    if "::" not in qualified_name:
        names = [name.partition("::")[2] for name in names]
    near = get_close_matches(qualified_name, names, 3)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"no operator {qualified_name}{hint}"


def unknown_namespace(namespace: str, registry: Registry) -> str:
    """A namespace with no operators."""
    there = ", ".join(sorted(name for name, packets in list(registry.packets.items()) if packets))
    return f"no operators in namespace {namespace!r}; there are {there}"
