"""Hooks on tensors, nodes and saved tensors: where they may be registered and what they must return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_autograd.errors.described import tensor_text

if TYPE_CHECKING:
    from turnout import Tensor


def pack_hook_wrote() -> str:
    return (
        "a pack hook of saved_tensors_hooks wrote into the tensor it was given, but the program still uses that tensor\n"
        "  to fix  return something new, such as a clone()"
    )


def unpack_hook_result(name: str, given: object) -> str:
    return f"{name}: the unpack hook of saved_tensors_hooks must return a tensor, got {type(given).__name__}"


def hook_on_untracked() -> str:
    return "a hook can be registered only on a tensor that requires a gradient"


def hook_result(value: Any) -> str:
    return f"a hook must return a tensor or None, not {type(value).__name__}"


def hook_changed(given: Tensor, gradient: Tensor) -> str:
    return (
        f"a hook returned {tensor_text(given)} on {given.device} for a gradient {tensor_text(gradient)} on {gradient.device}; "
        "a hook must keep the dtype, the shape and the device"
    )


def hook_for_none() -> str:
    return "a hook returned a tensor for a gradient that is None"


def node_hook_result(name: str, value: Any) -> str:
    return f"{name}: a hook of its node must return a tuple or None, not {type(value).__name__}"


def node_hook_count(name: str, given: int, wanted: int) -> str:
    return f"{name}: a hook of its node returned {given} gradients for {wanted}"


def joint_mode(given: str) -> str:
    return f"register_multi_grad_hook: mode must be 'all' or 'any', got {given!r}"


def post_hook_not_leaf() -> str:
    return "register_post_accumulate_grad_hook: the tensor is not a leaf, and only leaves accumulate; use register_hook"


def post_hook_result(value: Any) -> str:
    return f"a hook after the accumulation of .grad must return None, not {type(value).__name__}"
