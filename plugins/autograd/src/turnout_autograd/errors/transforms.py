"""`turnout.func` and `turnout.autograd.functional`: arguments, and what the transformed function must return."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_autograd.errors.described import tensor_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout import Tensor


def not_a_tensor(name: str, what: str, value: object) -> str:
    return f"{name}: {what} must be a tensor, or nested tuples, lists and dicts of tensors; got {type(value).__name__}"


def aux_missing(name: str) -> str:
    return f"{name}: with has_aux=True the function must return a tuple of two values: the one to differentiate, and any other"


def not_one_number(name: str, outputs: Sequence[Tensor], single: bool) -> str:
    found = tensor_text(outputs[0]) if single else f"{len(outputs)} tensors in a tuple, list or dict"
    return (
        f"{name}: the function must return one tensor without dimensions; it returned {found}\n"
        "  to fix  return a sum, or use jacrev"
    )


def not_floating(name: str, output: Tensor) -> str:
    return f"{name}: the function must return a floating-point number; it returned {tensor_text(output)}"


def not_differentiable(name: str, what: str, tensor: Tensor) -> str:
    return f"{name}: {what} must be floating-point or complex to be differentiated; got {tensor_text(tensor)}"


def nothing_returned(name: str) -> str:
    return f"{name}: the function returned no tensor"


def no_primals(name: str) -> str:
    return f"{name}: primals contain no tensor"


def independent(name: str) -> str:
    return f"{name}: with strict=True every result must depend on the primals; one does not"


def complex_jacobian(name: str, what: str, tensor: Tensor) -> str:
    return (
        f"{name}: {what} is complex ({tensor_text(tensor)}), so its derivative is not unique\n"
        "  to fix  differentiate a function between real tensors, with view_as_complex and view_as_real inside it"
    )


def argnums_kind(name: str, given: Any) -> str:
    return f"{name}: argnums must be an int or a tuple of at least one int, got {given!r}"


def argnums_twice(name: str, given: Any) -> str:
    return f"{name}: argnums names an argument twice: {given!r}"


def argnums(name: str, given: Any, count: int) -> str:
    return f"{name}: argnums is {given!r}, but there are {count} positional arguments"


def other_structure(name: str, what: str) -> str:
    belongs = "result" if what == "cotangent" else "arguments"
    return f"{name}: the {what}s do not have the structure of the {belongs}"


def other_shape(name: str, what: str, index: int, given: Tensor, wanted: Tensor) -> str:
    return f"{name}: {what} {index} has shape {list(given.shape)}; it belongs to a tensor {tensor_text(wanted)}"


def other_kind(name: str, place: str, given: Tensor, wanted: Tensor) -> str:
    return f"{name}: {place} is {given.dtype.name}; it belongs to a real tensor, {tensor_text(wanted)}"


def not_tuples(name: str) -> str:
    return f"{name}: primals and tangents must be tuples"


def pulled_outside(name: str) -> str:
    return (
        f"{name}: the function that it returned was made inside a vmap and is called outside it\n"
        "  to fix  call it inside the mapped function"
    )


def tensors_wanted(name: str, what: str, value: object) -> str:
    return f"{name}: {what} must be a tensor or a tuple of tensors, got {type(value).__name__}"


def strategy(name: str, given: str) -> str:
    return f"{name}: the strategy must be 'reverse-mode' or 'forward-mode', got {given!r}"


def not_together(name: str, one: str, other: str) -> str:
    return f"{name}: {one} and {other} do not go together"


def one_element(name: str, outputs: Sequence[Tensor]) -> str:
    found = tensor_text(outputs[0]) if len(outputs) == 1 else f"{len(outputs)} tensors"
    return f"{name}: the function must return a tensor of one element, not in a tuple; it returned {found}"


def vector_needed(name: str, whose: str) -> str:
    return f"{name}: 'v' can be omitted only where {whose} one tensor of one element"


def vector_count(name: str, given: int, wanted: int) -> str:
    return f"{name}: 'v' has {given} tensors; expected {wanted}"


def vector_shape(name: str, index: int, given: Tensor, wanted: Tensor) -> str:
    return f"{name}: tensor {index} of 'v' has shape {list(given.shape)}; it belongs to a tensor {tensor_text(wanted)}"


def strict_result(name: str, index: int) -> str:
    return f"{name}: with strict=True every result must depend on the inputs, but result {index} does not"


def strict_input(name: str, index: int) -> str:
    return f"{name}: with strict=True the results must depend on every input, but one does not depend on input {index}"


def strict_gradient(name: str, index: int) -> str:
    return (
        f"{name}: with strict=True the gradients must depend on the inputs, but that of input {index} does not: "
        "the function is linear in it"
    )


def strict_graph(name: str, index: int) -> str:
    return (
        f"{name}: with strict=True and create_graph=True the derivatives must depend on the inputs, "
        f"but that of input {index} does not"
    )
