"""Matrix products: one kernel for all, with strides for batches, rows and columns."""

from __future__ import annotations

from typing import Any

from turnout.config.tuples import NamedTuple
from turnout.dtypes import DType
from turnout_aten.dtypes import WIDE
from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray, broadcast_strides, new_array
from turnout_opencl.backend import contiguous, copy
from turnout_opencl.grids import raw
from turnout_opencl.pointwise import dense, run_map
from turnout_opencl.programs import TYPES, lanes_of
from turnout_opencl.reductions import TOTAL, reduce

Ints = tuple[int, ...]

_BLOCK = 4  # rows and columns of results per work-item, as in the template
_DOTS = 2  # columns of results of a work-item that reads along rows of a and columns of b, as in the template
_GROUP = (8, 8, 1)
PANEL_ROWS = 6  # rows of a panel, as in the template
_MANY = 1 << 16  # products of elements from which copies into panels pay
_PACKED = 64  # work-items of a group that copies


def product(a: ClArray, b: ClArray, out: ClArray, added: ClArray | None = None, alpha: Any = 1, beta: Any = 1) -> None:
    """Queue `alpha * a @ b + beta * added` for three-dimensional a, b, out; `added` broadcasts to `out`."""
    batches, rows, columns = out.shape
    if not out.size:
        return
    kind, width = TYPES[out.dtype], 2 * lanes_of(out.dtype)
    if rows >= PANEL_ROWS and columns >= width // 2 and rows * columns * a.shape[2] >= _MANY and kind.kind != "bool":
        across = b.view((b.shape[0], b.shape[2], b.shape[1]), (b.strides[0], b.strides[2], b.strides[1]), 0)
        multiply(pack(a, PANEL_ROWS), pack(across, width), out, added, alpha, beta)
        return
    vectors = kind.kind == "float" and not kind.half
    name, block = "matmul", _BLOCK
    if vectors and a.strides[2] == b.strides[1] == 1 and a.shape[2] >= width:
        name, block = "dots", _DOTS
    elif vectors and columns >= width and (b.strides[2] == 1 or rows >= width):
        name, block = "wide", width
        if b.strides[2] != 1:  # a copy is read once, and b as often as there are blocks of rows
            b = contiguous(b)
    grid = (_covering(columns, block, _GROUP[0]), _covering(rows, _BLOCK, _GROUP[1]), batches)
    factors = (a.strides, a.offset, a.buffer), (b.strides, b.offset, b.buffer)
    _start(name, a.shape[2], factors, out, added, alpha, beta, grid, _GROUP)


def _start(
    name: str, length: int, factors: tuple[tuple[Ints, int, Any], ...], out: ClArray, added: ClArray | None, alpha: Any,
    beta: Any, grid: Ints, group: Ints,
) -> None:  # fmt: skip
    """Queue a kernel of products; `factors` are the strides, the offset and the buffer of a and of b."""
    kind, place = TYPES[out.dtype], out.place
    operands = [(out.strides, out.offset, out.buffer), *factors]
    if added is not None:
        operands.append((broadcast_strides(added, out.shape), added.offset, added.buffer))
    steps, bases, buffers = zip(*operands, strict=True)
    numbers = (kind.bits(alpha, place.double), kind.bits(beta, place.double))
    call = raw(0, out.shape[0], (*out.shape[1:], length), steps, bases, numbers, (int(alpha != 1), int(beta != 1)))
    place.start_grid("matmul", out.dtype, name, call, buffers if added is not None else (*buffers, None), grid, group)


class Panels(NamedTuple):
    """Lines of matrices, some of them element by element next to each other: rows of the first one, columns of the second one.

    array   (batches, panels, length, lines of a panel), row-major; one batch where all are the same
    length  elements of a line
    """

    array: ClArray
    length: int

    @property
    def step(self) -> int:
        """From one batch to the next."""
        return self.array.strides[0] if self.array.shape[0] > 1 else 0


def computed_dtype(array: ClArray) -> DType:
    """What elements are computed in."""
    return WIDE[array.dtype] if array.dtype.is_floating_point else array.dtype


