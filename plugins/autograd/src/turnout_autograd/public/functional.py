"""`turnout.autograd.functional`: Jacobians, Hessians and products with them, under PyTorch's older names."""

from turnout_autograd.functional.derivatives import hessian as hessian
from turnout_autograd.functional.derivatives import jacobian as jacobian
from turnout_autograd.functional.products import hvp as hvp
from turnout_autograd.functional.products import jvp as jvp
from turnout_autograd.functional.products import vhp as vhp
from turnout_autograd.functional.products import vjp as vjp
