"""Lines, windows, images and lists of indices of sizes below, at and above those at which CUDA divides its work otherwise.

Vectors of 16 bytes have 2 to 8 elements, warps 32 threads, blocks 256. A warp keeps rows of up to 1024 elements; windows are
large from 64 elements on. Each sample is tried in two dtypes of the four, in turn, so that each kernel meets all of them.
"""

from turnout_conformance.cases.sets.rows import Row
from turnout_conformance.cases.sets.sizes import elements, images, indices, lines, losses, normalisation

ROWS: list[Row] = [*lines.ROWS, *losses.ROWS, *normalisation.ROWS, *indices.ROWS, *images.ROWS, *elements.ROWS]
