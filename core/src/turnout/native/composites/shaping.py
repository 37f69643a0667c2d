"""Operators that rearrange: views by way of other views, and those that copy when no view will do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnout.errors import ShapeError
from turnout.generated import operators as aten
from turnout.native.views import inferred_shape, viewed_strides
from turnout.native.wrappers import check_result_dtype, resize_output
from turnout.registry import find_operator
from turnout.shapes.extents import numel, wrap_dim, wrap_dims
from turnout.shapes.specs import Out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnout.tensors import Tensor


def write_out(op_name: str, out: Tensor, value: Tensor) -> Tensor:
    """Write a result into an out argument, which is resized where its shape differs."""
    op = find_operator(op_name)
    check_result_dtype(op, Out(value.shape, value.dtype), out)
    resize_output(op, out.device.backend, out, value.shape)
    aten.copy_(out, value)
    return out


def reshape(self: Tensor, shape: Sequence[int]) -> Tensor:
    """A view where strides allow one, else a copy."""
    own = self.shape
    wanted = inferred_shape(shape, numel(own), "reshape")
    made: Tensor
    if self.is_contiguous() or viewed_strides(own, self.stride(), wanted) is not None:
        made = aten.view(self, wanted)
    else:
        made = aten._unsafe_view(aten.clone(self, memory_format="contiguous_format"), wanted)
    return made


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view in another tensor's shape."""
    made: Tensor = aten.view(self, other.shape)
    return made


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expanded to another tensor's shape."""
    made: Tensor = aten.expand(self, other.shape)
    return made


def flatten_using_ints(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dims from start to end as one."""
    n = self.ndim
    start, end = wrap_dim(start_dim, n), wrap_dim(end_dim, n)
    if start > end:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}")
    shape = self.shape
    if start == end and n:
        return self
    wanted = (*shape[:start], numel(shape[start : end + 1]), *shape[end + 1 :])
    made: Tensor = aten.reshape(self, wanted)
    return made


def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` indices of a dim from `start`, which may count from the end."""
    if not self.shape:
        raise ShapeError("narrow: a 0-dim tensor has no dimension to narrow")
    n = self.shape[wrap_dim(dim, self.ndim)]
    first = start + n if start < 0 else start
    if not 0 <= first <= n or length < 0 or first + length > n:
        raise ShapeError(f"narrow: start {start} and length {length} do not lie within dim {dim} of length {n}")
    made: Tensor = aten.slice__Tensor(self, dim, first, first + length, 1)
    return made


def chunk(self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    """At most `chunks` parts of equal length along a dim, the last one shorter if need be."""
    if not self.shape:
        raise ShapeError("chunk: a 0-dim tensor has no dimension to split")
    if chunks <= 0:
        raise ShapeError(f"chunk: chunks must be positive, got {chunks}")
    n = self.shape[wrap_dim(dim, self.ndim)]
    size = -(-n // chunks)
    made: list[Tensor]
    if n == 0:
        made = aten.split_with_sizes(self, (0,) * chunks, dim)
    else:
        made = aten.split__Tensor(self, size, dim)
    return made


def movedim_int(self: Tensor, source: int, destination: int) -> Tensor:
    """One dim put elsewhere."""
    return movedim_intlist(self, (source,), (destination,))


def movedim_intlist(self: Tensor, source: Sequence[int], destination: Sequence[int]) -> Tensor:
    """Some dims put elsewhere, the others in their order."""
    n = self.ndim
    if len(source) != len(destination):
        raise ShapeError(f"movedim: source {list(source)} and destination {list(destination)} must be equally long")
    goes = dict(zip(wrap_dims(destination, n), wrap_dims(source, n), strict=True))
    made: Tensor
    if not source:
        made = aten.alias(self)
        return made
    rest = iter([d for d in range(n) if d not in goes.values()])
    made = aten.permute(self, [goes[d] if d in goes else next(rest) for d in range(n)])
    return made


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape along a new dim."""
    if not tensors:
        raise ShapeError("stack: needs at least one tensor")
    first = tensors[0].shape
    for i, tensor in enumerate(tensors):
        if tensor.shape != first:
            raise ShapeError(f"stack: tensors[{i}] has shape {list(tensor.shape)}, tensors[0] has {list(first)}")
    at = wrap_dim(dim, len(first) + 1)
    made: Tensor = aten.cat([aten.unsqueeze(t, at) for t in tensors], at)
    return made


def stack_out(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor) -> Tensor:
    """stack into `out`."""
    return write_out("aten::stack.out", out, stack(tensors, dim))


def repeat(self: Tensor, repeats: Sequence[int]) -> Tensor:
    """The tensor laid side by side, `repeats` times along each dim; more repeats than dims add dims in front."""
    lead = len(repeats) - self.ndim
    if lead < 0:
        raise ShapeError(f"repeat: repeats {list(repeats)} must name each dimension of shape {list(self.shape)}")
    own = (1,) * lead + self.shape
    apart: list[Any] = [n for length in own for n in (1, length)]
    laid = [n for times, length in zip(repeats, own, strict=True) for n in (times, length)]
    spread = aten.clone(aten.expand(aten.reshape(self, apart), laid), memory_format="contiguous_format")
    made: Tensor = aten._unsafe_view(spread, [times * n for times, n in zip(repeats, own, strict=True)])
    return made
