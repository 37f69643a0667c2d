"""Gradient rules of custom operators: from `backward` and `setup_context` to a kernel at the alias key Autograd.

The kernel is registered for tracked tensors only, so that plain calls pay nothing, and is built by the plugin that provides
Autograd when the first such call is resolved, so that registering a rule activates nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout import plugins
from turnout.errors import RegistrationError
from turnout.errors import library as texts
from turnout.keys import AUTOGRAD
from turnout.operators import Operator
from turnout.operators.kernels import Kernel
from turnout.schema import FunctionSchema

Call = Callable[..., Any]


def check_rule(name: str, schema: FunctionSchema) -> None:
    """Raise RegistrationError for an operator that cannot have a rule: it writes, returns views, or has keyword-only tensors."""
    if schema.is_mutable or any(r.annotation is not None for r in schema.returns):
        raise RegistrationError(texts.rule_not_functional(name, schema))
    keyword = [a.name for a in schema.kwarg_only if a.type.is_tensor_like]
    if keyword:
        raise RegistrationError(texts.rule_keyword_tensors(name, schema, keyword))


class Rule:
    """What a user registered: `backward(ctx, *grads)` and `setup_context(ctx, inputs, output)`, or None."""

    def __init__(self, backward: Call, setup_context: Call | None) -> None:
        self.backward = backward
        self.setup_context = setup_context

    def bind(self, op: Operator, kernel: Kernel, key: str) -> Call:
        """The binder of the rule's kernel."""
        made: Call = plugins.service(AUTOGRAD).custom_rule(op, self)
        return made

    @property
    def shown(self) -> str:
        """The rule's function and where it is from, for messages."""
        kernel = Kernel(self.backward)
        return f"{kernel.name} ({kernel.source})"
