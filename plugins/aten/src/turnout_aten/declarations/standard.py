"""The standard operators: each is defined, with its kernels, when its name is first looked up.

Activating the plugin only registers their source. Defining an operator does not parse a schema or import a kernel module.
"""

from __future__ import annotations

from turnout.keys import EXPLICIT
from turnout.operators.kernels import BOXED, INTERNAL, LazyFunction
from turnout_aten.declarations import tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

    from turnout.operators import Operator
    from turnout.operators.kernels import Kernel
    from turnout.registry import Registrations

# Modules whose kernels follow the internal convention and do not call operators.
_CALL_THE_BACKEND = (
    "turnout_aten.views.geometry:", "turnout_aten.views.dtype_views:", "turnout_aten.kernels.factories:",
)  # fmt: skip

# The one kernel of all operators on lists of tensors. Their schemas say what it does.
_FOR_EACH = "turnout_aten.composites.foreach:each"


def written_in_operators(op: Operator) -> Kernel | None:
    """A standard operator's kernel for all backends, if it calls operators. One of another library may read arrays."""
    if op.namespace != "aten" or EXPLICIT not in op.kernels:
        return None
    kernel = op.registry.winner(op, EXPLICIT)
    return kernel if kernel.calls_operators else None


class GeneratedVariant(LazyFunction):
    """The kernel of a generated variant, `autogen:KIND:OPERATOR`: it calls the declared variant, and names no function."""

    @property
    def __wrapped__(self) -> NoReturn:
        raise AttributeError

    @property
    def kernel_source(self) -> str:
        return f"calls {self.path.split(':', 2)[2]}"


class StandardOperators:
    """Defines the operators of the namespace aten, one packet at a time. See `turnout.registry.Source`."""

    def __init__(self, library: Registrations) -> None:
        self.defining: set[str] = set()
        self._library = library

    def define(self, name: str) -> None:
        """Define the overloads of one name."""
        for overload in tables.standard().overloads(name):
            self._define(overload)

    def names(self) -> Iterable[str]:
        """The packets."""
        return tables.standard()

    def knows(self, qualified_name: str) -> bool:
        """Whether it is one of the standard operators."""
        return tables.standard().knows(qualified_name)

    def fitted(self, op: Operator, args: tuple[Any, ...]) -> tuple[Operator, tuple[Any, ...]]:
        """The call with numbers in the place of tensors, if the operator takes them there."""
        from turnout_aten.functions.numbers_as_tensors import fitted  # it needs tensors, which a definition does not

        return fitted(op, args)

    def _define(self, overload: tables.Overload) -> None:
        """Define one operator, and register the kernels that the yaml names."""
        library = self._library
        op = library.define(overload.schema_text, tags=overload.tags, cache=overload.cache, trusted=True)
        op.device_check = overload.device_check
        op.device_guard = overload.device_guard
        for key, path in overload.kernels:
            if path.startswith("autogen:"):
                library.impl(op.qualified_name, key, GeneratedVariant(path), binder=_bind_autogen, label="generated variant")
            elif path.startswith(_CALL_THE_BACKEND):
                library.impl(op.qualified_name, key, LazyFunction(path), form=INTERNAL, calls_operators=False, binder=_bind_plain)
            elif path == _FOR_EACH:
                library.impl(op.qualified_name, key, LazyFunction(path), form=BOXED)
            else:
                library.impl(op.qualified_name, key, LazyFunction(path), binder=_bind_composite)


def _bind_autogen(op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
    from turnout_aten.declarations import variants

    _, kind, source = kernel.fn.path.split(":", 2)
    return variants.kernel(op, kind, op.registry.find(source))


def _bind_plain(op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
    from turnout_aten.kernels.factories import bind_factory
    from turnout_aten.tensor.backend_keys import keeping

    return keeping(op, key, bind_factory(op, kernel, key))


def _bind_composite(op: Operator, kernel: Kernel, key: str) -> Callable[..., Any]:
    from turnout_aten.tensor.backend_keys import keeping
    from turnout_aten.views.temporaries import bind_composite

    return keeping(op, key, bind_composite(op, kernel, key))
