"""The whole table of the kernel library, put together from the modules of each family."""

from __future__ import annotations

from typing import Any

from turnout_arrays import (
    activations,
    convolutions,
    decompositions,
    elementary,
    fourier,
    images,
    indexing,
    losses,
    matrix_products,
    normalisation,
    orthogonal_polynomials,
    pointwise,
    pooling,
    reductions,
    scattering,
    softmax,
    sorting,
    statistics,
)
from turnout_aten.kernels.rows import table_of

FAMILIES = (
    activations, convolutions, decompositions, elementary, fourier, images, indexing, losses, matrix_products, normalisation,
    orthogonal_polynomials, pointwise, pooling, reductions, scattering, softmax, sorting, statistics,
)  # fmt: skip


def kernels(xp: Any) -> dict[str, Any]:
    """Operator -> function or `Row`, for an array module with NumPy's names. Raises nothing; imports nothing."""
    return table_of(FAMILIES, lambda family: family.kernels(xp))
