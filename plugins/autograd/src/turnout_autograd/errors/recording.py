"""Recording: writes and views that gradients cannot follow, operators without a gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turnout.operators import Operator


def not_incremented(given: object) -> str:
    return f"increment_version: expected a tensor or several tensors, got {type(given).__name__}"


def level_input_written(name: str) -> str:
    return (
        f"{name}: self is an input of a gradient transform, or a view of one; it cannot be changed in place\n"
        "  to fix  write into a clone()"
    )


def captured_written(name: str) -> str:
    return (
        f"{name}: self is older than the gradient transform whose values would be written into it\n"
        "  to fix  write into a tensor made inside the transformed function, and return it"
    )


def several_views_written(name: str, maker: str) -> str:
    return (
        f"{name}: self is one of several views that {maker} returned together; such a view cannot be changed in place\n"
        "  to fix  take one view at a time (select, slice), or write into a clone()"
    )


def custom_view_written(name: str, maker: str) -> str:
    return (
        f"{name}: self is a view that {maker} made in its own forward; a write would bypass its gradient\n"
        "  to fix  clone() it inside the forward, or before the write"
    )


def out_given(name: str, argument: str) -> str:
    return (
        f"{name}: '{argument}' requires a gradient, and operators with out= do not record gradients\n"
        "  to fix  call it without out=, or under turnout.no_grad()"
    )


def not_implemented(name: str, argument: str = "", reason: str = "") -> str:
    with_respect = f" with respect to '{argument}'" if argument else ""
    why = f": {reason}" if reason else ""
    return (
        f"{name}: no gradient{with_respect} is implemented{why}\n"
        f"  to fix  turnout.library.register_autograd({name!r}, backward), or .detach() its inputs"
    )


def not_implemented_warned(name: str) -> str:
    return (
        f"{name}: no gradient is implemented, so the inputs of this call get none\n"
        '  to fix  turnout.library.register_autograd, or the option plugin.autograd.missing = "error"'
    )


def resized(name: str) -> str:
    return f"{name}: a tensor that requires a gradient cannot be resized; use reshape(), or detach() it first"


def view_left_behind(writer: str, kind: str) -> str:
    """A view whose gradient cannot be computed after a recorded write into its base; `kind` says which view."""
    return (
        f"a view {kind} was used after {writer} wrote into its base; its gradient cannot follow that write\n"
        "  to fix  write before the view is made, or clone() the view"
    )


def made_in(maker: str) -> str:
    return f"that {maker} made in its own forward"


def made_together(maker: str) -> str:
    return f"that {maker} returned together with others"


MADE_UNRECORDED = "made under no_grad"


def wrong_gradients(op: Operator, rule: str, expected: list[str], got: int) -> str:
    """A rule that answers for fewer or more inputs than there are."""
    return (
        f"{op.qualified_name}: its gradient rule returned {got} value{'s' if got != 1 else ''} for {len(expected)} "
        f"input{'s' if len(expected) != 1 else ''}\n  inputs  {', '.join(expected)}\n  rule    {rule}\n"
        "  to fix  return one for each in order, None where there is no gradient"
    )


def wrong_list_gradient(op: Operator, rule: str, name: str, length: int, got: Any) -> str:
    """A rule that does not return a list of the right length for a list of tensors."""
    found = f"{len(got)} values" if isinstance(got, (list, tuple)) else type(got).__name__
    return (
        f"{op.qualified_name}: its gradient rule returned {found} for {name}, a list of {length}\n  rule    {rule}\n"
        "  to fix  return a list with one for each tensor, or None for the whole list"
    )
