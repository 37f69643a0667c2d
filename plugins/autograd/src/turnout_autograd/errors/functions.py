"""`turnout.autograd.Function`: what `forward`, `backward` and the context's methods must do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def function_count(name: str, given: int, wanted: int) -> str:
    return f"{name}.backward returned {given} gradients for {wanted} inputs of forward"


def function_extra(name: str, argument: str) -> str:
    return f"{name}.backward returned a gradient for {argument}, which is not a tensor"


def function_kind(name: str, argument: str, value: Any) -> str:
    return f"{name}.backward returned {type(value).__name__} for {argument}; a tensor or None was expected"


def function_shape(name: str, argument: str, gradient: Sequence[int], tensor: Sequence[int]) -> str:
    return f"{name}.backward returned a gradient of shape {list(gradient)} for {argument} of shape {list(tensor)}"


def function_once(name: str) -> str:
    return f"{name}: its backward is marked once_differentiable and cannot be differentiated again"


def function_not_input(name: str) -> str:
    return f"{name}: mark_dirty names a tensor that forward did not return"


def function_called(name: str) -> str:
    return f"{name}: an instance was called; forward and backward are static methods, and {name}.apply(...) calls them"


def saved_output_gone(index: int) -> str:
    return f"saved_tensors[{index}] is an output of forward, but its graph no longer exists; keep the output itself"


def function_marks(method: str, index: int, value: Any) -> str:
    return f"{method}: argument {index} must be a tensor, got {type(value).__name__}"


def function_flag(method: str, value: Any) -> str:
    return f"{method}: takes True or False, got {type(value).__name__}"


def function_both(name: str) -> str:
    return f"{name}: defines both backward and vjp, which are two names for one method; define one of them"


def function_keyword(name: str, argument: str) -> str:
    return (
        f"{name}: forward takes '{argument}' by keyword only, and it is a tensor that requires a gradient or is inside vmap: "
        "only positional arguments have gradients and batches\n  to fix  take it without the '*' in front"
    )


def function_two_rules(name: str) -> str:
    return f"{name}: has a vmap rule, but generate_vmap_rule=True says that it has none; remove one of them"


def function_complex(name: str, argument: str, gradient: Any, wanted: Any) -> str:
    return f"{name}.backward returned a {gradient.name} gradient for {argument}, which is {wanted.name}"


def function_wrote_view(name: str) -> str:
    return f"{name}: mark_dirty names a view, but forward returned other outputs too; write into its base, or clone() it"


def function_dirty_inside_vmap(name: str) -> str:
    return f"{name}: mark_dirty is not possible inside vmap; return a new tensor from forward"


def function_tangent_count(name: str, given: int, wanted: int) -> str:
    return f"{name}.jvp returned {given} tangents; forward returned {wanted} tensors"


def function_tangent_kind(name: str, index: int, given: object) -> str:
    return f"{name}.jvp: the tangent of output {index} must be a tensor or None, got {type(given).__name__}"


def function_tangent_shape(name: str, index: int, given: Sequence[int], wanted: Sequence[int]) -> str:
    return f"{name}.jvp: the tangent of output {index} has shape {list(given)}; the output has shape {list(wanted)}"
