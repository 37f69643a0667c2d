"""The error of a call that no kernel serves: which key, who asked for it, which kernels exist, and what would provide one."""

from __future__ import annotations

from turnout import config
from turnout.config.installed import installed
from turnout.devices.devices import active_device_types
from turnout.errors.calls import describe
from turnout.operators.plan import DISABLED
from turnout.operators.values import named_tensors, tensors_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.operators.operator import Operator
    from turnout.operators.plan import Plan


def no_kernel(op: Operator, plan: Plan, args: tuple[Any, ...]) -> str:
    """The call chose a key that nothing serves."""
    key = plan.key
    entry = plan.entry
    if entry is not None:
        lines = [
            f"{op.qualified_name}: ambiguous kernel for {key}: the composite kernel and a backend's own kernel both apply"
        ]
    else:
        lines = [f"{op.qualified_name}: no kernel for {key}"]
    askers = list(_askers(op, plan, args))
    for i, line in enumerate(askers[:4]):
        lines.append(f"  {'asked for by' if i == 0 else '            '}  {line}")
    registered = list(op.kernels.items())  # another thread may register or undo meanwhile
    kernels = [f"{at} ({stack[-1].origin}, {stack[-1].source})" for at, stack in registered if stack]
    lines.append(f"  kernels       {kernels[0] if kernels else 'none'}")
    lines += [f"                {line}" for line in kernels[1:4]]
    lines.append(f"  to fix        {_remedy(op, plan, args)}`turnout table {op.qualified_name}` prints the whole table")
    return "\n".join(lines)


def _askers(op: Operator, plan: Plan, args: tuple[Any, ...]) -> list[str]:
    """Which arguments brought the key that is missing; the state when none did."""
    functionality = plan.functionality
    if functionality is None:
        inactive = _without_backend(op, args)
        if inactive:
            return [f"{name}: a tensor on {place}, whose backend is not active" for name, place in inactive]
        return _switched_off(op, plan, args) or ["the call itself: no argument is a tensor"]
    found = []
    for argument, value in zip(op.schema.arguments, args, strict=False):
        for element in value if isinstance(value, (list, tuple)) else (value,):
            keys = getattr(element, "keys", 0)
            if (
                type(keys) is int
                and keys & functionality.bit
                and (functionality.prefix is None or plan.key in {k for k, _ in op.registry.keys.active(keys)})
            ):
                found.append(f"{argument.name}: {_described(element)}")
    return found or ["the state: the key is included by a context that is active"]


def _described(value: Any) -> str:
    """A value in words, without asking an inactive backend, which would activate it."""
    place = getattr(value, "device", None)
    if place is not None and place.type not in active_device_types():
        return f"a tensor on {place}, whose backend is not active"
    return describe(value)


def _without_backend(op: Operator, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Names and devices of tensors that bring no key because their backend was deactivated."""
    active = active_device_types()
    return [
        (name, tensor.device)
        for name, tensor in named_tensors(op, args)
        if hasattr(tensor, "device") and tensor.device.type not in active
    ]


def _switched_off(op: Operator, plan: Plan, args: tuple[Any, ...]) -> list[str]:
    """The keys that configuration disables; else the backends' keys that tensors bring and the call's key set lacks."""
    disabled = [step.key for step in plan.steps if step.verdict == DISABLED]
    if disabled:
        return [f"{', '.join(disabled)}, switched off by keys.disable ({config.origin('keys.disable')})"]
    brought = 0
    for tensor in tensors_in(args):
        brought |= tensor.keys
    held = {key for key, _ in op.registry.keys.active(plan.ks)}
    left_out = [key for key, f in op.registry.keys.active(brought) if f.backend_key and key not in held]
    return (
        [f"the tensors bring {', '.join(left_out)}, which is excluded or not in the given key set"] if left_out else []
    )


def _remedy(op: Operator, plan: Plan, args: tuple[Any, ...]) -> str:
    """What would provide the missing key, unless it is active and simply has no kernel."""
    functionality = plan.functionality
    if functionality is None:
        inactive = _without_backend(op, args)
        return _provide(op, "device", inactive[0][1].type) if inactive else ""
    if functionality.backend_key:
        backend = plan.key.removeprefix(functionality.prefix or "")
        return "" if backend in op.registry.backends else _provide(op, "backend", backend)
    return "" if functionality.name in op.registry.services else _provide(op, "functionality", functionality.name)


def _provide(op: Operator, kind: str, name: str) -> str:
    """What provides something: activation where a plugin of the process has it, else its package."""
    remedy = installed().remedy_for(kind, name, activate=op.registry.follows_config)
    return f"{remedy}; " if remedy else ""
