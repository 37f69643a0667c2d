"""The whole table, put together from the modules of each family."""

from __future__ import annotations

from typing import Any

from turnout_aten.kernels.rows import table_of
from turnout_kernels import (
    attention,
    convolutions,
    few,
    images,
    indexing,
    matrix_products,
    normalisation,
    pointwise,
    pooling,
    random,
    recurrent,
    reductions,
    scattering,
    softmax,
    sorting,
    statistics,
)

FAMILIES = (
    attention, convolutions, few, images, indexing, matrix_products, normalisation, pointwise, pooling, random, recurrent,
    reductions, scattering, softmax, sorting, statistics,
)  # fmt: skip


def kernels() -> dict[str, Any]:
    """Operator -> function or `Row`."""
    return table_of(FAMILIES, lambda family: family.KERNELS)
