"""Texts of errors about tensors: inference tensors, and views that are written."""

from __future__ import annotations


def fast_kernel_failed(name: str, device_type: str, error: Exception) -> str:
    """A kernel that may allocate its own result raised for arguments that the shape function accepts."""
    return (
        f"{name}: the kernel for {device_type} raised {type(error).__name__}: {error}\n"
        "  so      the general path computed the result, more slowly\n"
        "  to fix  mend the kernel, or let its row say what it does not take (refuses=, ranks=, bools=)"
    )


def inference_saved() -> str:
    """A call that is recorded for gradients would save an inference tensor."""
    return (
        "an inference tensor cannot be saved for the backward pass: it has no version that would show later writes\n"
        "  to fix  clone() it for a normal tensor, or make it under no_grad instead of inference_mode"
    )


def inference_written(name: str, argument: str) -> str:
    """A write into an inference tensor where the mode is not entered."""
    return (
        f"{name}: '{argument}' is an inference tensor, which cannot be changed in place outside of inference_mode\n"
        "  to fix  clone() it for a normal tensor, or write inside of inference_mode"
    )


def no_grad_view_written(name: str) -> str:
    """A write into a view whose base has, or would get, a history that does not show the view."""
    return (
        f"{name}: self is a view made under no_grad, and is written where gradients are recorded\n"
        "  to fix  make the view and write into it in the same mode"
    )
