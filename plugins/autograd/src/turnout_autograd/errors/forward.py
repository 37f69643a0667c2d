"""Forward mode: dual tensors, levels, and operators that tangents cannot pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_autograd.errors.described import tensor_text

if TYPE_CHECKING:
    from turnout import Tensor


def changed(tensor: Tensor) -> str:
    return (
        f"linearize: a tensor that the linear function needs, {tensor_text(tensor)}, was changed in place later\n"
        "  to fix  write into a clone(), or linearize again"
    )


def no_rule(op: str) -> str:
    return (
        f"{op}: forward mode is not implemented for this operator\n  to fix  use reverse mode (turnout.func.grad, vjp or jacrev)"
    )


def out_given(op: str) -> str:
    return f"{op}: an argument has a tangent, and results cannot be written to out= in forward mode; leave out= away"


def resized(op: str) -> str:
    return f"{op}: a tensor with a tangent cannot change its shape"
