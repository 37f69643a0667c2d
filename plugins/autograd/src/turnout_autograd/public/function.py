"""`turnout.autograd.function`: functions with gradients of their own."""

from turnout_autograd.function.context import FunctionCtx as FunctionCtx
from turnout_autograd.function.function import Function as Function
from turnout_autograd.function.once_differentiable import once_differentiable as once_differentiable
