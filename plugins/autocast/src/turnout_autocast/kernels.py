"""From a policy to the kernel of one operator at Autocast<B>.

A kernel switches the casts of its device off, casts, and calls the operator again: its key set is computed from the tensors
that the casts made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout.dtypes import DType, float32
from turnout.errors import DTypeError
from turnout.keys import AUTOCAST, IMPLICIT, KEYS
from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel, bind
from turnout.operators.values import tensors_in
from turnout.registry import REGISTRY
from turnout.state import StateChange, in_effect
from turnout_aten.tensor.tensor import Tensor
from turnout_autocast import errors, rules
from turnout_autocast.casts import cast, is_eligible, promoted
from turnout_autocast.contexts import SETTINGS, get_autocast_dtype

if TYPE_CHECKING:
    from turnout.operators import Operator

    Policy = Callable[[list[Any]], Operator | None]  # changes the arguments; returns the operator to call in place of this one


def specialize(op: Operator, key: str) -> Any:
    """What stands at one Autocast<B> for one operator: its policy's kernel, or FALLTHROUGH when it is on no list."""
    device_type = KEYS.backend_rows[key.removeprefix(AUTOCAST)].device
    policy = rules.policy_of(device_type, _short(op)) if op.namespace == "aten" else None
    if policy is None:
        return FALLTHROUGH
    if policy == rules.COMPOSED:
        composite = bind(op.registry.winner(op, IMPLICIT), op, key)
        return Kernel(composite, INTERNAL, label="composed of operators that autocast casts")
    label = "autocast refuses" if policy == rules.REFUSED else f"autocast to {policy}"
    return Kernel(_kernel(op, key, _POLICIES[policy](op, device_type)), INTERNAL, label=label)


def _short(op: Operator) -> str:
    return f"{op.name}.{op.overload}" if op.overload else op.name


def _kernel(op: Operator, key: str, policy: Policy) -> Callable[..., Any]:
    off, positions = StateChange(excludes=KEYS.switch_bit(key)), _tensor_positions(op)
    generator = any(a.type.canonical.startswith("Generator") for a in op.schema.arguments)  # it brings keys, too

    def call_in_other_dtype(ks: int, *args: Any) -> Any:
        values = list(args)
        instead = policy(values)
        if instead is not None or generator:
            return (instead or op).call_boxed(tuple(values))
        ks = 0
        for i in positions:  # the key set of `call_boxed`, without ten frames, where tensors are not in lists
            value = values[i]
            if value.__class__ is Tensor:
                ks |= value.keys
            elif value is not None:
                return op.call_boxed(tuple(values))
        ks = in_effect(ks, by_tensors=True)
        return op.lookup(ks)(ks, *values)

    return off.around(call_in_other_dtype)


def _tensor_positions(op: Operator) -> tuple[int, ...]:
    return tuple(i for i, a in enumerate(op.schema.arguments) if a.type.is_tensor_like)


def _lower(op: Operator, device_type: str) -> Policy:
    positions = _tensor_positions(op)

    def cast_to_lower(values: list[Any]) -> None:
        dtype = get_autocast_dtype(device_type)
        for i in positions:
            values[i] = cast_value(dtype, values[i], device_type)

    return cast_to_lower


def _float32(op: Operator, device_type: str) -> Policy:
    positions = _tensor_positions(op)

    def cast_to_float32(values: list[Any]) -> None:
        for i in positions:
            values[i] = cast_value(float32, values[i], device_type)

    return cast_to_float32


def _float32_result(op: Operator, device_type: str) -> Policy:
    at = next(i for i, a in enumerate(op.schema.arguments) if a.name == "dtype")

    def ask_for_float32(values: list[Any]) -> None:
        if values[at] is None and is_eligible(values[0], device_type):
            values[at] = float32

    return ask_for_float32


def _promote(op: Operator, device_type: str) -> Policy:
    positions = _tensor_positions(op)

    def cast_to_widest(values: list[Any]) -> None:
        tensors = list(tensors_in([values[i] for i in positions]))
        dtype = promoted(get_autocast_dtype(device_type), tensors, device_type)
        for i in positions:
            values[i] = cast_value(dtype, values[i], device_type)

    return cast_to_widest


def _float32_overload(op: Operator, device_type: str) -> Policy:
    overload = rules.OVERLOADS[_short(op)]

    def append_float32(values: list[Any]) -> Operator | None:
        if not is_eligible(values[0], device_type):
            return None
        values.append(float32)
        return REGISTRY.find(f"aten::{overload}")

    return append_float32


def _as_given(op: Operator, device_type: str) -> Policy:
    return lambda values: None


def _refused(op: Operator, device_type: str) -> Policy:
    def refuse(values: list[Any]) -> None:
        raise DTypeError(errors.refused(op.qualified_name, device_type))

    return refuse


_POLICIES: dict[str, Callable[[Operator, str], Policy]] = {
    rules.LOWER: _lower,
    rules.FLOAT32: _float32,
    rules.FLOAT32_RESULT: _float32_result,
    rules.FLOAT32_OVERLOAD: _float32_overload,
    rules.PROMOTE: _promote,
    rules.AS_GIVEN: _as_given,
    rules.REFUSED: _refused,
}


def cast_value(dtype: DType, value: Any, device_type: str) -> Any:
    """A tensor cast when it is eligible, and lists of tensors element by element; anything else as it is."""
    if isinstance(value, (list, tuple)):
        return [cast_value(dtype, each, device_type) for each in value]
    if not isinstance(value, Tensor) or not is_eligible(value, device_type) or value.dtype is dtype:
        return value
    (settings,) = SETTINGS.get()
    if settings.cache is None or not settings.cache_enabled or dtype is float32:
        return cast(value, dtype)
    return settings.cache.cast(value, dtype, cast)
