"""Rules for operators that rearrange: views, which stay views of the value, and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from turnout.errors import ShapeError
from turnout_aten import operators as aten
from turnout_aten.constants import MEMORY_FORMATS
from turnout_aten.kernels.factories import strides_as
from turnout_aten.shapes.extents import LEFT_OUT, numel, reach_of, wrap_dim, wrap_dims
from turnout_aten.tensor.tensor import Tensor
from turnout_aten.views import geometry
from turnout_aten.views.geometry import inferred_shape
from turnout_batched.rules.alignment import Dims, Rule, at_least_1d, family, fits, front, logical_ndim, padded, wrapped_dim

Ints = Sequence[int]


def example(x: Tensor) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The shape, strides and offset of an example, for the view's own function where that is going to refuse it."""
    return x.array.shape[1:], x.stride()[1:], 0


@family
def resized(call: Any, size: int, dims: Dims, self: Tensor, shape: Ints) -> tuple[Tensor, int]:
    """view, reshape, _unsafe_view."""
    x = front(self, dims[0], size)
    own = x.array.shape[1:]
    return call(x, (size, *inferred_shape(shape, numel(own)))), 0


@family
def trailing(call: Any, size: int, dims: Dims, self: Tensor, *rest: Any) -> tuple[Tensor, int]:
    """Operators that count dims from the last one."""
    x = front(self, dims[0], size)
    if len(x.array.shape) == 1:  # the batch must not be taken for that dim
        return one_by_one(call, size, dims, self, *rest)
    return call(x, *rest), 0


@family
def padding(call: Any, size: int, dims: Dims, self: Tensor, pad: Ints, value: Any) -> tuple[Tensor, int]:
    """From the last dim on; the batch is none that it may reach."""
    fits("constant_pad_nd.out", dims, (self, pad, value))
    return trailing(call, size, dims, self, pad, value)


