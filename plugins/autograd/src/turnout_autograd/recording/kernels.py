"""What stands at Autograd for each operator: its generated kernel, or one made from its schema.

`decide` goes in this order: standard operators have the decision of `declarations`; where no tensors come in or go out there
is nothing to do; out variants refuse tracked arguments; everything else records that its gradient is not implemented.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel
from turnout_aten.declarations.tables import RESIZES
from turnout_autograd.engine.anomaly import ANOMALY, noting
from turnout_autograd.recording.missing_gradients import not_implemented
from turnout_autograd.recording.out_variants import out_variant, resize
from turnout_autograd.recording.standard_kernels import standard

if TYPE_CHECKING:
    from turnout.operators import Operator


class Specializer:
    """The fallback's `specialize`; the option `missing` says what `backward` does at an operator without a gradient."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options

    def __call__(self, op: Operator) -> Any:
        fn = decide(op, self._options)
        if fn is FALLTHROUGH:
            return fn
        if ANOMALY.enabled:
            fn = noting(fn)
        return Kernel(fn, INTERNAL, tracked_only=True, label=getattr(fn, "__qualname__", ""))


def decide(op: Operator, options: Mapping[str, Any]) -> Any:
    """The function of the internal convention for one operator, or FALLTHROUGH."""
    made = standard(op)
    if made is not None:
        return made
    schema = op.schema
    if not schema.takes_tensors or not (schema.gives_tensors or schema.is_mutable):
        return FALLTHROUGH
    if RESIZES in op.tags:
        return resize(op)
    if schema.kind == "out":
        return out_variant(op)
    return not_implemented(op, options)
