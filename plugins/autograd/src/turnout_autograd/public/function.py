"""`turnout.autograd.function`: functions with gradients of their own."""

from __future__ import annotations

from turnout_autograd.function import Function, FunctionCtx, once_differentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
