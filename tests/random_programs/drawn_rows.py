"""The rows that benchmarks draw from a seed, as programs: what their statements give, with and without the compiled kernels.

    python -m random_programs.drawn_rows FILE FIRST COUNT LARGEST

writes the results into a file. The plugins that the environment disables are not used.
"""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import turnout

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
drawn = import_module("drawn")

# Values that differ with the library or the run.
NOT_ALIKE = {"random"}
# In units of the largest value: two-byte floats are rounded once, float32 sums in some order.
TOLERANCE = {"bfloat16": 2e-2, "float16": 4e-3, "float32": 3e-5}


def result(row: Any, m: Any) -> list[Any]:
    """What a statement gives, as NumPy arrays."""
    return _arrays(eval(row.statement, drawn.prepared(row, m)))


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [array for each in value for array in _arrays(each)]
    value = value.detach()
    return [(value.float() if str(value.dtype).endswith("float16") else value).numpy()]


def difference(row: Any, found: list[Any], expected: list[Any]) -> str:
    """What is different; "" if nothing is. Places in sorted values are not compared: which of equal elements is found is free."""
    tolerance = next(t for name, t in TOLERANCE.items() if f"[{name}" in row.name)
    for at, (a, b) in enumerate(zip(found, expected, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{row.name}, output {at}: {a.dtype} {a.shape}, expected {b.dtype} {b.shape}"
        if a.dtype.kind != "f":
            if not np.array_equal(a, b) and not (row.family == "sorting" and (at or "argsort" in row.statement)):
                return f"{row.name}, output {at}: {np.mean(a != b):.2%} of the numbers differ"
            continue
        size = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0)) ** 0.5)
        if not np.allclose(a, b, tolerance, tolerance * size, equal_nan=True):
            return f"{row.name}, output {at}: differs by up to {np.nanmax(np.abs(a - b)):.3g}"
    return ""


def rows(seeds: range, largest: int) -> list[Any]:
    """The rows of seeds whose values may be compared."""
    return [row for row in (drawn.draw(seed, largest) for seed in seeds) if row.family not in NOT_ALIKE]


if __name__ == "__main__":
    first, count, most = map(int, sys.argv[2:])
    with open(sys.argv[1], "wb") as file:
        pickle.dump([result(row, turnout) for row in rows(range(first, first + count), most)], file)
