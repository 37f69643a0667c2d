"""Rules of custom operators for Autograd, Autocast and Batched.

The plugin of the functionality makes the kernel from a rule, in its service's `custom_rule(op, ...)`, when the first call
that reaches the key is resolved. So registering a rule activates nothing, and other calls pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnout import plugins
from turnout.dtypes import FLOAT, DType
from turnout.errors import CallError, DTypeError, RegistrationError
from turnout.errors import library as texts
from turnout.keys import AUTOCAST, AUTOGRAD
from turnout.library.libraries import key_of, require_callable
from turnout.operators import Operator
from turnout.operators.kernels import Kernel
from turnout.schema import FunctionSchema

Call = Callable[..., Any]
BATCHED = "Batched"


def add_gradient(register: Call, name: str, schema: FunctionSchema, backward: Call, setup_context: Call | None) -> None:
    """Register `backward(ctx, *grads)` and `setup_context(ctx, inputs, output)`.

    `register`, here and below, is `impl_all` of a `Library` or of the handle of a custom operator.
    Raises RegistrationError for an operator that cannot have a rule: it writes, returns views, or has keyword-only tensors.
    """
    require_callable("register_autograd", backward, *([] if setup_context is None else [setup_context]))
    if schema.is_mutable or any(r.annotation is not None for r in schema.returns):
        raise RegistrationError(texts.RULE_NOT_FUNCTIONAL.format(name=name, schema=schema))
    keyword = [a.name for a in schema.kwarg_only if a.type.is_tensor_like]
    if keyword:
        raise RegistrationError(texts.rule_keyword_tensors(name, schema, keyword))
    binder = _made_by(AUTOGRAD, backward, setup_context)
    register(name, [AUTOGRAD], backward, binder=binder, tracked_only=True, checked=False)


def add_cast(register: Call, name: str, device_type: object, dtype: object) -> None:
    """Register that eligible tensors are cast to `dtype` inside autocast for `device_type`."""
    if not isinstance(device_type, str):
        raise CallError(texts.NO_DEVICE_TYPE.format("register_autocast", type(device_type).__name__))
    dtype = require_floating("register_autocast", dtype)
    key = AUTOCAST + key_of(device_type)
    binder = _made_by(AUTOCAST, key, dtype, device_type)
    register(name, [key], binder, binder=binder, label=f"autocast to {dtype.name}", checked=False)


def require_floating(what: str, dtype: object) -> DType:
    """The dtype, if it is a floating one. Raises DTypeError for others."""
    if not isinstance(dtype, DType) or dtype.category != FLOAT:
        raise DTypeError(texts.no_floating_dtype(what, dtype))
    return dtype


def add_batching(register: Call, name: str, function: Call, opaque: bool) -> None:
    """Register `function(info, in_dims, *args)`, which does the call for all examples and returns (result, out_dims)."""
    require_callable("register_vmap", function)
    register(name, [BATCHED], function, binder=_made_by(BATCHED, function, opaque), checked=False)


def _made_by(functionality: str, *rule: Any) -> Call:
    """The binder of a kernel that the functionality's plugin makes."""

    def bind_rule(op: Operator, kernel: Kernel, key: str) -> Call:
        made: Call = plugins.service(functionality).custom_rule(op, *rule)
        return made

    return bind_rule
