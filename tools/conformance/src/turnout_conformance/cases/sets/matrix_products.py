"""Products of matrices and vectors of odd sizes, seen through any strides, with few rows or columns.

opencl has one kernel for small ones, one for few rows, one for rows times columns, and copies into panels from 65,536 products on.
"""

from __future__ import annotations

from turnout_conformance.cases.model import Drawn, S, Seen
from turnout_conformance.cases.sets.rows import FLOATS, Row, row

DTYPES = (*FLOATS, "int64", "int8", "uint8")
A, B = Drawn((53, 65), step=1.0), Drawn((65, 39), step=1.0, seed=2)
C, D = Drawn((3, 41, 50), step=1.0), Drawn((3, 50, 23), step=1.0, seed=2)
TURNED = {x: Seen(x, lambda v: v.transpose(-2, -1)) for x in (A, B, C, D)}
LENGTHS = (3, 16, 203)
FEW, MORE = ({n: Drawn((rows, n), step=1.0, seed=rows) for n in LENGTHS} for rows in (5, 37))


def turned(x: Drawn) -> Seen:
    return Seen(x, lambda v: v.t())


# ruff: noqa: E501 - rows of a table
# fmt: off
ROWS: list[Row] = [
    *row("mm", S(A, B), S(TURNED[B], TURNED[A]), S(Seen(A, lambda v: v.t()[:, :50]), Seen(A, lambda v: v[:50])), dtypes=DTYPES, tolerance=1.0),
    *row("mm", *[S(FEW[n], turned(MORE[n])) for n in LENGTHS], *[S(MORE[n], turned(FEW[n])) for n in LENGTHS], *[S(Seen(FEW[n], lambda v: v[:1]), turned(MORE[n])) for n in LENGTHS],
         *[S(Seen(FEW[n], lambda v: v[:2]), Seen(MORE[n], lambda v: v.t().contiguous())) for n in LENGTHS], dtypes=DTYPES, in_turn=3, tolerance=1.0),
    *row("bmm", S(C, D), S(Seen(C, lambda v: v[0].expand(3, 41, 50)), D), S(C, Seen(D, lambda v: v[0].expand(3, 50, 23))), S(TURNED[D], TURNED[C]), dtypes=DTYPES, tolerance=1.0),
    *row("baddbmm", S(Seen(C, lambda v: v[:, :, :23]), C, D, beta=2, alpha=3), dtypes=DTYPES, tolerance=1.0),
    *row("addmm", *[S(Seen(MORE[n], lambda v: v[:, 0]), FEW[n], turned(MORE[n]), beta=3, alpha=2) for n in LENGTHS], dtypes=DTYPES, tolerance=1.0),
    *row("mv", *[S(MORE[n], Seen(FEW[n], lambda v: v[0])) for n in LENGTHS], dtypes=DTYPES, tolerance=1.0),
    *row("addmv", *[S(Seen(MORE[n], lambda v: v[:, 0]), MORE[n], Seen(FEW[n], lambda v: v[1]), beta=3, alpha=2) for n in LENGTHS], dtypes=DTYPES, tolerance=1.0),
]
# fmt: on
