"""Reading and writing at indices, triangles, and joined tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from turnout_aten.shapes.scattering import REDUCTIONS
from turnout_conformance.cases.model import Drawn, S, Sample
from turnout_conformance.cases.sets.rows import Row
from turnout_conformance.cases.sets.sizes.shapes import FLOATS, Shape, places, rows

# ruff: noqa: E501 - rows of a table

EVERY = ("bool", "uint8", "int16", "int32", "int64", *FLOATS, "complex64", "complex128")
Sizes = list[tuple[Shape, int, int]]
# (shape, dim, how many indices)
READ: Sizes = [
    ((1,), 0, 1), ((5, 3), 0, 9), ((2, 5, 3), 1, 7), ((4,), 0, 300), ((3, 40), 1, 500), ((6, 32), 0, 5), ((7, 2, 600), 0, 3),
    ((2, 3, 4, 5), 2, 6),
]  # fmt: skip
WRITTEN: Sizes = [((5, 3), 0, 9), ((2, 5, 3), 1, 7), ((4,), 0, 300), ((2, 3), 1, 2)]
MOVED = [((5, 6, 8), 0, 4), ((5, 6, 8), 1, 4), ((5, 6, 8), 2, 4)]


def behind(shape: Shape, dim: int, *counts: int) -> Shape:
    """A shape with other sizes in place of a dim."""
    return (*shape[:dim], *counts, *shape[dim + 1 :])


def at(dim: int, index: Any) -> list[Any]:
    """An index of one dim, as `index.Tensor` takes it."""
    return [*[None] * dim, index]


def fewer(shape: Shape, dim: int) -> Shape:
    """A shape that covers a part of the other dims."""
    return tuple(n if i == dim else max(n - 1, 1) for i, n in enumerate(shape))


def with_source(written: Sizes, call: Callable[..., Sample], *, each: bool = True) -> Iterator[Sample]:
    """`call(self, dim, index, source)`; with an index for each element, or for each slice."""
    for shape, dim, count in written:
        source = behind(shape, dim, count)
        yield call(Drawn(shape), dim, places(source if each else (count,), shape[dim]), Drawn(source, seed=2))


# fmt: off
def added(written: Sizes, reductions: tuple[str, ...] = REDUCTIONS) -> list[Row]:
    """Sums and extremes at indices."""
    ways = [{"reduce": reduce, "include_self": own} for reduce in reductions for own in (True, False)]
    return [
        *rows("index_add", *with_source(written, lambda *a: S(*a, alpha=0.5), each=False)),
        *rows("scatter_add", *with_source(written, S)),
        *rows("scatter_reduce.two", *[each for how in ways for each in with_source(written, lambda *a, how=how: S(*a, **how))]),
        *rows("index_put", *[S(Drawn(shape), [places((n,), shape[0])], Drawn(behind(shape, 0, n), seed=2), True) for shape, dim, n in written if dim == 0], in_turn=0),
    ]


TRIANGLES = [(shape, diagonal) for shape in ((1, 1), (5, 4), (2, 3, 3, 7), (3, 700)) for diagonal in (0, 1, -2, 100, -100)]
ROWS: list[Row] = [
    *rows("index_select", *[S(Drawn(shape), dim, places((n,), shape[dim])) for shape, dim, n in READ]),
    *rows("index.Tensor", *[S(Drawn(shape), at(dim, places((n, 2), shape[dim], -shape[dim]))) for shape, dim, n in READ]),
    *rows("index.Tensor", *[S(Drawn((5, 6, 8), step=1.0), [places((7,), n, -n) if n else None for n in dims]) for dims in ((5, 6), (5, 6, 8), (0, 6, 8), (5, 0, 8))], *[S(Drawn((300, 3, 2), step=1.0), [places(shape, 300, -300) for shape in shapes[:1]] + [places(shapes[1], 3, -3)]) for shapes in [((400,), (400,)), ((7, 1), (5,))]], dtypes=("float32", "int64"), in_turn=0),
    *rows("gather", *[S(Drawn(shape), dim, places(each, shape[dim])) for shape, dim, n in READ for whole in [behind(shape, dim, n)] for each in (whole, fewer(whole, dim))]),
    *rows("index_select", *[S(Drawn(shape, step=1.0), dim, places((n,), shape[dim])) for shape, dim, n in MOVED], dtypes=EVERY, in_turn=0),
    *rows("gather", *[S(Drawn(shape, step=1.0), dim, places(behind(shape, dim, n), shape[dim])) for shape, dim, n in MOVED], dtypes=EVERY, in_turn=0),
    *rows("triu tril", *[S(Drawn(shape), diagonal) for shape, diagonal in TRIANGLES]),
    *rows("triu tril", S(Drawn((5, 6, 8), step=1.0), -1), dtypes=EVERY, in_turn=0),
    *rows("cat", *[S([Drawn(each, seed=i) for i, each in enumerate(shapes)], dim) for dim, shapes in ((0, [(3, 4), (2, 4)]), (1, [(3, 4), (3, 1), (3, 8)]), (-1, [(2, 3, 8), (2, 3, 8)]), (0, [(5,), (300,)]), (1, [(0,), (2, 3)]), (0, [(0,), (300,)]))], in_turn=0),
    *rows("cat", S([Drawn((3, 5)), Drawn((3, 2))], 1), dtypes="uint8", in_turn=0),
    *added(WRITTEN),
    *rows("index_add", *with_source(WRITTEN, lambda *a: S(*a, alpha=-3), each=False), dtypes="int64", in_turn=0),
    *rows("embedding_dense_backward", *[S(Drawn((4, 9, 7)), places((4, 9), 6), 6, padding, scaled) for scaled in (False, True) for padding in (-1, 2)]),
]
# fmt: on
