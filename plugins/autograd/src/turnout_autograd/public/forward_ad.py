"""`turnout.autograd.forward_ad`: forward mode by hand, with dual tensors."""

from turnout_autograd.transforms.dual_tensors import (
    UnpackedDualTensor,
    dual_level,
    enter_dual_level,
    exit_dual_level,
    is_fwd_grad_enabled,
    make_dual,
    set_fwd_grad_enabled,
    unpack_dual,
)

__all__ = [
    "UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "is_fwd_grad_enabled", "make_dual",
    "set_fwd_grad_enabled", "unpack_dual",
]  # fmt: skip
__dir__ = __all__.copy
