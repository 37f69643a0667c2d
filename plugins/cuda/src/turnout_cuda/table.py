"""The rows of raw kernels, put together from the modules of each family."""

from __future__ import annotations

from typing import Any

from turnout_aten.kernels.rows import table_of
from turnout_cuda import (
    foreach,
    images,
    indexing,
    losses,
    normalisation,
    optimisers,
    pointwise,
    pooling,
    reductions,
    scattering,
    softmax,
    sorting,
    statistics,
)
from turnout_cuda.programs import Programs

FAMILIES = (
    foreach, images, indexing, losses, normalisation, optimisers, pointwise, pooling, reductions, scattering, softmax, sorting,
    statistics,
)  # fmt: skip


def kernels(xp: Any, programs: Programs) -> dict[str, Any]:
    """Operator -> function. A row that returns NotImplemented leaves the call to the kernel below."""
    return table_of(FAMILIES, lambda family: family.kernels(xp, programs))
