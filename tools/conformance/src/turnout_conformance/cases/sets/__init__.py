"""Sets of samples by purpose: what a device or functionality can be asked beyond the few small samples of every case.

A module is a set, and its name the set's. Its rows name functional operators, several where their samples are alike; in-place and
out forms are derived. Expected numbers are those of cpu in float64, see `turnout_conformance.accuracy`.

    special          infinities, nan, zeros of both signs, very small and very large numbers
    complexes        complex numbers
    halves           floats of two bytes
    strided          operands that lie anyhow in memory
    anyhow           floats of any dtype in any number and layout
    sizes            lines, windows and lists of indices of sizes around those at which devices divide their work otherwise
    large            arrays above the sizes from which devices compute in pieces, with vectors, or by programs of their own
    reductions       along every dim, of all dtypes
    lines            reductions of long lines, in pieces
    matrix_products  of odd sizes, with vectors too
    convolutions     and their gradients
    sorting          and the first elements in order
    indices          reading and writing at indices and masks
"""

from collections.abc import Mapping

from turnout_conformance.cases.model import SampleSet
from turnout_conformance.cases.sets import (
    anyhow,
    complexes,
    convolutions,
    halves,
    indices,
    large,
    lines,
    matrix_products,
    reductions,
    sizes,
    sorting,
    special,
    strided,
)
from turnout_conformance.cases.sets.rows import Row


def by_operator(rows: list[Row]) -> dict[str, tuple[SampleSet, ...]]:
    """Operator -> what its rows say."""
    found: dict[str, tuple[SampleSet, ...]] = {}
    for operator, samples in rows:
        found[operator] = (*found.get(operator, ()), samples)
    return found


_MODULES = (
    special, complexes, halves, strided, anyhow, sizes, large, reductions, lines, matrix_products, convolutions, sorting, indices
)  # fmt: skip
SETS: Mapping[str, Mapping[str, tuple[SampleSet, ...]]] = {
    module.__name__.rpartition(".")[2]: by_operator(module.ROWS) for module in _MODULES
}


def sets_of(operator: str) -> dict[str, tuple[SampleSet, ...]]:
    """The name of each set that has samples of an operator -> those samples."""
    return {name: rows[operator] for name, rows in SETS.items() if operator in rows}
