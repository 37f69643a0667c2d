"""Out variants of composite kernels: they compute, then write into the given outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout_aten.composites.reshaping import write_out

if TYPE_CHECKING:
    from collections.abc import Callable


# The possible names of output arguments.
OUTPUTS = ("out", "grad_input", "output", "buffer")


def into_out(function: Callable[..., Any], variant: str) -> Callable[..., Any]:
    """The out variant of a composite kernel; `variant` is its name, as in "selu.out".

    An output of another shape is resized with a warning. Raises DTypeError if its dtype cannot hold the result.
    """
    label = f"aten::{variant}"

    def call(*args: Any, **kwargs: Any) -> Any:
        outs = {k: kwargs.pop(k) for k in OUTPUTS if k in kwargs}
        made = function(*args, **kwargs)
        for target, value in zip(outs.values(), made if isinstance(made, tuple) else (made,), strict=True):
            write_out(label, target, value)
        targets = tuple(outs.values())
        return targets[0] if len(targets) == 1 else targets

    return call
