"""Error class of this plugin, and its texts."""

from __future__ import annotations

from turnout.errors import TurnoutError


class FunctionalizeError(TurnoutError, RuntimeError):
    """A function that cannot run without side effects."""


def refused(op: str, why: str) -> str:
    """An operator that has no functional form."""
    return f"{op}: cannot be functionalised: {why}"


RESIZES = (
    "it changes how much memory a tensor has, which other tensors may share\n"
    "  to fix  make a tensor of the new shape, such as with new_empty() or reshape()"
)
CAPTURED_TURNED = "the tensor is from outside, and was viewed or written before\n  to fix  make it an argument of the function"
SEVERAL_ALIASES = (
    "its schema lets a result share memory with several arguments, or with an unknown one\n"
    "  to fix  declare which argument each result is a view of, or return a copy"
)
PARTIAL_MEMORY = (
    "the tensor covers only a part of its memory, so the elements outside it are not known\n"
    "  to fix  pass the tensor that covers the whole memory"
)


def out_shape(op: str, found: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """An output that would be resized although others see its memory."""
    return (
        f"{op}: out has shape {list(found)}, the result {list(expected)}; a view of another tensor, or an output from outside "
        "that was written before, is not resized in a function that is functionalised\n"
        f"  to fix  give an out of shape {list(expected)}"
    )


def result_shape(op: str, found: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """An in-place operator whose result does not fit."""
    return f"{op}: the result of shape {list(found)} does not fit in a tensor of shape {list(expected)}"


def no_inverse(op: str, why: str) -> str:
    """A write through a view whose place in the base is not known."""
    return f"a write into the result of {op}: cannot be functionalised: {why}"


NOT_OF_POSITIONS = (
    "calling the operator on the positions of the elements did not give the positions in the view\n"
    "  to fix  register a kernel that accepts int64 tensors, or write before the view is made"
)


def no_data_pointer(what: str) -> str:
    """The memory of a tensor of a functionalised function."""
    return f"{what}: a tensor inside functionalize has no memory of its own; return it, or take its clone() from the function"
