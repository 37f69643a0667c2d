"""The Meta table. Core's shape functions do all the work, so every structured operator has the same kernel: nothing.

Operators whose output shape depends on values cannot run here: they raise an error.
"""

from __future__ import annotations

from typing import Any

from turnout.errors import NoDataError
from turnout_aten.errors.transforms import DEPENDS_ON_VALUES
from turnout_aten.kernels.rows import Row
from turnout_aten.kernels.tables import structured_operators

# Operators with a kernel of their own whose results have as many elements as the values say.
SIZED_BY_VALUES = ("nonzero", "bincount", "_unique2", "unique_dim", "unique_consecutive")


def nothing(*arrays: Any) -> None:
    """The outputs have their shapes already."""


def needs_values(name: str) -> Any:
    """The kernel of an operator that cannot run without data."""

    def kernel(*arrays: Any) -> Any:
        raise NoDataError(f"{name}: {DEPENDS_ON_VALUES}, and a meta tensor has none")

    return kernel


def kernels() -> dict[str, Any]:
    """Operator -> kernel, for every structured operator that there is."""
    table: dict[str, Any] = {name: Row(nothing, pointwise=True, quiet=True) for name in structured_operators()}
    table |= {f"aten::{name}": needs_values(name) for name in SIZED_BY_VALUES}
    return table
