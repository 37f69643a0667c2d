"""Registers what core itself brings: the standard operators, their composite kernels, and the fallbacks of core's keys.

`import turnout` only says where the operators are; one is defined, with its kernels, when its name is first asked for. Then
too no schema is parsed and no kernel module is imported.
"""

from __future__ import annotations

from turnout.kernels import INTERNAL, LazyFunction
from turnout.parts import OperatorSource
from turnout.registry import REGISTRY, Library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from turnout.kernels import Kernel
    from turnout.operators import Operator

# Modules whose kernels are of the internal convention and call no operators.
_CALL_THE_BACKEND = ("turnout.native.views:", "turnout.native.retyped:", "turnout.native.direct:")

LIBRARY = Library("aten", distribution="turnout-core", version="0.1.0")


def install() -> None:
    """Register the fallbacks, and where the operators are; called once, by the package's `__init__`."""
    REGISTRY.add_source("aten", OperatorSource(define))
    LIBRARY.fallback("ADInplaceOrView", None, form=INTERNAL, specialize=_bookkeeping, label="views and versions")
    LIBRARY.fallback("BackendSelect", None, form=INTERNAL, specialize=_selection, label="backend of a factory")
    LIBRARY.fallback("Python", _python_key, label="modes and tensor subclasses")


def define(row: tuple[Any, ...]) -> None:
    """Define one operator from its row in a generated part, and register the kernels that the yaml names."""
    schema, stub, cache, tags, device_check, device_guard, kernels = row
    op = LIBRARY.define(schema, tags=tags, call=stub, cache=cache, trusted=True)
    op.device_check = device_check
    op.device_guard = device_guard
    for key, path in kernels:
        if path.startswith("autogen:"):
            LIBRARY.impl(op.qualified_name, key, LazyFunction(path), binder=_bind_autogen, label="generated variant")
        elif path.startswith(_CALL_THE_BACKEND):
            LIBRARY.impl(op.qualified_name, key, LazyFunction(path), form=INTERNAL, calls_operators=False)
        else:
            LIBRARY.impl(op.qualified_name, key, LazyFunction(path))


def _bind_autogen(op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
    """The kernel of a variant that autogen made: it calls the variant that was written."""
    from turnout.native import autogen

    _, kind, source = kernel.fn.path.split(":", 2)
    return autogen.kernel(op, kind, REGISTRY.find(source))


def _bookkeeping(op: Operator) -> Any:
    from turnout.native.bookkeeping import bookkeeping

    return bookkeeping(op)


def _selection(op: Operator) -> Any:
    from turnout.native.selection import selection

    return selection(op)


def _python_key(op: Operator, ks: int, args: tuple[Any, ...]) -> Any:
    from turnout.modes import dispatch

    return dispatch(op, ks, args)
