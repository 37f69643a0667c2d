"""The shape functions of the standard structured operators, one module per family, each with a table of its own.

`SHAPES` joins the tables: it maps the structured out variant to its shape function. That takes the functional arguments in schema
order and answers as `turnout_aten.shapes.specs` describes; Scalar overloads call the one of the operator they delegate to, with a
number in a tensor's place. Start with `promotion` and `extents`, which the others use. Imported when the first kernel is bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout_aten.shapes import (
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
    pooling,
    reductions,
    scattering,
    sorting,
    special,
    statistics,
)

if TYPE_CHECKING:
    from turnout_aten.shapes.specs import ShapeTable

FAMILIES = (
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
    pooling,
    reductions,
    scattering,
    sorting,
    special,
    statistics,
)

SHAPES: ShapeTable = {}
for _family in FAMILIES:
    assert not SHAPES.keys() & _family.SHAPES.keys(), f"{_family.__name__} repeats a row"
    SHAPES |= _family.SHAPES
