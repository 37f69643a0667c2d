"""The error of a call without a kernel: which key, which arguments asked for it, which kernels exist, and how to get one."""

from __future__ import annotations

from turnout import config
from turnout.config.installed import installed
from turnout.devices import active_device_types
from turnout.errors.calls import describe
from turnout.errors.layout import report
from turnout.operators.values import has_keys, keys_of, named_tensors
from turnout.table import DISABLED, Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.operators.operator import Operator


def no_kernel(op: Operator, plan: Plan, args: tuple[Any, ...]) -> str:
    """The text for a call that chose a key without a kernel."""
    key = plan.key
    off = ", ".join(_disabled(op, plan))
    head = f"{op.qualified_name}: no kernel for {key}"
    if plan.functionality is None and off:
        head = f"{op.qualified_name}: no kernel, because keys.disable has {off}"
    if plan.entry is not None:
        head = f"{op.qualified_name}: ambiguous kernel for {key}: the composite kernel and a backend's own kernel both apply"
    registered = list(op.kernels.items())  # another thread may register or undo meanwhile
    kernels = [f"{at} ({stack[-1].origin}, {stack[-1].source})" for at, stack in registered if stack] or ["none"]
    table = f"`turnout table {op.qualified_name}` prints the whole table"
    rows = [*_lines("asked for by", _askers(op, plan, args)), *_lines("kernels", kernels)]
    return report(head, *rows, ("to fix", remedy(op, plan, args) + table))


def _lines(label: str, texts: list[str]) -> list[tuple[str, str]]:
    """The rows of a report for up to four texts."""
    return [(label if i == 0 else "", text) for i, text in enumerate(texts[:4])]


def _askers(op: Operator, plan: Plan, args: tuple[Any, ...]) -> list[str]:
    """The arguments that brought the missing key; the state when none did."""
    functionality = plan.functionality
    if functionality is None:
        inactive = _without_backend(op, args)
        if inactive:
            return [f"{name}: a tensor on {place}, whose backend is not active" for name, place in inactive]
        return _switched_off(op, plan, args) or ["the call itself: no argument is a tensor"]
    found = []
    for argument, value in zip(op.schema.arguments, args, strict=False):
        for element in value if isinstance(value, (list, tuple)) else (value,):
            keys = element.keys if has_keys(element) else 0
            served = functionality.prefix is None or plan.key in {k for k, _ in op.registry.keys.active(keys)}
            if keys & functionality.bit and served:
                found.append(f"{argument.name}: {_described(element)}")
    if found:
        return found
    setting = config.current_store().value("keys.enable")
    enabled = not {functionality.name, functionality.family}.isdisjoint(setting.value)
    return [f"the state: {f'keys.enable ({setting.origin})' if enabled else 'a context that is active'} includes the key"]


def _described(value: Any) -> str:
    """A value in words. An inactive backend is not asked, because that would activate it."""
    place = getattr(value, "device", None)
    if place is not None and place.type not in active_device_types():
        return f"a tensor on {place}, whose backend is not active"
    return describe(value)


def _without_backend(op: Operator, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """The names and devices of tensors that bring no key because their backend was deactivated."""
    active = active_device_types()
    placed = [(name, tensor.device) for name, tensor in named_tensors(op, args) if hasattr(tensor, "device")]
    return [(name, place) for name, place in placed if place.type not in active]


def _switched_off(op: Operator, plan: Plan, args: tuple[Any, ...]) -> list[str]:
    """The keys that configuration disables, else the backend keys that tensors bring and the key set lacks."""
    if _disabled(op, plan):
        off = ", ".join(step.key for step in plan.steps if step.verdict == DISABLED)
        return [f"{off}, switched off by keys.disable ({config.origin('keys.disable')})"]
    held = {key for key, _ in op.registry.keys.active(plan.ks)}
    omitted = [key for key, f in op.registry.keys.active(keys_of(args)) if f.backend_key and key not in held]
    return [f"the tensors bring {', '.join(omitted)}, which is excluded or not in the given key set"] if omitted else []


def remedy(op: Operator, plan: Plan, args: tuple[Any, ...]) -> str:
    """How to get what provides the missing key, with "; " behind it; "" when it is active and simply has no kernel."""
    functionality = plan.functionality
    if functionality is None:
        inactive = _without_backend(op, args)
        if inactive:
            return _provide(op, "device", inactive[0][1].type)
        entries = ", ".join(_disabled(op, plan))
        return f"take {entries} out of keys.disable; " if entries else ""
    if functionality.backend_key:
        backend = plan.key.removeprefix(functionality.prefix or "")
        if backend not in op.registry.backends:
            return _provide(op, "backend", backend)
    if functionality.prefix == "" or functionality.name in op.registry.services:
        return ""
    return _provide(op, "functionality", functionality.family)


def _disabled(op: Operator, plan: Plan) -> list[str]:
    """The entries of `keys.disable` that disable keys of the plan."""
    keys = {step.key for step in plan.steps if step.verdict == DISABLED}
    return [config.key_disabled(key, row.name) for key, row in op.registry.keys.active(plan.ks) if key in keys]


def _provide(op: Operator, kind: str, name: str) -> str:
    """How to get it: activate the plugin that has it, or install its package."""
    remedy = installed().remedy_for(kind, name, activate=op.registry.follows_config)
    return f"{remedy}; " if remedy else ""
