"""Error texts about tensors: inference tensors, and writes into views."""

from __future__ import annotations


def fast_kernel_failed(name: str, device_type: str, error: Exception) -> str:
    """A kernel on the fast path raised for arguments that the shape function accepts."""
    return (
        f"{name}: the kernel for {device_type} raised {type(error).__name__}: {error}\n"
        "  so      the general path computed the result, more slowly\n"
        "  to fix  mend the kernel, or let its row say what it does not take (accepts=)"
    )


def list_as_tuple() -> str:
    """An index that is a list of several indices."""
    return (
        "x[[...]] with lists, slices, None or tensors in the list is read as a tuple, an index for each dim\n"
        "  to fix  write x[i, j] for a tuple, x[turnout.tensor(index)] for one index"
    )


def does_not_fit(name: str, argument: str, value: complex, dtype: str, low: float, high: float) -> str:
    """A number outside the range of the dtype that it is converted to."""
    # Python may refuse to print a large int.
    shown = f"an int of {value.bit_length()} bits" if isinstance(value, int) and value.bit_length() > 128 else value
    return (
        f"{name}: argument '{argument}' is {shown}, which does not fit in {dtype} ({low} to {high}); "
        "choose another number or a wider dtype"
    )


def inference_saved() -> str:
    """A recorded call would save an inference tensor for its gradient."""
    return (
        "an inference tensor cannot be saved for the backward pass: it has no version, so later writes would go unnoticed\n"
        "  to fix  clone() it to get a normal tensor, or make it under no_grad instead of inference_mode"
    )


def inference_written(name: str, argument: str) -> str:
    """A write into an inference tensor outside inference_mode."""
    return (
        f"{name}: '{argument}' is an inference tensor, which cannot be changed in place outside inference_mode\n"
        "  to fix  clone() it to get a normal tensor, or write inside inference_mode"
    )


def leaf_written(name: str, argument: str, view: bool) -> str:
    """A recorded write into a leaf."""
    what = "a view of a leaf" if view else "a leaf"
    return (
        f"{name}: {argument} is {what} that requires a gradient; it cannot be changed in place\n"
        "  to fix  write under turnout.no_grad(), or into a clone()"
    )


# Where there is nothing that a gradient could flow to.
REQUIRE = "  to fix  requires_grad=True on an input; nothing is recorded under turnout.no_grad()"


def tracked(name: str, remedy: str) -> str:
    """A use of the elements that no gradient could follow."""
    return f"{name}: the tensor requires a gradient{remedy}"


def no_grad_view_written(name: str) -> str:
    """A write into a view that the history of its base does not include."""
    return (
        f"{name}: self is a view made under no_grad, but this write happens while gradients are recorded\n"
        "  to fix  make the view and write into it in the same mode"
    )


def backwards_over_symbol(step: int) -> str:
    return f"a slice with step {step} needs a length and bounds that are known; where one is a symbol, only x[::-1] can be read"
