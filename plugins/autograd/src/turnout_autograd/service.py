"""What other plugins call in this one: `turnout.plugins.service("Autograd")`. What users call is in `public`."""

from typing import Any

from turnout_autograd.function.custom_rules import custom_rule as custom_rule
from turnout_autograd.function.function import Function as Function
from turnout_autograd.hooks.tensor_hooks import output_nr as output_nr
from turnout_autograd.hooks.tensor_hooks import register_post_accumulate_grad_hook as register_post_accumulate_grad_hook
from turnout_autograd.hooks.tensor_hooks import register_tensor_hook as register_tensor_hook
from turnout_autograd.hooks.tensor_hooks import retain_grad as retain_grad
from turnout_autograd.hooks.tensor_hooks import retains_grad as retains_grad
from turnout_autograd.passes.backward import backward as backward
from turnout_autograd.recording.views import current_node as current_node
from turnout_autograd.recording.views import refresh as refresh


def __getattr__(name: str) -> Any:
    if name == "vjp":  # few programs need it
        from turnout_autograd.transforms.vector_products import vjp

        return vjp
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
