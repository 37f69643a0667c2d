"""The generated kernels, looked up by operator."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from turnout.operators.kernels import FALLTHROUGH
from turnout.plugins import replaceable
from turnout_autograd.generated import CONSTANT, FAMILIES

if TYPE_CHECKING:
    from types import ModuleType

    from turnout.operators import Operator


def standard(op: Operator) -> Any:
    """What `declarations` say of an operator: its kernel, FALLTHROUGH for constants, None for nothing."""
    name = op.qualified_name
    if name in CONSTANT:
        return FALLTHROUGH
    family = FAMILIES.get(name)
    return None if family is None else kernel_of(op, import_module(f"turnout_autograd.generated.{family}"))


@replaceable
def kernel_of(op: Operator, family: ModuleType) -> Any:
    """The kernel of an operator from the module of its family, whose `RECORDS` has the same as data."""
    return family.KERNELS[op.qualified_name](op)
