"""`turnout.autograd.function`: functions with gradients of their own."""

from turnout_autograd.function.context import FunctionCtx
from turnout_autograd.function.function import Function
from turnout_autograd.function.once_differentiable import once_differentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
__dir__ = __all__.copy
