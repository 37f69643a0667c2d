"""`turnout.autograd.functional`: Jacobians, Hessians and products with them, under PyTorch's older names."""

from turnout_autograd.functional.derivatives import hessian, jacobian
from turnout_autograd.functional.vector_products import hvp, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__dir__ = __all__.copy
