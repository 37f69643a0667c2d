"""The error of a backend that lacks a method."""

from __future__ import annotations

from turnout.errors import TurnoutError
from turnout.errors.layout import report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class MissingMethodError(TurnoutError, NotImplementedError):
    """A backend of tensors does not define a method that a call needs."""


def not_declared_functional(owner: str, cls: str, backend: str) -> str:
    """A backend of values whose row does not say so."""
    return (
        f"{owner}: {cls} is a FunctionalBackend, but the row of {backend} does not say that it cannot write\n"
        "  to fix  add `functional_only = true` to its [[provides.backend]] in the manifest"
    )


def not_functional(owner: str, cls: str, backend: str) -> str:
    """A backend that can write, according to its class, and cannot, according to its row."""
    return (
        f"{owner}: the row of {backend} says functional_only, but {cls} is not a FunctionalBackend\n"
        "  to fix  derive it from turnout_aten.backend.functional_backend.FunctionalBackend, or take functional_only out of the "
        "manifest"
    )


ONE_BY_ONE = "graph.replay = '' runs operators one by one"  # for a device that cannot replay a graph at once


def host_switched_off(op_name: str, backend: str, host: str, option: str) -> str:
    """An operator without a kernel, where the setting that lets it run on the host is false."""
    return f"{op_name}: no kernel for {backend}\n  to fix  {option} = true lets it run on {host}"


def dtypes_switched_off(row: str, device_type: str, dtypes: Sequence[str], host: str, option: str) -> str:
    """A row without a kernel for these dtypes, where the setting that lets it run on the host is false."""
    return f"{row}: {device_type} does not compute in {' and '.join(dtypes)}; {option} = true lets it run on {host}"


def host_without_values(op: str, backend: str, where: str, why: object) -> str:
    """The host fallback, for a tensor whose elements cannot be read now."""
    return report(
        f"{op}: no kernel for {backend}, and the host fallback cannot read the elements",
        ("why", str(why)),
        (
            "to fix",
            f"call it outside of the traced program, or give {backend} a row; `turnout coverage` lists what runs on {where}",
        ),
    )


def kernel_would_write(op: str, backend: str) -> str:
    """A kernel on arrays for an operator that writes its arguments, on a backend of values."""
    return (
        f"{op}: a kernel on arrays of {backend} cannot write its arguments, because these arrays are values\n"
        "  to fix  register a kernel on tensors that calls operators"
    )
