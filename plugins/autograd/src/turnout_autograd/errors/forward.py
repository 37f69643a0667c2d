"""Forward mode: dual tensors, levels, and operators that tangents cannot pass."""

from __future__ import annotations


def no_rule(op: str) -> str:
    return (
        f"{op}: forward mode is not implemented for this operator\n  to fix  use reverse mode (turnout.func.grad, vjp or jacrev)"
    )


def out_given(op: str) -> str:
    return f"{op}: an argument has a tangent, and results cannot be written to out= in forward mode; leave out= away"


def resized(op: str) -> str:
    return f"{op}: a tensor with a tangent cannot change its shape"