def pack(lines: ClArray, width: int) -> Panels:
    """Copy (batches, lines, elements) into panels of `width` lines."""
    batches = 1 if lines.strides[0] == 0 else lines.shape[0]
    _, count, length = lines.shape
    made = new_array(lines.place, (batches, -(-count // width), length, width), computed_dtype(lines))
    call = raw(0, batches, (count, length, width), ((), lines.strides), (0, lines.offset))
    grid = (-(-length // _PACKED) * _PACKED, made.shape[1], batches)
    lines.place.start_grid("matmul", lines.dtype, "pack", call, (made.buffer, lines.buffer), grid, (_PACKED, 1, 1))
    return Panels(made, length)


def multiply(a: Panels, b: Panels, out: ClArray, added: ClArray | None = None, alpha: Any = 1, beta: Any = 1) -> None:
    """Queue a product as `product` does, of rows and columns that are in panels."""
    group = _GROUP[1]
    grid = (b.array.shape[1], -(-a.array.shape[1] // group) * group, out.shape[0])
    factors = ((a.step,), 0, a.array.buffer), ((b.step,), 0, b.array.buffer)
    _start("panels", a.length, factors, out, added, alpha, beta, grid, (1, group, 1))


def _covering(length: int, block: int, group: int) -> int:
    """The number of work-items that cover `length` rows or columns in blocks, in whole groups."""
    blocks = (length + block - 1) // block
    return (blocks + group - 1) // group * group


def batched(array: ClArray) -> ClArray:
    """Add a batch dim of length 1 in front of a matrix."""
    return array.view((1, *array.shape), (0, *array.strides), 0)


def mm(self: ClArray, mat2: ClArray, out: ClArray) -> None:
    """(n, k) @ (k, m)."""
    product(batched(self), batched(mat2), batched(out))


def bmm(self: ClArray, mat2: ClArray, out: ClArray) -> None:
    """(b, n, k) @ (b, k, m)."""
    product(self, mat2, out)


def mv(self: ClArray, vec: ClArray, out: ClArray) -> None:
    """(n, k) @ (k,)."""
    column = vec.view((1, *vec.shape, 1), (0, *vec.strides, 0), 0)
    product(batched(self), column, out.view((1, *out.shape, 1), (0, *out.strides, 0), 0))


def dot(self: ClArray, tensor: ClArray, out: ClArray) -> None:
    """The dot product of two vectors."""
    reduce(TOTAL, run_map("mul", new_array(self.place, self.shape, self.dtype), self, tensor), (0,), out)


def addmm(self: ClArray, mat1: ClArray, mat2: ClArray, beta: Any, alpha: Any, out: ClArray) -> None:
    """beta * self + alpha * mat1 @ mat2. If beta is 0, `self` is ignored, including its NaN."""
    added = None if beta == 0 else self
    product(batched(mat1), batched(mat2), batched(out), added, alpha, beta)


def baddbmm(self: ClArray, batch1: ClArray, batch2: ClArray, beta: Any, alpha: Any, out: ClArray) -> None:
    """beta * self + alpha * batch1 @ batch2, as `addmm`."""
    product(batch1, batch2, out, None if beta == 0 else self, alpha, beta)


def addmv(self: ClArray, mat: ClArray, vec: ClArray, beta: Any, alpha: Any, out: ClArray) -> None:
    """beta * self + alpha * mat @ vec, as `addmm`."""
    column = vec.view((1, *vec.shape, 1), (0, *vec.strides, 0), 0)
    added = None if beta == 0 else self.broadcast(out.shape)
    shown = None if added is None else added.view((1, *added.shape, 1), (0, *added.strides, 0), 0)
    product(batched(mat), column, out.view((1, *out.shape, 1), (0, *out.strides, 0), 0), shown, alpha, beta)


def cross(self: ClArray, other: ClArray, dim: int, out: ClArray) -> None:
    """The cross product of vectors of three elements along a dim."""
    x, y = dense(self.broadcast(out.shape), out.dtype), dense(other.broadcast(out.shape), out.dtype)
    made = new_array(out.place, out.shape, out.dtype)  # each component reads all of x and y

    def component(array: ClArray, i: int) -> ClArray:
        shape = (*array.shape[:d], 1, *array.shape[d + 1 :])
        return array.view(shape, array.strides, i % 3 * array.strides[d])

    d = dim % len(out.shape)
    for i in range(3):
        target = run_map("mul", component(made, i), component(x, i + 1), component(y, i + 2))
        run_map("addcmul", target, target, component(x, i + 2), component(y, i + 1), -1)
    copy(out, made)


# fmt: off
KERNELS = {
    "mm.out":    Row(mm),
    "bmm.out":   Row(bmm),
    "mv.out":    Row(mv),
    "dot.out":   Row(dot),
    "addmm.out": Row(addmm),
    "baddbmm.out": Row(baddbmm),
    "addmv.out": Row(addmv),
    "vdot.out":  Row(dot),
    "linalg_cross.out": Row(cross),
}
# fmt: on
