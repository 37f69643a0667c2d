"""`turnout.utils.checkpoint`: arguments, and what a function may not change when it runs again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_aten.tensor.levels import VERSION_MASK
from turnout_autograd.errors.described import tensor_text

if TYPE_CHECKING:
    from turnout import Tensor

_TO_FIX = (
    "  to fix  make the function compute the same from the same arguments, or pass determinism_check='none' if the difference "
    "does not matter"
)


def reentrant(name: str) -> str:
    return (
        f"{name}: use_reentrant=True is not available\n"
        "  to fix  leave it out, or pass use_reentrant=False: that variant can do everything that the other one can"
    )


def use_reentrant_kind(name: str, given: object) -> str:
    return f"{name}: use_reentrant must be False or None, got {given!r}"


def no_debug(name: str) -> str:
    return (
        f"{name}: debug=True is not available\n"
        "  to fix  run the function twice inside turnout.trace_dispatch() and compare the two lists"
    )


def determinism_kind(name: str, given: object) -> str:
    return f"{name}: determinism_check must be 'default' or 'none', got {given!r}"


def contexts(name: str, given: object) -> str:
    return (
        f"{name}: context_fn must return a tuple of two context managers, one for the first run and one for the second; "
        f"got {type(given).__name__}"
    )


def saved_other(index: int, then: str, now: str) -> str:
    return f"checkpoint: tensor {index} that the function saves was {then} at first, and is {now} in the second run\n{_TO_FIX}"


def saved_fewer(then: int, now: int) -> str:
    return f"checkpoint: the function saved {_tensors(then)} at first, and {now} in the second run\n{_TO_FIX}"


def saved_more(then: int) -> str:
    return f"checkpoint: the function saved {_tensors(then)} at first, and saves more in the second run\n{_TO_FIX}"


def argument_changed(tensor: Tensor, then: int) -> str:
    return (
        f"checkpoint: the function must run again, but an argument, {tensor_text(tensor)}, was written since: it is at version "
        f"{tensor.version() & VERSION_MASK}, and was at version {then & VERSION_MASK}\n"
        "  to fix  pass a clone() to the function, or write into one"
    )


def segments(given: Any, count: int) -> str:
    return f"checkpoint_sequential: segments must be an int from 1 to the number of functions, {count}; got {given!r}"


def unexpected(names: list[str]) -> str:
    listed = ", ".join(repr(name) for name in names)
    return f"checkpoint_sequential: unexpected {'argument' if len(names) == 1 else 'arguments'} {listed}"


def _tensors(count: int) -> str:
    return "1 tensor" if count == 1 else f"{count} tensors"