@family
def with_last_dim(call: Any, size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    """Views that add a dim at the end."""
    return call(self), dims[0]


@family
def of_dtype(call: Any, size: int, dims: Dims, self: Tensor, dtype: Any) -> tuple[Tensor, int]:
    """view(dtype): a different element size changes the length of the last dim."""
    if dtype.itemsize == self.dtype.itemsize:
        return call(self, dtype), dims[0]
    return trailing(call, size, dims, self, dtype)


@family
def one_by_one(call: Any, size: int, dims: Dims, self: Tensor, *rest: Any) -> tuple[Tensor, int]:
    """An operator of one tensor that does not accept batch dims: it runs once per example."""
    x = front(self, dims[0], size)
    if not size:  # an example of zeros says what each result looks like
        made = call(aten.new_zeros(x, x.array.shape[1:]), *rest)
        return aten.new_empty(made, (0, *made.array.shape)), 0
    return aten.stack([call(aten.select__int(x, 0, i), *rest) for i in range(size)], 0), 0


def transpose(size: int, dims: Dims, self: Tensor, dim0: int, dim1: int) -> tuple[Tensor, int]:
    x = front(self, dims[0], size)
    n = len(x.array.shape) - 1
    a, b = wrapped_dim(dim0, n), wrapped_dim(dim1, n)
    return (aten.transpose__int(x, a + 1, b + 1) if n else aten.alias(x)), 0


def t(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    x = front(self, dims[0], size)
    n = len(x.array.shape) - 1
    if n > 2:
        geometry.turned(*example(x))
    return (aten.transpose__int(x, 1, 2) if n == 2 else aten.alias(x)), 0


def permute(size: int, dims: Dims, self: Tensor, order: Ints) -> tuple[Tensor, int]:
    x = front(self, dims[0], size)
    n = len(x.array.shape) - 1
    if len(order) != n:
        geometry.permute.geometry(*example(x), order)
    return aten.permute(x, (0, *[d + 1 for d in wrap_dims(order, n)])), 0


def expand(size: int, dims: Dims, self: Tensor, shape: Ints, implicit: bool) -> tuple[Tensor, int]:
    x = front(self, dims[0], size)
    own = x.array.shape[1:]
    lead = len(shape) - len(own)
    if lead < 0 or any(n < 0 for n in shape[:lead]):
        geometry.expand.geometry(*example(x), shape)
    if lead:
        x = aten.view(x, (size, *(1,) * lead, *own))
    return aten.expand(x, (size, *shape), implicit=implicit), 0


def squeeze(size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    x = front(self, dims[0], size)
    return aten.squeeze__dims(x, [d for d, n in enumerate(x.array.shape) if d and n == 1]), 0


def squeeze_dim(size: int, dims: Dims, self: Tensor, dim: int) -> tuple[Tensor, int]:
    x = front(self, dims[0], size)
    n = len(x.array.shape) - 1
    d = wrapped_dim(dim, n)
    return (aten.squeeze__dim(x, d + 1) if n else aten.alias(x)), 0


def squeeze_dims(size: int, dims: Dims, self: Tensor, over: Ints) -> tuple[Tensor, int]:
    x = front(self, dims[0], size)
    n = len(x.array.shape) - 1
    return (aten.squeeze__dims(x, [d + 1 for d in wrap_dims(over, n)]) if n and over else aten.alias(x)), 0


def unsqueeze(size: int, dims: Dims, self: Tensor, dim: int) -> tuple[Tensor, int]:
    x = front(self, dims[0], size)
    return aten.unsqueeze(x, wrap_dim(dim, len(x.array.shape)) + 1), 0


def _with_dims(call: Any, x: Tensor, *rest: Any) -> Tensor:
    """A batch. Examples without dims, of which there are no parts, are refused by the operator in its own words."""
    if len(x.array.shape) < 2:
        call(aten.new_empty(x, ()), *rest)
    return x


def select(size: int, dims: Dims, self: Tensor, dim: int, index: int) -> tuple[Tensor, int]:
    x = _with_dims(aten.select__int, front(self, dims[0], size), dim, index)
    return aten.select__int(x, wrapped_dim(dim, len(x.array.shape) - 1) + 1, index), 0


def slice_(size: int, dims: Dims, self: Tensor, dim: int, start: Any, end: Any, step: int) -> tuple[Tensor, int]:
    x = _with_dims(aten.slice__Tensor, front(self, dims[0], size), dim)
    return aten.slice__Tensor(x, wrapped_dim(dim, len(x.array.shape) - 1) + 1, start, end, step), 0


def diagonal(size: int, dims: Dims, self: Tensor, offset: int, dim1: int, dim2: int) -> tuple[Tensor, int]:
    x = front(self, dims[0], size)
    n = len(x.array.shape) - 1
    return aten.diagonal(x, offset, wrap_dim(dim1, n) + 1, wrap_dim(dim2, n) + 1), 0


def unfold(size: int, dims: Dims, self: Tensor, dimension: int, length: int, step: int) -> tuple[Tensor, int]:
    x, added = at_least_1d(front(self, dims[0], size))
    made = aten.unfold(x, wrapped_dim(dimension, len(x.array.shape) - 1) + 1, length, step)
    return (aten.select__int(made, 1, 0) if added else made), 0


@family
def the_same(call: Any, size: int, dims: Dims, self: Tensor) -> tuple[Tensor, int]:
    """alias, detach."""
    return call(self), dims[0]


def as_strided(size: int, dims: Dims, self: Tensor, shape: Ints, stride: Ints, offset: Any) -> tuple[Tensor, int]:
    """The strides are those that the example shows, and the offset counts from its first element."""
    x = front(self, dims[0], size)
    start = x.storage_offset() + (offset or 0)
    return aten.as_strided(x, (size, *shape), (x.stride(0), *stride), start), 0


@family
def parts(call: Any, size: int, dims: Dims, self: Tensor, how: Any, dim: int = 0) -> tuple[list[Tensor], int]:
    """split, split_with_sizes."""
    x = _with_dims(call, front(self, dims[0], size), how, dim)
    return call(x, how, wrapped_dim(dim, len(x.array.shape) - 1) + 1), 0


def unbind(size: int, dims: Dims, self: Tensor, dim: int) -> tuple[list[Tensor], int]:
    x = _with_dims(aten.unbind__int, front(self, dims[0], size), dim)
    return aten.unbind__int(x, wrapped_dim(dim, len(x.array.shape) - 1) + 1), 0


# ---- copies


def repeat(size: int, dims: Dims, self: Tensor, repeats: Ints) -> tuple[Tensor, int]:
    x = front(self, dims[0], size)
    own = x.array.shape[1:]
    lead = len(repeats) - len(own)
    if lead < 0:
        raise ShapeError(f"repeat: repeats {list(repeats)} must name each dimension of an example's shape {list(own)}")
    return aten.repeat(aten.view(x, (size, *(1,) * lead, *own)), (1, *repeats)), 0


def in_format(call: Any, x: Tensor, memory_format: Any) -> tuple[Tensor, int]:
    """`call(batch, memory_format)` so that each example has the format: row-major in the order of its dims, and then turned back.

    Raises ArgumentError for examples with another number of dims, as the operator does for one.
    """
    order = MEMORY_FORMATS.get(memory_format)
    if order is None:
        return call(x, memory_format), 0
    strides_as(memory_format, x.array.shape[1:])
    turned = (0, *[dim + 1 for dim in order])
    made = call(aten.permute(x, turned), "contiguous_format")
    return aten.permute(made, [turned.index(dim) for dim in range(len(turned))]), 0


def clone(size: int, dims: Dims, self: Tensor, memory_format: Any) -> tuple[Tensor, int]:
    if memory_format is None or memory_format == "preserve_format":
        return aten.clone(self), dims[0]
    return in_format(lambda x, given: aten.clone(x, memory_format=given), front(self, dims[0], size), memory_format)


def contiguous(size: int, dims: Dims, self: Tensor, memory_format: Any) -> tuple[Tensor, int]:
    return in_format(lambda x, given: aten.contiguous(x, memory_format=given), front(self, dims[0], size), memory_format)


def cat(size: int, dims: Dims, tensors: Sequence[Tensor], dim: int) -> tuple[Tensor, int]:
    batches = [front(x, d, size) for x, d in zip(tensors, dims[0], strict=True)]
    shapes = [x.array.shape[1:] for x in batches]
    kept = [x for x, shape in zip(batches, shapes, strict=True) if shape != LEFT_OUT] or batches
    along = wrapped_dim(dim, len(kept[0].array.shape) - 1) + 1
    others = [(*x.array.shape[:along], *x.array.shape[along + 1 :]) for x in kept]
    if not all(shapes) or any(each != others[0] for each in others):  # `cat` refuses one example, in its own words
        aten.cat([aten.new_empty(x, shape) for x, shape in zip(batches, shapes, strict=True)], dim)
    return aten.cat(kept, along), 0


def to_copy(size: int, dims: Dims, self: Tensor, dtype: Any, layout: Any, device: Any, pin: Any, non_blocking: bool,
            memory_format: Any) -> tuple[Tensor, int]:  # fmt: skip
    def copied(x: Tensor, given: Any) -> Tensor:
        return aten._to_copy(
            x, dtype=dtype, layout=layout, device=device, pin_memory=pin, non_blocking=non_blocking, memory_format=given
        )

    if memory_format in (None, "preserve_format"):
        return copied(self, memory_format), dims[0]
    return in_format(copied, front(self, dims[0], size), memory_format)


# ---- factories after a tensor: batched, so that each example can be written into


@family
def like(call: Any, size: int, dims: Dims, self: Tensor, *options: Any) -> tuple[Tensor, int]:
    """zeros_like and similar factories, in the memory layout of the value, or in the format that they end with."""
    if options[-1] in (None, "preserve_format"):
        return call(self, *options), dims[0]
    return in_format(lambda x, given: call(x, *options[:-1], given), front(self, dims[0], size), options[-1])


@family
def new(call: Any, size: int, dims: Dims, self: Tensor, shape: Ints, *options: Any) -> tuple[Tensor, int]:
    """new_zeros and similar factories."""
    return call(self, (size, *shape), *options), 0


def new_empty_strided(
    size: int, dims: Dims, self: Tensor, shape: Ints, stride: Ints, dtype: Any, layout: Any, device: Any, pin: Any
) -> tuple[Tensor, int]:
    extent = reach_of(shape, stride)
    made = aten.new_empty_strided(
        self, (size, *shape), (extent, *stride), dtype=dtype, layout=layout, device=device, pin_memory=pin
    )
    return made, 0


# ---- backward formulas of views


def unfold_backward(size: int, dims: Dims, grad: Tensor, sizes: Ints, dim: int, length: int, step: int) -> tuple[Tensor, int]:
    x = front(grad, dims[0], size)
    if sizes:
        return aten.unfold_backward(x, (size, *sizes), wrapped_dim(dim, len(sizes)) + 1, length, step), 0
    x = x if len(x.array.shape) > 2 else aten.unsqueeze(x, 1)  # unfold of an example without dims
    return aten.squeeze__dim(aten.unfold_backward(x, (size, 1), 1, length, step), 1), 0


def scattered(fewer: int) -> Rule:
    """The rule of backward formulas of views with `fewer` dims: (grad, input_sizes, dim, ...). The gradient is expanded."""

    @family
    def scatter(call: Any, size: int, dims: Dims, grad: Tensor, sizes: Ints, dim: int, *rest: Any) -> tuple[Tensor, int]:
        x = padded(front(grad, dims[0], size), 0, len(sizes) - fewer)
        return call(x, (size, *sizes), wrapped_dim(dim, len(sizes)) + 1, *rest), 0

    return scatter


def diagonal_backward(size: int, dims: Dims, grad: Tensor, sizes: Ints, offset: int, dim1: int, dim2: int) -> tuple[Tensor, int]:
    n = len(sizes)
    x = padded(front(grad, dims[0], size), 0, n - 1)
    return aten.diagonal_backward(x, (size, *sizes), offset, wrap_dim(dim1, n) + 1, wrap_dim(dim2, n) + 1), 0


# ---- written over in a copy


def select_scatter(size: int, dims: Dims, self: Tensor, src: Tensor, dim: int, index: int) -> tuple[Tensor, int]:
    at = wrap_dim(dim, logical_ndim(self, dims[0])) + 1
    return aten.select_scatter(front(self, dims[0], size), front(src, dims[1], size), at, index), 0


def slice_scatter(
    size: int, dims: Dims, self: Tensor, src: Tensor, dim: int, start: Any, end: Any, step: int
) -> tuple[Tensor, int]:
    """The source is expanded."""
    n = logical_ndim(self, dims[0])
    x, s = front(self, dims[0], size), padded(front(src, dims[1], size), 0, n)
    return aten.slice_scatter(x, s, wrap_dim(dim, n) + 1, start, end, step), 0


def diagonal_scatter(size: int, dims: Dims, self: Tensor, src: Tensor, offset: int, dim1: int, dim2: int) -> tuple[Tensor, int]:
    n = logical_ndim(self, dims[0])
    x, s = front(self, dims[0], size), front(src, dims[1], size)
    return aten.diagonal_scatter(x, s, offset, wrap_dim(dim1, n) + 1, wrap_dim(dim2, n) + 1), 0


def as_strided_scatter(
    size: int, dims: Dims, self: Tensor, src: Tensor, shape: Ints, stride: Ints, offset: int | None
) -> tuple[Tensor, int]:
    x = aten.clone(front(self, dims[0], size), memory_format="contiguous_format")
    extent = x.numel() // size if size else 0
    s = front(src, dims[1], size)
    return aten.as_strided_scatter(x, s, (size, *shape), (extent, *stride), offset or 0), 0
