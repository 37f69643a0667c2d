"""The rows of raw kernels, put together from the modules of each family."""

from __future__ import annotations

from typing import Any

from turnout_cuda import foreach, normalisation, scans, scattering, softmax, steps
from turnout_cuda.programs import Programs

FAMILIES = (foreach, normalisation, scans, scattering, softmax, steps)


def raw_kernels(xp: Any, programs: Programs) -> dict[str, Any]:
    """Operator -> function. A row that returns NotImplemented leaves the call to the kernel below."""
    table: dict[str, Any] = {}
    for family in FAMILIES:
        rows = family.kernels(xp, programs)
        assert not table.keys() & rows.keys(), f"{family.__name__} repeats a row"
        table |= rows
    return table
