"""The kernels of core: the fallbacks of BackendSelect, which finds the backend of a factory, and of Python, for modes."""

from __future__ import annotations

from turnout import devices
from turnout.config import OVERRIDES
from turnout.config.installed import replaceable
from turnout.devices import default_device
from turnout.operators.kernels import FALLTHROUGH, INTERNAL, Kernel, LazyFunction
from turnout.operators.stubs import compile_function, python_name
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
    if at is None or op.schema.takes_tensors:
        return FALLTHROUGH
    return Kernel(selecting(op, at), INTERNAL, calls_operators=False, label=f"select the backend of {op.qualified_name}")


@replaceable
def selecting(op: Operator, at: int) -> Any:
    given = ", ".join(names := [python_name(a.name) for a in op.schema.arguments])
    source = f"""\
def select_backend(ks, {given}):
    _at = ((not OVERRIDES() and KEPT[0] or DEFAULT()) if {names[at]} is None else {names[at]}).backend
    {names[at]} = _at.resolve_device({names[at]}) if {names[at]} else _at.current_device() if _at.indexed else _at.place
    return (CACHE.get(ks := ks & ABOVE | _at.dense) or RESOLVE(ks))(ks, {given})
"""
    # The default device without the frame of `default_device`, if it is known.
    own = {
        "DEFAULT": default_device, "KEPT": devices.DEFAULT, "OVERRIDES": OVERRIDES.get, "CACHE": op.cache, "RESOLVE": op.resolve,
        "ABOVE": ~op.registry.keys.bit("BackendSelect"),
    }  # fmt: skip
    return compile_function(source, "select_backend", f"<backend of {op.qualified_name}>", own)
