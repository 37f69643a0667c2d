"""The whole table, put together from the modules of each family."""

from __future__ import annotations

from typing import Any

from turnout_kernels import attention, few, images, matrix_products, moving, pointwise, random, recurrent, reductions, rows

FAMILIES = (attention, few, images, matrix_products, moving, pointwise, random, recurrent, reductions, rows)


def kernels() -> dict[str, Any]:
    """Operator -> function or `Row`."""
    table: dict[str, Any] = {}
    for family in FAMILIES:
        assert not table.keys() & family.KERNELS_BY_OPERATOR.keys(), f"{family.__name__} repeats a row"
        table |= family.KERNELS_BY_OPERATOR
    return table
