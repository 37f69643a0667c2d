"""Products of vectors, matrices and batches, by way of dot, mv, mm, bmm and addmm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnout.errors import ShapeError
from turnout.generated import operators as aten
from turnout.native.composites.shaping import write_out
from turnout.shapes.extents import broadcast, numel

if TYPE_CHECKING:
    from turnout.tensors import Tensor


def matmul(self: Tensor, other: Tensor) -> Tensor:
    """Vectors are rows on the left and columns on the right; dims before the last two are a batch, and broadcast."""
    a, b = self.shape, other.shape
    if not a or not b:
        raise ShapeError(f"matmul: both operands need a dimension, got shapes {list(a)} and {list(b)}")
    made: Tensor
    if len(a) == 2 and len(b) == 2:
        made = aten.mm(self, other)
    elif len(a) == 1 and len(b) == 1:
        made = aten.dot(self, other)
    elif len(a) == 2 and len(b) == 1:
        made = aten.mv(self, other)
    elif len(a) == 1 and len(b) == 2:
        made = aten.squeeze__dim(aten.mm(aten.unsqueeze(self, 0), other), 0)
    elif len(a) > 2 and len(b) <= 2:
        # One large product instead of a batch of small ones.
        columns = other if len(b) == 2 else aten.unsqueeze(other, 1)
        if a[-1] != b[0]:
            raise ShapeError(f"matmul: shapes {list(a)} and {list(b)} do not match: {a[-1]} against {b[0]}")
        flat = aten.reshape(self, (numel(a[:-1]), a[-1]))
        made = aten._unsafe_view(aten.mm(flat, columns), (*a[:-1], *b[1:]))
    else:
        made = _batched(self, other)
    return made


def _batched(self: Tensor, other: Tensor) -> Tensor:
    left = aten.unsqueeze(self, 0) if self.ndim == 1 else self
    right = aten.unsqueeze(other, 1) if other.ndim == 1 else other
    a, b = left.shape, right.shape
    batch = broadcast(a[:-2], b[:-2])
    if a[-1] != b[-2]:
        raise ShapeError(
            f"matmul: shapes {list(self.shape)} and {list(other.shape)} do not match: {a[-1]} against {b[-2]}"
        )
    count = numel(batch)
    x = aten.reshape(aten.expand(left, (*batch, *a[-2:])), (count, *a[-2:]))
    y = aten.reshape(aten.expand(right, (*batch, *b[-2:])), (count, *b[-2:]))
    made: Tensor = aten._unsafe_view(aten.bmm(x, y), (*batch, a[-2], b[-1]))
    if self.ndim == 1:
        made = aten.squeeze__dim(made, -2)
    return aten.squeeze__dim(made, -1) if other.ndim == 1 else made


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias, for weight [out, in]."""
    columns = aten.t(weight)
    made: Tensor
    if bias is not None and len(input.shape) == 2 and len(weight.shape) == 2:
        made = aten.addmm(bias, input, columns)
        return made
    made = aten.matmul(input, columns)
    return made if bias is None else aten.add__Tensor(made, bias)


def outer(self: Tensor, vec2: Tensor) -> Tensor:
    """All products of the elements of two vectors."""
    if self.ndim != 1 or vec2.ndim != 1:
        raise ShapeError(
            f"outer: both operands must have one dimension, got shapes {list(self.shape)} and {list(vec2.shape)}"
        )
    made: Tensor = aten.mul__Tensor(aten.unsqueeze(self, 1), vec2)
    return made


def matmul_out(self: Tensor, other: Tensor, *, out: Tensor) -> Tensor:
    """matmul into `out`."""
    return write_out("aten::matmul.out", out, matmul(self, other))


def linear_out(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor) -> Tensor:
    """linear into `out`."""
    return write_out("aten::linear.out", out, linear(input, weight, bias))


def outer_out(self: Tensor, vec2: Tensor, *, out: Tensor) -> Tensor:
    """outer into `out`."""
    return write_out("aten::outer.out", out, outer(self, vec2))
