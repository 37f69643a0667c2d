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


def nested() -> str:
    return (
        "dual_level: there is a dual level already, and dual levels do not nest\n"
        "  to fix  use turnout.func.jvp for tangents of tangents"
    )


def no_level(name: str) -> str:
    return f"{name}: there is no dual level here\n  to fix  call it inside `with turnout.autograd.forward_ad.dual_level():`"


def other_level(name: str, number: object) -> str:
    return f"{name}: the dual level has the number 0, got level={number!r}"


def tangent_shape(tangent: Tensor, tensor: Tensor) -> str:
    return f"make_dual: the tangent has shape {list(tangent.shape)}; it belongs to a tensor {tensor_text(tensor)}"


def dual_already() -> str:
    return "make_dual: the tensor has a tangent already\n  to fix  take the primal of unpack_dual(tensor)"
