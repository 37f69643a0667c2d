"""The whole table of the kernel library, put together from the modules of each concern."""

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
    pointwise,
    polynomials,
    pooling,
    reductions,
    scattering,
    sorting,
    statistics,
)

MODULES = (
    activations, convolutions, decompositions, elementary, fourier, images, indexing, losses, matrix_products, normalisation,
    pointwise, polynomials, pooling, reductions, scattering, sorting, statistics,
)  # fmt: skip


def kernels(xp: Any) -> dict[str, Any]:
    """Operator -> function or `Row`, for an array module with NumPy's names. Raises nothing; imports nothing."""
    table: dict[str, Any] = {}
    for module in MODULES:
        rows = module.kernels(xp)
        assert not table.keys() & rows.keys(), f"{module.__name__} repeats a row"
        table |= rows
    return table
