"""Texts of the errors of calls: what failed, where each key came from, what to do."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.operators import Operator, Packet, Plan
    from turnout.schema import Argument


def stale(op: Operator) -> str:
    """A handle outlived the definition."""
    if any(op.kernels.values()):
        return f"{op.qualified_name} has kernels but no definition: the library that defines it is not loaded or was undone"
    return gone(op.qualified_name)


def gone(op_name: str) -> str:
    """A definition that was undone."""
    return f"{op_name} is gone: the library that defined it was undone; look the operator up again"


def wrong_result_count(name: str, fields: tuple[str, ...], given: int) -> str:
    """A named result made from a sequence of another length."""
    return f"{name}: takes a sequence of {len(fields)} values ({', '.join(fields)}), got {given}"


def too_many(op: Operator, expected: int, given: int) -> str:
    """More positional arguments than the schema has."""
    return f"{op.qualified_name}: takes {expected} positional argument{'s' if expected != 1 else ''}, got {given}"


def missing_argument(op: Operator, argument: Argument) -> str:
    """A required argument was left out."""
    return f"{op.qualified_name}: argument '{argument.name}' ({argument.type}) is missing"


def not_given(op_name: str, argument: str, expected: str) -> str:
    """A required argument of a public function was left out."""
    return f"{op_name}: argument '{argument}' ({expected}) is missing"


def unexpected_keyword(function: str, name: str) -> str:
    """A keyword that a public function does not take, or a second name of an argument that is given already."""
    return f"{function}: got an unexpected keyword argument '{name}'"


def unexpected_argument(op: Operator, name: str, args: tuple[Any, ...]) -> str:
    """A keyword that the schema does not have, or has already filled."""
    names = [a.name for a in op.schema.arguments]
    if name in names[: len(args)]:
        return f"{op.qualified_name}: argument '{name}' is given twice"
    return f"{op.qualified_name}: no argument '{name}'; there are {', '.join(names)}"


def wrong_type(op_name: str, argument: str, expected: str, value: Any) -> str:
    """An argument of the wrong type."""
    return f"{op_name}: argument '{argument}' must be {expected}, got {describe(value)}"


def unknown_packet(namespace: str, name: str) -> str:
    """A packet whose overloads are all gone."""
    return f"{namespace}::{name} is gone: the library that defined it was undone"


def unknown_overload(packet: Packet, overload: str) -> str:
    """An overload that the packet does not have."""
    return f"{packet.namespace}::{packet.name} has no overload {overload!r}; it has {', '.join(dir(packet))}"


def no_kernel_at(op: Operator, key: str) -> str:
    """`op.kernel(key)` found nothing."""
    there = ", ".join(op.kernels) or "none"
    return f"{op.qualified_name}: no kernel for {key}; kernels are registered at {there}"


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
                found.append(f"{argument.name}: {describe(element)}")
    return found or ["the state: the key is included by a context that is active"]


def _without_backend(op: Operator, args: tuple[Any, ...]) -> list[tuple[str, Any]]:
    """Names and devices of tensors that bring no key because their backend was deactivated."""
    from turnout.backends import named_tensors
    from turnout.devices import active_device_types

    active = active_device_types()
    return [
        (name, tensor.device)
        for name, tensor in named_tensors(op, args)
        if hasattr(tensor, "device") and tensor.device.type not in active
    ]


def _switched_off(op: Operator, plan: Plan, args: tuple[Any, ...]) -> list[str]:
    """The keys that configuration disables; else the backends' keys that tensors bring and the call's key set lacks."""
    from turnout.operators import DISABLED
    from turnout.registry import tensors_in

    disabled = [step.key for step in plan.steps if step.verdict == DISABLED]
    if disabled:
        from turnout import config

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
    from turnout.plugins import catalog, provider_of
    from turnout.registry import REGISTRY

    for found in catalog().found if op.registry is REGISTRY else ():
        if f"{kind}:{name}" in found.claims:
            return f'turnout.plugins.activate("{found.name}"); '
    package = provider_of(kind, name)
    return f"pip install {package}; " if package else ""


def describe(value: Any) -> str:
    """A value in a few words: `Tensor float32 [3] on cpu, requires_grad`, `int 3`, `str 'x'`."""
    keys = getattr(value, "keys", None)
    if type(keys) is int and hasattr(value, "device") and hasattr(value, "dtype"):
        grad = ", requires_grad" if getattr(value, "requires_grad", False) else ""
        return f"Tensor {value.dtype.name} {list(value.shape)} on {value.device}{grad}"
    if value is None:
        return "None"
    text = repr(value)
    if len(text) > 40:
        text = text[:37] + "..."
    return f"{type(value).__name__} {text}"


def generator_elsewhere(op: Operator, args: tuple[Any, ...]) -> str:
    """A factory's generator is of another device than its result."""
    from turnout.devices import Device
    from turnout.registry import tensors_in

    generator = next((g.device for g in tensors_in(args)), None)
    wanted = next((a for a in args if isinstance(a, Device)), None)
    return (
        f"{op.qualified_name}: the generator is on {generator}, the result is asked for on {wanted}\n"
        f'  to fix  pass turnout.Generator("{wanted}")'
    )


def empty_list(op: Operator, argument: str) -> str:
    """A call that would have a backend if a list held a tensor."""
    return f"{op.qualified_name}: argument '{argument}' needs at least one tensor, got an empty list"


def two_devices(op: Operator, named: list[tuple[str, Any]]) -> str:
    """Tensors of two devices in one call."""
    listed = ", ".join(f"{name} on {device}" for name, device in named)
    return (
        f"{op.qualified_name}: tensors on two devices: {listed}\n"
        "  to fix  move one with .to(device); only 0-dim tensors on cpu mix with another device"
    )


def inference_saved() -> str:
    """A call that is recorded for gradients would save an inference tensor."""
    return (
        "an inference tensor cannot be saved for the backward pass: it has no version that would show later writes\n"
        "  to fix  clone() it for a normal tensor, or make it under no_grad instead of inference_mode"
    )


def inference_written(name: str, argument: str) -> str:
    """A write into an inference tensor where the mode is not entered."""
    return (
        f"{name}: '{argument}' is an inference tensor, which cannot be changed in place outside of inference_mode\n"
        "  to fix  clone() it for a normal tensor, or write inside of inference_mode"
    )


def no_grad_view_written(name: str) -> str:
    """A write into a view whose base has, or would get, a history that does not show the view."""
    return (
        f"{name}: self is a view made under no_grad, and is written where gradients are recorded\n"
        "  to fix  make the view and write into it in the same mode"
    )
