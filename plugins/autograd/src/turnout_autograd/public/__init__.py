"""`turnout.autograd`: gradients of recorded calls, functions with gradients of their own, modes, checks.

`turnout.autograd.forward_ad`, `function`, `functional` and `graph` are modules of their own; `turnout.func` has the functional
transforms.
"""

from __future__ import annotations

from turnout_aten.tensor.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from turnout_autograd.checking.gradcheck import gradcheck, gradgradcheck
from turnout_autograd.checking.samples import GradcheckError
from turnout_autograd.engine.anomaly import detect_anomaly, is_anomaly_check_nan_enabled, is_anomaly_enabled, set_detect_anomaly
from turnout_autograd.engine.hook_tables import Handle
from turnout_autograd.engine.nodes import Node
from turnout_autograd.errors import DrawingError, GradientError
from turnout_autograd.function.context import FunctionCtx
from turnout_autograd.function.function import Function
from turnout_autograd.function.once_differentiable import once_differentiable
from turnout_autograd.passes.backward import backward, grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from turnout_autograd.public import forward_ad, function, functional, graph

__all__ = [
    "DrawingError", "Function", "FunctionCtx", "GradcheckError", "GradientError", "Handle", "Node", "backward",
    "detect_anomaly", "enable_grad", "forward_ad", "function", "functional", "grad", "gradcheck", "gradgradcheck", "graph",
    "inference_mode", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "is_grad_enabled", "is_inference",
    "is_inference_mode_enabled", "no_grad", "once_differentiable", "set_detect_anomaly", "set_grad_enabled",
]  # fmt: skip
__dir__ = __all__.copy


def __getattr__(name: str) -> ModuleType:
    """The modules, imported when they are first used."""
    if name in ("forward_ad", "function", "functional", "graph"):
        from importlib import import_module

        return import_module(f"turnout_autograd.public.{name}")
    raise AttributeError(f"module 'turnout.autograd' has no attribute {name!r}")
