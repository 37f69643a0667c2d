"""Shapes and strides: broadcasting, dimension numbers, dense strides in some order."""

from __future__ import annotations

from turnout.errors import DimError, ShapeError
from turnout_aten.errors import arguments as texts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    Ints = tuple[int, ...]


def broadcast(a: Ints, b: Ints) -> Ints:
    """The common shape of two shapes. Dimensions are matched from the right, and a length of 1 expands."""
    if not b or (len(a) == len(b) and a == b):  # lengths first: sizes that are not known need not be compared then
        return a
    if not a:
        return b
    long, short = (a, b) if len(a) >= len(b) else (b, a)
    lead = len(long) - len(short)
    shape = list(long)
    for i, length in enumerate(short, lead):
        if shape[i] != length and length != 1:
            if shape[i] != 1:
                raise ShapeError(f"shapes {list(a)} and {list(b)} do not broadcast: {long[i]} against {length} at dim {i}")
            shape[i] = length
    return tuple(shape)


def broadcast_all(shapes: Iterable[Ints]) -> Ints:
    """The common shape of any number of shapes."""
    result: Ints = ()
    for shape in shapes:
        result = broadcast(result, shape)
    return result


def expands_to(shape: Ints, wanted: Ints) -> bool:
    """Whether a shape broadcasts to exactly `wanted`."""
    lead = len(wanted) - len(shape)
    return lead >= 0 and all(n in (1, w) for n, w in zip(shape, wanted[lead:], strict=True))


# The shape of a tensor that `cat` leaves out: an empty one of one dim goes with tensors of any shape.
LEFT_OUT = (0,)


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension number counted from 0. Negative numbers count from the end; a 0-dim tensor accepts 0 and -1."""
    bound = ndim or 1
    if -bound <= dim < bound:
        return dim + bound if dim < 0 else dim
    raise DimError(f"dim {dim} is out of range for a tensor of {ndim} dimensions, which takes {-bound} to {bound - 1}")


# A dim argument that names no dim: all for most reductions, none for `any` and `all`.
NO_DIMS: tuple[Sequence[int], ...] = ((), [])


def listed(dim: int | Sequence[int] | None, ndim: int) -> Sequence[int]:
    """The dims of a dim argument, which is one number, several, or None or none for all."""
    if isinstance(dim, int):
        return (dim,)
    return range(ndim) if dim is None or dim in NO_DIMS else dim


def dims_of(ndim: int, dim: int | Sequence[int] | None) -> Ints:
    """The dims of a dim argument that was checked, sorted and counted from 0; of a 0-dim tensor, ()."""
    return tuple(sorted([d % ndim for d in listed(dim, ndim)])) if ndim else ()


def degrees_of_freedom(count: Any, correction: Any) -> Any:
    """The degrees of freedom of a variance: the count less the correction, which is 1 where it is None. They may be negative."""
    return count - (1 if correction is None else correction)


def wrap_dims(dims: Sequence[int] | None, ndim: int) -> Ints:
    """Distinct dimension numbers counted from 0. None and an empty sequence mean all dims."""
    if ndim > 64:
        raise ShapeError(f"reductions take tensors of up to 64 dimensions, got {ndim}")
    if not dims:
        return tuple(range(ndim))
    found = tuple([wrap_dim(d, ndim) for d in dims])
    if len(set(found)) != len(found):
        raise ShapeError(texts.named_twice("", dims))
    return found


def contiguous_strides(shape: Sequence[int]) -> Ints:
    """Row-major strides in elements; a length of 0 counts as 1."""
    if not shape:
        return ()
    if len(shape) == 1:
        return (1,)
    if len(shape) == 2:
        return (shape[1] or 1, 1)
    step = 1
    strides = []
    for length in shape[::-1]:
        strides.append(step)
        step *= length or 1
    return tuple(strides[::-1])


def reach_of(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many places of memory, from the first element to the last one."""
    return 0 if 0 in shape else 1 + sum([(n - 1) * s for n, s in zip(shape, strides, strict=True)])


def is_dense(shape: Ints, strides: Ints) -> bool:
    """Whether the elements fill a block of memory without gaps and overlap, in some order of dimensions."""
    expected = 1
    for stride, length in sorted([(s, n) for s, n in zip(strides, shape, strict=True) if n != 1]):
        if stride != expected:
            return False
        expected *= length
    return True


def dense_strides(shape: Ints, strides: Ints) -> Ints:
    """The strides of a copy: those of the tensor if they are dense, else row-major ones."""
    return strides if 0 not in shape and is_dense(shape, strides) else contiguous_strides(shape)


def _without_gaps(shape: Ints, strides: Ints) -> Ints | None:
    if 0 in shape:
        return None
    if 0 in strides:
        return iterated_strides(shape, [strides])
    return strides if is_dense(shape, strides) else _packed(shape, strides)


def _packed(shape: Ints, strides: Ints) -> Ints:
    """Dense strides in the same order as the given strides, which may have gaps."""
    step = 1
    packed = [1] * len(shape)
    # Among equal strides, the later dim comes first.
    for i in sorted(range(len(shape)), key=lambda i: (strides[i], -i)):
        packed[i] = step
        step *= shape[i]
    return tuple(packed)


def iterated_strides(shape: Ints, operands: Iterable[Ints]) -> Ints | None:
    """The dense strides of a result in the order in which an iteration over its operands visits dims; None for row-major.

    `operands` are strides over the dims of the result, 0 where an operand is repeated. The order of two dims is that of the first
    operand that has a stride in both.
    """
    given = tuple(operands)
    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        moving = i
        for other in reversed(range(i)):
            verdict = _comes_later(shape, given, order[other], order[moving])
            if verdict < 0:
                break
            if verdict > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
    strides = [1] * len(shape)
    step = 1
    for d in order:
        strides[d] = step
        step *= max(shape[d], 1)
    made = tuple(strides)
    return None if made == contiguous_strides(shape) else made


def _comes_later(shape: Ints, operands: tuple[Ints, ...], a: int, b: int) -> int:
    """1 if dim `a` has the larger stride, -1 if `b` has it, 0 if no operand tells."""
    for strides in operands:
        if strides[a] and strides[b]:
            if strides[a] != strides[b]:
                return 1 if strides[a] > strides[b] else -1
            if shape[a] > shape[b]:
                return 1
    return 0


def preserved_strides(tensor: Any) -> Ints | None:
    """The strides of a copy that keeps a tensor's layout: its own where dense, else None for row-major."""
    # Uses the tensor's method, not its backend's: an example inside vmap has strides, but no memory.
    shape = tensor.array.shape
    if len(shape) < 2:
        return None
    array, backend = tensor.array, tensor.device.backend
    plain = backend.row_major is not None and array.__class__ is backend.array_type
    if plain and backend.row_major(array) and 1 not in shape and 0 not in shape:  # the stride of 1 may be any, and is kept
        return None
    strides = tensor.stride()
    return None if strides == contiguous_strides(shape) else _without_gaps(shape, strides)


def reduced(shape: Ints, dims: Iterable[int], keepdim: bool) -> Ints:
    """The shape after reducing over `dims`, which count from 0."""
    gone = set(dims)
    if keepdim:
        return tuple([1 if i in gone else n for i, n in enumerate(shape)])
    return tuple([n for i, n in enumerate(shape) if i not in gone])


def numel(shape: Sequence[int]) -> int:
    """The number of elements."""
    count = 1
    for length in shape:
        count *= length
    return count
