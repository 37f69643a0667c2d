"""The one table of operator cases: for every functional operator its samples, a NumPy reference, a tolerance, dtypes.

Samples are plain Python data, so that any backend can build them: `T(data)` stands for a tensor of the dtype under test, `T(data,
"int64")` for one of a fixed dtype, `some(2, 3)` for one of that shape. A reference is called with the array module and the
arguments, tensors as arrays, or is the name of a function of that module; it says what the result is, not how it is computed.
`CASES` are the rows of the modules here, one for each family; `build` turns a sample into arguments.

Samples of many elements are drawn when they are built: `Drawn(shape)`. `sets` has further samples of operators by purpose, and
each case has those of its operator.
"""

from dataclasses import replace
from importlib import import_module

from turnout_conformance.cases.model import (
    ABOUT_STRIDES,
    Drawn,
    OperatorCase,
    S,
    Sample,
    SampleSet,
    Seen,
    T,
    Vectors,
    build,
    calls,
    close,
    values,
)
from turnout_conformance.cases.sets import SETS, sets_of

__all__ = [
    "ABOUT_STRIDES", "CASES", "SETS", "Drawn", "OperatorCase", "S", "Sample", "SampleSet", "Seen", "T", "Vectors", "build",
    "calls", "close", "values",
]  # fmt: skip

_NAMES = (
    "pointwise", "special", "complex", "activations", "reductions", "statistics", "sorting", "convolutions", "images",
    "losses", "normalisation", "pooling", "layers", "matrix_products", "decompositions", "fourier",
    "views", "view_copies", "arranging", "copying", "indexing", "scattering", "backward",
)  # fmt: skip
FAMILIES = tuple(import_module(f"{__name__}.{name}") for name in _NAMES)

CASES: tuple[OperatorCase, ...] = tuple(replace(case, sets=sets_of(case.op)) for family in FAMILIES for case in family.CASES)
