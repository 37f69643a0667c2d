"""`turnout.autograd.functional`: Jacobians, Hessians and products with them, under PyTorch's older names."""

from __future__ import annotations

from turnout_autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
