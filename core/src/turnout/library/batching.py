"""Batching rules of custom operators: from a function of batches to a kernel at Batched.

How a call is taken apart and its results are put together is the business of the plugin that provides Batched: nothing reaches
such a kernel unless one of its tensors is among the arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout import plugins
from turnout.errors import CallError
from turnout.errors import library as texts
from turnout.operators import Operator
from turnout.operators.kernels import Kernel


class Batching:
    """A rule: `function(info, in_dims, *args)` does the call for all examples and returns (result, out_dims)."""

    key = "Batched"

    def __init__(self, function: object, opaque: bool) -> None:
        if not callable(function):
            raise CallError(texts.not_callable("register_vmap", function))
        self.function: Callable[..., Any] = function
        self.opaque = opaque

    def bind(self, op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
        """The binder of the rule's kernel."""
        made: Callable[..., Any] = plugins.service(key).custom_rule(op, self.function, self.opaque)
        return made
