"""Where a strided view lies in memory that can only be cut, permuted and seen in other shapes.

A geometry (shape, strides, offset) over row-major memory becomes a `Path`: see the memory as a grid of another shape, take a
slice of each of its dims, permute what is left, repeat. The same path backwards says where a value has to go.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from operator import mul
from typing import TYPE_CHECKING

from turnout.config.tuples import NamedTuple
from turnout_aten.shapes.extents import contiguous_strides

if TYPE_CHECKING:
    from collections.abc import Iterator

    Ints = tuple[int, ...]


class Path(NamedTuple):
    """How a view comes from memory.

    grid    the shape in which the memory is seen
    cuts    a slice of each dim of the grid; None if all of it is in the view
    order   the dims of the block that the slices cut out: those of length 1 that are not in the view, then those of the view
    block   the lengths of the block, in the order of the grid
    single  the view's shape with length 1 where elements are repeated
    shape   the view's shape
    """

    grid: Ints
    cuts: tuple[slice, ...] | None
    order: Ints
    block: Ints
    single: Ints
    shape: Ints

    @property
    def permuted(self) -> Ints:
        """The lengths of the block in its new order."""
        return tuple([self.block[d] for d in self.order])


@lru_cache(4096)
def path_to(memory: Ints, shape: Ints, strides: Ints, offset: int) -> Path | None:
    """The path to a view with elements of a memory of this shape; None if it has none, as overlapping windows do."""
    single = tuple([1 if s == 0 else n for n, s in zip(shape, strides, strict=True)])
    wanted = [(n, s) for n, s in zip(single, strides, strict=True) if n > 1]
    if offset == 0 and single == shape == memory and strides == contiguous_strides(shape):
        return Path(memory, None, tuple(range(len(memory))), memory, memory, memory)
    for grid in _grids(memory, wanted):
        found = _cut(grid, wanted, offset)
        if found is None:
            continue
        index, dims = found
        block = tuple([len(range(cut.start, cut.stop, cut.step)) for cut in index])
        order = (*[d for d in range(len(grid)) if d not in dims], *dims)
        return Path(grid, None if block == grid else index, order, block, single, shape)
    return None


def _grids(memory: Ints, wanted: list[tuple[int, int]]) -> Iterator[Ints]:
    """Shapes in which a view may be a block: that of the memory, and those whose dims end where the view's do."""
    yield memory
    size = prod(memory)
    strides = {s for _, s in wanted}
    ends = {n * s for n, s in wanted}
    own = set(contiguous_strides(memory))
    for steps in (strides | own, strides | ends, strides):
        grid = []
        last = size
        for step in sorted(steps | {1}, reverse=True):
            if step < last and last % step == 0:
                grid.append(last // step)
                last = step
        yield tuple(grid) if grid else memory


def _cut(grid: Ints, wanted: list[tuple[int, int]], offset: int) -> tuple[tuple[slice, ...], list[int]] | None:
    """The slices of a grid that have these lengths and strides, and the dim of each."""
    steps = _steps(grid)
    starts = []
    rest = offset
    for step in steps:
        at, rest = divmod(rest, step)
        starts.append(at)
    index = [slice(at, at + 1, 1) for at in starts]
    free = {d for d, n in enumerate(grid) if n > 1}
    dims = []
    for length, stride in wanted:
        # The largest step first: below it, a stride could run out of a dim that is shorter.
        for d in sorted(free, key=lambda d: -steps[d]):
            times, odd = divmod(stride, steps[d])
            last = starts[d] + times * (length - 1)
            if times and not odd and last < grid[d]:
                index[d] = slice(starts[d], last + 1, times)
                dims.append(d)
                free.discard(d)
                break
        else:
            return None
    return tuple(index), dims


def _steps(grid: Ints) -> list[int]:
    """Row-major strides in which a length of 1 counts like any other, so that no two dims of other lengths share one."""
    steps = []
    step = 1
    for length in reversed(grid):
        steps.append(step)
        step *= length
    return steps[::-1]


def positions(shape: Ints, strides: Ints, offset: int) -> Iterator[int]:
    """The position in memory of each element of a view, in row-major order."""
    for index in product(*map(range, shape)):
        yield offset + sum(map(mul, index, strides))
