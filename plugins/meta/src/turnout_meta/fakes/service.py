"""What the library of core asks of the plugin that provides Fake: how fake kernels are called, and sizes that depend on data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import CallError
from turnout_aten.tensor.devices import fake_mode
from turnout_meta.fakes import errors
from turnout_meta.fakes.calls import in_mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout_meta.symbols.sizes import SymInt

__all__ = ["bind_kernel", "in_mode", "new_dynamic_size"]


def new_dynamic_size(op: Operator, low: int, high: int | None) -> SymInt:
    """A size of a result of `op` that depends on data."""
    mode = fake_mode()
    if mode is None:
        raise CallError(errors.KEPT_CONTEXT)
    return mode.sizes.unbacked(f"a result of {op.qualified_name}", low, high)  # type: ignore[attr-defined]  # a FakeMode


def bind_kernel(op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
    """The binder of this package's own kernels at Fake."""
    return in_mode(op, kernel.fn)
