"""The rows of raw kernels, put together from the modules of each family."""

from __future__ import annotations

from typing import Any

from turnout_aten.kernels.rows import table_of
from turnout_cuda import (
    foreach,
    images,
    normalisation,
    picking,
    pointwise,
    pooling,
    reductions,
    scans,
    scattering,
    softmax,
    sorting,
    steps,
)
from turnout_cuda.programs import Programs

FAMILIES = (
    foreach, images, normalisation, picking, pointwise, pooling, reductions, scans, scattering, softmax, sorting, steps,
)  # fmt: skip


def raw_kernels(xp: Any, programs: Programs) -> dict[str, Any]:
    """Operator -> function. A row that returns NotImplemented leaves the call to the kernel below."""
    return table_of(FAMILIES, lambda family: family.kernels(xp, programs))
