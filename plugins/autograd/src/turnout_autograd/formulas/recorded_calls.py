"""Whether the calls of a formula are recorded. If they are not, some calls can be avoided."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.keys import TRACKED
from turnout.state import BELOW_ADINPLACEORVIEW, in_effect, is_fresh
from turnout_aten.tensor.levels import GRAD, peel
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd.duals.levels import FORWARD, active

if TYPE_CHECKING:
    from turnout.operators import Operator


def is_plain(tensor: Tensor) -> bool:
    """Whether a call on the tensor would go straight to its backend's kernel, whose work may then be done without the call."""
    if GRAD.get()[0] or not is_fresh():
        return False
    return tensor.keys | TRACKED == tensor.device.backend.keys | TRACKED


def unrecorded_view(op: Operator, grad: Tensor, *args: Any) -> Tensor:
    """A view without a record of its base, for calls that are not recorded: saves 1.5 us of 3.5."""
    ks = in_effect(grad.keys) & BELOW_ADINPLACEORVIEW
    return op.lookup(ks)(ks, grad, *args)


def is_recorded(*tensors: Tensor) -> bool:
    """Whether calls on one of these are differentiated now, so that the gradient can be differentiated with respect to it."""
    if GRAD.get()[0] and any(t.requires_grad for t in tensors):
        return True
    return bool(active()) and any(peel(t)[0].history_owner().keys & FORWARD for t in tensors)
