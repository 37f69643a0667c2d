"""What core itself registers: the fallbacks of BackendSelect, which finds the backend of a factory, and of Python, for modes."""

from __future__ import annotations

from turnout.operators.kernels import INTERNAL
from turnout.registry.registrations import Registrations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.operators import Operator


def install() -> None:
    """Register them; called once, by the package's `__init__`, before there are plugins to discover."""
    library = Registrations("turnout", package="turnout")
    library.fallback("BackendSelect", None, form=INTERNAL, specialize=_selection, label="backend of a factory")
    library.fallback("Python", _modes, label="modes and tensor subclasses")


def _selection(op: Operator) -> Any:
    from turnout.operators.selection import selection

    return selection(op)


def _modes(op: Operator, ks: int, args: tuple[Any, ...]) -> Any:
    from turnout.registry.modes import dispatch

    return dispatch(op, ks, args)
