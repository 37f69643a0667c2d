"""Functions with gradients of their own: `autograd.Function` with the methods that a test gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout import autograd


def function(forward: Callable[..., Any], backward: Callable[..., Any] | None = None, name: str = "Made", **others: Any) -> Any:
    """A class with these static methods."""
    methods = {"forward": forward, "backward": backward, **others}
    made = {key: staticmethod(method) for key, method in methods.items() if method is not None}
    return type(name, (autograd.Function,), made)


Square = function(lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, grad: grad * 2 * ctx.saved_tensors[0], "Square")
# Saves its output, which is differentiated through.
Exp = function(
    lambda x: x.exp(),
    lambda ctx, grad: grad * ctx.saved_tensors[0],
    "Exp",
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output),
)
# Writes into its input.
Doubled = function(lambda ctx, x: ctx.mark_dirty(x) or x.mul_(2), lambda ctx, grad: grad * 2, "Doubled")
