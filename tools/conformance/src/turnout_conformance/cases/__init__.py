"""The one table of operator cases: for every functional operator its samples, a NumPy reference, a tolerance, dtypes.

Samples are plain Python data, so that any backend can build them: `T(data)` stands for a tensor of the dtype under test, `T(data,
"int64")` for one of a fixed dtype. A reference is called with the array module and the arguments, tensors as arrays; it says what
the result is, not how it is computed. `CASES` are the rows of the modules here, one for each family; `build` turns a sample into
arguments.
"""

from turnout_conformance.cases import (
    activations,
    arranging,
    backward,
    complex,
    convolutions,
    copying,
    decompositions,
    fourier,
    images,
    indexing,
    layers,
    linalg,
    losses,
    normalisation,
    pointwise,
    pooling,
    reductions,
    scattering,
    sorting,
    special,
    statistics,
    view_copies,
    views,
)
from turnout_conformance.cases.model import ABOUT_STRIDES, OperatorCase, S, Sample, T, Vectors, build, calls, close, values

__all__ = ["ABOUT_STRIDES", "CASES", "OperatorCase", "S", "Sample", "T", "Vectors", "build", "calls", "close", "values"]

FAMILIES = (
    pointwise,
    special,
    complex,
    activations,
    reductions,
    statistics,
    sorting,
    convolutions,
    images,
    losses,
    normalisation,
    pooling,
    layers,
    linalg,
    decompositions,
    fourier,
    views,
    view_copies,
    arranging,
    copying,
    indexing,
    scattering,
    backward,
)

CASES: tuple[OperatorCase, ...] = tuple(case for family in FAMILIES for case in family.CASES)
