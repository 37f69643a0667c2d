"""`turnout.autograd`: gradients of recorded calls, functions with gradients of their own, modes, checks.

`turnout.autograd.function`, `functional` and `graph` are modules of their own; `turnout.func` has the functional transforms.
"""

from __future__ import annotations

from turnout_aten.tensor.grad_mode import enable_grad as enable_grad
from turnout_aten.tensor.grad_mode import inference_mode as inference_mode
from turnout_aten.tensor.grad_mode import is_grad_enabled as is_grad_enabled
from turnout_aten.tensor.grad_mode import is_inference as is_inference
from turnout_aten.tensor.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from turnout_aten.tensor.grad_mode import no_grad as no_grad
from turnout_aten.tensor.grad_mode import set_grad_enabled as set_grad_enabled
from turnout_autograd.checking.gradcheck import gradcheck as gradcheck
from turnout_autograd.checking.gradcheck import gradgradcheck as gradgradcheck
from turnout_autograd.checking.samples import GradcheckError as GradcheckError
from turnout_autograd.engine.anomaly import detect_anomaly as detect_anomaly
from turnout_autograd.engine.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from turnout_autograd.engine.anomaly import is_anomaly_enabled as is_anomaly_enabled
from turnout_autograd.engine.anomaly import set_detect_anomaly as set_detect_anomaly
from turnout_autograd.engine.hook_tables import Handle as Handle
from turnout_autograd.engine.nodes import Node as Node
from turnout_autograd.errors import DrawingError as DrawingError
from turnout_autograd.errors import GradientError as GradientError
from turnout_autograd.function.context import FunctionCtx as FunctionCtx
from turnout_autograd.function.function import Function as Function
from turnout_autograd.function.once_differentiable import once_differentiable as once_differentiable
from turnout_autograd.passes.backward import backward as backward
from turnout_autograd.passes.backward import grad as grad

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from turnout_autograd.public import function as function
    from turnout_autograd.public import functional as functional
    from turnout_autograd.public import graph as graph


def __getattr__(name: str) -> ModuleType:
    """The modules, imported when they are first used."""
    if name in ("function", "functional", "graph"):
        from importlib import import_module

        return import_module(f"turnout_autograd.public.{name}")
    raise AttributeError(f"module 'turnout.autograd' has no attribute {name!r}")
