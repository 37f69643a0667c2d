"""The kernels of core: the fallbacks of BackendSelect, which finds the backend of a factory, and of Python, for modes."""

from __future__ import annotations

from turnout.config.installed import replaceable
from turnout.devices import default_device
from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel, LazyFunction
from turnout.registry.registrations import Registrations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from turnout.operators import Operator


def install() -> None:
    """Register them. The package's `__init__` calls this once, before there are plugins to discover."""
    library = Registrations("turnout", package="turnout")
    library.fallback("BackendSelect", None, form=INTERNAL, specialize=selection, label="backend of a factory")
    library.fallback("Python", LazyFunction("turnout.registry.modes:dispatch"), label="modes and tensor subclasses")


def selection(op: Operator) -> Any:
    """The kernel at BackendSelect. A factory, with a `device` and no tensors, takes that backend, whose plugin is activated."""
    arguments = op.schema.arguments
    at = next((i for i, a in enumerate(arguments) if a.type.canonical.rstrip("?") == "Device"), None)
    if at is None or any(a.type.is_tensor_like for a in arguments):
        return FALLTHROUGH
    return Kernel(selecting(op, at), INTERNAL, calls_operators=False, label=f"select the backend of {op.qualified_name}")


@replaceable
def selecting(op: Operator, at: int) -> Any:
    above, cache = ~op.registry.keys.bit("BackendSelect"), op.cache

    def select_backend(ks: int, *args: Any) -> Any:
        wanted = args[at]
        backend = (default_device() if wanted is None else wanted).backend
        place = backend.current_device() if wanted is None else backend.resolve_device(wanted)
        call = cache.get(ks := ks & above | backend.dense) or op.resolve(ks)
        return call(ks, *args[:at], place, *args[at + 1 :])

    return select_backend
