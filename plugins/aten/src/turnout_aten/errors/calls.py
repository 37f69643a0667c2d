"""Texts of the errors of public functions and named results."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def wrong_result_count(name: str, fields: tuple[str, ...], given: int | str) -> str:
    """A named result made from a sequence of another length, or from no sequence: `given` is the length or the type."""
    return f"{name}: takes a sequence of {len(fields)} values ({', '.join(fields)}), got {given}"


def array_on_the_left(array: Any) -> str:
    """An operator between a NumPy array on the left and a tensor on the right."""
    return (
        f"an operator with {type(array).__name__} on the left and Tensor on the right: either library could compute it\n"
        "  to fix  make the array a tensor with turnout.from_numpy(array), or the tensor an array with tensor.numpy()"
    )


def unexpected_keyword(function: str, name: str) -> str:
    """A keyword that a public function does not take, or a second name of an argument that is given already."""
    return f"{function}: got an unexpected keyword argument '{name}'"
