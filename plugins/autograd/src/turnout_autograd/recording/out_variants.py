"""Operators that write into arguments which may have no history: out variants and `resize_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from turnout.errors import AliasError
from turnout.operators.kernels import FALLTHROUGH
from turnout.operators.values import tensors_in
from turnout.state import BELOW_AUTOGRAD as BELOW
from turnout_aten.declarations.signatures import functional_of
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor
from turnout_autograd import errors
from turnout_autograd.recording.standard_kernels import standard
from turnout_autograd.recording.views import refresh_if_view

if TYPE_CHECKING:
    from turnout.operators import Operator


def out_variant(op: Operator) -> Callable[..., Any]:
    """Refuse tracked arguments where gradients are recorded; otherwise go on below.

    Where the functional operator has no gradient, only tracked outputs are refused.
    """
    constant = _is_constant(op)
    checked = [(i, a.name) for i, a in enumerate(op.schema.arguments) if a.is_write or not constant]

    def refuse_out(ks: int, *args: Any) -> Any:
        enabled = GRAD.get()[0]
        if enabled:
            for i, name in checked:
                for tensor in tensors_in((args[i],)):
                    refresh_if_view(tensor)
                    if tensor.gmask & enabled:
                        raise errors.GradientError(errors.recording.out_given(op.qualified_name, name))
        below = ks & BELOW
        return op.lookup(below)(below, *args)

    refuse_out.__qualname__ = f"autograd of {op.qualified_name}"
    return refuse_out


def _is_constant(op: Operator) -> bool:
    """Whether the functional operator of an out variant is one whose results never require a gradient."""
    functional = functional_of(op)
    return functional is not None and standard(functional) is FALLTHROUGH


def resize(op: Operator) -> Callable[..., Any]:
    """A tensor with a history cannot change its shape."""

    def refuse_resize(ks: int, self: Tensor, *args: Any) -> Any:
        refresh_if_view(self)
        if self.gmask & GRAD.get()[0]:
            raise AliasError(errors.recording.resized(op.qualified_name))
        below = ks & BELOW
        return op.lookup(below)(below, self, *args)

    refuse_resize.__qualname__ = f"autograd of {op.qualified_name}"
    return refuse_resize
