"""The texts of this plugin's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import TurnoutError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from turnout.dtypes import DType


class ScalingError(TurnoutError, RuntimeError):
    """A method of GradScaler was called when it cannot be."""


def not_lower(device_type: str, dtype: Any, lower: Iterable[DType]) -> str:
    """autocast() with a dtype that is not a lower precision."""
    shown = getattr(dtype, "name", repr(dtype))
    return (
        f"autocast: {shown} is not a lower precision for {device_type!r}\n"
        f"  to fix  use {' or '.join(map(repr, lower))}, or enabled=False to run in the dtypes of the tensors"
    )


def not_castable(value: object) -> str:
    """cached_cast() of a value that is not a tensor."""
    return f"cached_cast: expected a tensor, None, or a list or tuple of them, got {type(value).__name__}"


def refused(operator: str, device_type: str) -> str:
    """An operator that has no safe dtype inside autocast."""
    return (
        f"{operator}: it cannot run inside autocast for {device_type!r}: its argument may be 0 or 1 in the lower precision, "
        "where the logarithm overflows\n"
        "  to fix  use binary_cross_entropy_with_logits, which takes the argument before the sigmoid"
    )


# ---- GradScaler


def factors(growth: float, backoff: float) -> str:
    """Factors that would turn growing into shrinking."""
    return f"GradScaler: growth_factor must be greater than 1 and backoff_factor less than 1, got {growth} and {backoff}"


def not_outputs(value: object) -> str:
    """scale() of a value that is not a tensor."""
    return f"GradScaler.scale: expected a tensor or an iterable of them, got {type(value).__name__}"


def float16_gradients() -> str:
    """unscale_() of gradients that overflow."""
    return (
        "GradScaler.unscale_: a gradient is float16, where unscaling overflows and underflows\n"
        "  to fix  keep the parameters in float32 and let autocast cast them"
    )


def unscaled_before(stage: str) -> str:
    """unscale_() twice, or after step()."""
    done = "the gradients were unscaled already" if stage == "unscaled" else "step() was called already"
    return f"GradScaler.unscale_: {done}\n  to fix  call update() once after each step"


def stepped_before() -> str:
    """step() twice."""
    return "GradScaler.step: step() was called already for this optimiser\n  to fix  call update() once after each step"


def no_optimiser(value: object) -> str:
    """Something else in the place of an optimiser."""
    return f"GradScaler: optimizer must have param_groups, as those of turnout.optim do; got {type(value).__name__}"


def closure() -> str:
    """step() with a closure, which would run backward without the scale."""
    return "GradScaler.step: an optimiser that takes a closure cannot be used while the scaler is enabled"


def nothing_unscaled(method: str) -> str:
    """step() or update() with nothing that says whether gradients overflowed."""
    why = "no parameter of the optimiser has a gradient" if method == "step" else "no optimiser stepped since the last one"
    return f"GradScaler.{method}: {why}"


def nothing_scaled(method: str) -> str:
    """A method that needs the scale on a device, before scale()."""
    return f"GradScaler.{method}: nothing was scaled yet\n  to fix  call scaler.scale(loss).backward() first"


def empty_state() -> str:
    """load_state_dict() of a scaler that was not enabled."""
    return "GradScaler.load_state_dict: the state is empty; it was saved by a scaler that was not enabled"


def pickled_in_a_step() -> str:
    """pickle between unscale_() and update()."""
    return "GradScaler: pickled between unscale_() or step() and update(); pickle it after update()"
