"""The rows of raw kernels, put together from the modules of each family."""

from __future__ import annotations

from typing import Any

from turnout_aten.kernels.rows import table_of
from turnout_cuda import (
    foreach,
    normalisation,
    picking,
    pointwise,
    reduce,
    resize,
    scans,
    scattering,
    softmax,
    sorting,
    steps,
    windows,
)
from turnout_cuda.programs import Programs

FAMILIES = (foreach, normalisation, picking, pointwise, reduce, resize, scans, scattering, softmax, sorting, steps, windows)


def raw_kernels(xp: Any, programs: Programs) -> dict[str, Any]:
    """Operator -> function. A row that returns NotImplemented leaves the call to the kernel below."""
    return table_of(FAMILIES, lambda family: family.kernels(xp, programs))
