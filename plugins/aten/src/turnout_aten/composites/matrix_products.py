"""Products of vectors, matrices and batches, in terms of dot, mv, mm, bmm and addmm; structured matrices."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from turnout.dtypes import BOOL, FLOAT, int64
from turnout.errors import DimError, DTypeError, ShapeError
from turnout.registry import find_operator
from turnout_aten import operators as aten
from turnout_aten.composites.endings import Ending, ends_in, shortcut
from turnout_aten.composites.reshaping import write_out
from turnout_aten.dtypes import promote_types
from turnout_aten.errors import arguments as texts
from turnout_aten.errors.failures import retell_composite
from turnout_aten.kernels.outputs import check_result_dtype
from turnout_aten.kernels.standing import Standing
from turnout_aten.shapes.extents import broadcast, expands_to, numel, wrap_dims
from turnout_aten.shapes.pointwise import check_alpha
from turnout_aten.shapes.specs import Out
from turnout_aten.tensor.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@ends_in("aten::mm", "self", "other", self=2, other=2)
@ends_in("aten::dot", "self", "other", self=1, other=1)
@ends_in("aten::mv", "self", "other", self=2, other=1)
def matmul(self: Tensor, other: Tensor) -> Tensor:
    """The matrix product. A vector on the left is a row, on the right a column. Dims before the last two are batch dims and
    broadcast."""
    a, b = self.array.shape, other.array.shape
    if not a or not b:
        raise ShapeError(texts.operands_without_dims("matmul", a, b))
    if len(a) == 2 and len(b) == 2:
        return aten.mm(self, other)
    if len(a) == 1 and len(b) == 1:
        return aten.dot(self, other)
    if len(a) == 2 and len(b) == 1:
        return aten.mv(self, other)
    if len(a) == 1 and len(b) == 2:
        return aten._unsafe_view(aten.mm(aten.unsqueeze(self, 0), other), b[1:])
    if len(a) > 2 and len(b) <= 2:
        # One large product instead of a batch of small ones.
        columns = other if len(b) == 2 else aten.unsqueeze(other, 1)
        if a[-1] != b[0]:
            raise ShapeError(texts.unmatched("matmul", a, b, a[-1], b[0]))
        flat = aten.reshape(self, (numel(a[:-1]), a[-1]))
        return aten._unsafe_view(aten.mm(flat, columns), (*a[:-1], *b[1:]))
    return _batched(self, other)


def _batched(self: Tensor, other: Tensor) -> Tensor:
    left = aten.unsqueeze(self, 0) if self.ndim == 1 else self
    right = aten.unsqueeze(other, 1) if other.ndim == 1 else other
    a, b = left.shape, right.shape
    batch = broadcast(a[:-2], b[:-2])
    if a[-1] != b[-2]:
        raise ShapeError(texts.unmatched("matmul", self.shape, other.shape, a[-1], b[-2]))
    count = numel(batch)
    made: Tensor = aten.bmm(_one_batch(left, batch, count), _one_batch(right, batch, count))
    rows, columns = a[-2:-1] if self.ndim > 1 else (), b[-1:] if other.ndim > 1 else ()
    shape = (*batch, *rows, *columns)
    return made if made.shape == shape else aten._unsafe_view(made, shape)


def _one_batch(matrices: Tensor, batch: Sequence[int], count: int) -> Tensor:
    """Matrices with their batch dims broadcast and made one; each view that is left out saves two, as it has a gradient."""
    shape = matrices.shape
    if len(shape) == 3 and shape[0] == count:
        return matrices
    if shape[:-2] != batch:
        matrices = aten.expand(matrices, (*batch, *shape[-2:]))
    return matrices if len(batch) == 1 else aten.reshape(matrices, (count, *shape[-2:]))


_ADDMM = find_operator("aten::addmm")
_LAYER = Standing(t="view", addmm="row")


def _turned(weight: Tensor, input: Tensor) -> Tensor | None:
    """weight.t(), below dispatch where nothing but the backend would see it, since only a product reads it; else None."""
    array, ks = weight.array, weight.keys
    if input.keys is ks and len(array.shape) == 2:
        device = weight.device
        backend = device.backend
        turned = backend.transposed(array) if ks == backend.keys and _LAYER(ks) else None
        if turned is not None:
            return wrap(turned, device)
    return None


@ends_in("aten::addmm", "bias", "input", Ending("aten::t", ("weight",)), input=2, weight=2, bias=1)
@ends_in("aten::matmul", "input", Ending("aten::t", ("weight",)), input=2, weight=2, bias=None)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias. weight is [out, in]."""
    columns = _turned(weight, input)
    if columns is not None and bias is not None and bias.keys is weight.keys and len(input.array.shape) == 2:
        return _ADDMM.cache[bias.keys](bias.keys, bias, input, columns, 1, 1)
    if columns is None:
        columns = aten.t(weight)
    if bias is not None and len(weight.array.shape) == 2:
        shape = input.array.shape
        if len(shape) == 2:
            return aten.addmm(bias, input, columns)
        if len(shape) > 2 and len(bias.array.shape) == 1 and shape[-1] == weight.array.shape[1]:
            flat = aten.addmm(bias, aten.reshape(input, (numel(shape[:-1]), shape[-1])), columns)
            return aten._unsafe_view(flat, (*shape[:-1], flat.array.shape[1]))
    made = aten.matmul(input, columns)
    return made if bias is None else aten.add__Tensor(made, bias)


_COLUMN = Standing(unsqueeze="view")


def _outer_at_once(call: Callable[..., Any]) -> Callable[..., Any]:
    """The product with a column that nobody sees: it is made by the array module, the product by its operator."""
    op, products = find_operator("aten::outer"), find_operator("aten::mul.Tensor").cache

    def outer(ks: int, self: Tensor, vec2: Tensor) -> Any:
        array, device = self.array, self.device
        backend = device.backend
        plain = self.__class__ is vec2.__class__ is Tensor and ks is self.keys is vec2.keys is backend.keys
        ours = plain and array.__class__ is backend.array_type and backend.view_array is not None
        if ours and array.size and len(array.shape) == len(vec2.array.shape) == 1:
            product = products.get(ks)
            if product is not None and _COLUMN(ks):
                try:
                    return product(ks, wrap(array.reshape((array.size, 1)), device), vec2)
                except Exception as error:
                    retell_composite(op, error, (self, vec2))
                    raise
        return call(ks, self, vec2)

    return outer


@shortcut(_outer_at_once)
def outer(self: Tensor, vec2: Tensor) -> Tensor:
    """All products of the elements of two vectors."""
    if self.ndim != 1 or vec2.ndim != 1:
        raise ShapeError(f"outer: both operands must have one dimension, got shapes {list(self.shape)} and {list(vec2.shape)}")
    return aten.mul__Tensor(aten.unsqueeze(self, 1), vec2)


def linear_out(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor) -> Tensor:
    """linear into `out`."""
    return write_out("aten::linear.out", out, linear(input, weight, bias))


ger = outer


def inner(self: Tensor, other: Tensor) -> Tensor:
    """The sums of products along the last dim of both; a 0-dim operand scales."""
    a, b = self.shape, other.shape
    if not a or not b:
        return aten.mul__Tensor(self, other)
    if a[-1] != b[-1]:
        raise ShapeError(texts.unmatched("inner", a, b, a[-1], b[-1]))
    return aten.tensordot(self, other, (-1,), (-1,))


@ends_in("aten::matmul", "self", "other")
def linalg_matmul(self: Tensor, other: Tensor) -> Tensor:
    """matmul."""
    return aten.matmul(self, other)


def _rows_and_columns(name: str, batch1: Tensor, batch2: Tensor) -> tuple[Tensor, Tensor]:
    """The sum of a batch of matrix products as one product: the batch becomes part of the inner dim."""
    a, b = batch1.shape, batch2.shape
    if len(a) != 3 or len(b) != 3:
        raise ShapeError(f"{name}: batch1 and batch2 must have 3 dimensions, got shapes {list(a)} and {list(b)}")
    for i, j in ((0, 0), (2, 1)):
        if a[i] != b[j]:
            raise ShapeError(texts.unmatched(name, a, b, a[i], b[j]))
    rows = aten.reshape(aten.permute(batch1, (1, 0, 2)), (a[1], a[0] * a[2]))
    return rows, aten.reshape(batch2, (b[0] * b[1], b[2]))


def addbmm(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * self + alpha * the sum of batch1[i] @ batch2[i]."""
    rows, columns = _rows_and_columns("addbmm", batch1, batch2)
    return aten.addmm(self, rows, columns, beta=beta, alpha=alpha)


def addbmm_(self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """addbmm into self."""
    rows, columns = _rows_and_columns("addbmm_", batch1, batch2)
    return aten.addmm_(self, rows, columns, beta=beta, alpha=alpha)


def addr(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * self + alpha * outer(vec1, vec2); for bools, `or` and `and`. With beta 0 the values of self are ignored."""
    if vec1.ndim != 1 or vec2.ndim != 1:
        shapes = f"{list(vec1.shape)} and {list(vec2.shape)}"
        raise ShapeError(f"addr: vec1 and vec2 must have one dimension, got shapes {shapes}")
    shape = (*vec1.shape, *vec2.shape)
    if not expands_to(self.shape, shape):
        raise ShapeError(texts.no_product_shape("addr", self.shape, shape))
    dtype = promote_types(self.dtype, promote_types(vec1.dtype, vec2.dtype))
    check_alpha("addr", beta, dtype, "beta")
    check_alpha("addr", alpha, dtype)
    product = aten.outer(vec1, vec2)
    if dtype.category == BOOL:
        product = product if alpha else aten.zeros_like(product)
        return aten.logical_or(self, product) if beta else product
    scaled = product if alpha == 1 else aten.mul__Scalar(product, alpha)
    if beta == 0:
        return aten.to__dtype(scaled, dtype)
    return aten.add__Tensor(self if beta == 1 else aten.mul__Scalar(self, beta), scaled)


def addr_(self: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """addr into self."""
    made = addr(self, vec1, vec2, beta=beta, alpha=alpha)
    if made.shape != self.shape:
        raise ShapeError(texts.too_small("addr_", self.shape, made.shape))
    check_result_dtype(find_operator("aten::addr_"), Out(made.shape, made.dtype), self)
    return aten.copy_(self, made)


# ---- several factors


def chain_matmul(matrices: Sequence[Tensor]) -> Tensor:
    """The product of matrices in the cheapest order. A single matrix is returned as it is."""
    for i, matrix in enumerate(matrices):
        if matrix.ndim != 2:
            raise ShapeError(f"chain_matmul: matrices[{i}] must have 2 dimensions, got shape {list(matrix.shape)}")
    if not matrices:
        raise ShapeError("chain_matmul: needs at least one matrix")
    return matrices[0] if len(matrices) == 1 else aten.linalg_multi_dot(matrices)


def linalg_multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of two or more matrices in the cheapest order; the first may be a row, the last a column."""
    count = len(tensors)
    if count < 2:
        raise ShapeError(f"linalg.multi_dot: needs at least 2 tensors, got {count}")
    for i, tensor in enumerate(tensors):
        ranks = (1, 2) if i in (0, count - 1) else (2,)
        if tensor.ndim not in ranks:
            raise ShapeError(
                f"linalg.multi_dot: tensors[{i}] has shape {list(tensor.shape)}; only the first and last tensor can be vectors"
            )
        if tensor.dtype is not tensors[0].dtype:
            raise DTypeError(
                f"linalg.multi_dot: tensors must have one dtype, got {tensors[0].dtype.name} and {tensor.dtype.name}"
            )
    row, column = tensors[0].ndim == 1, tensors[-1].ndim == 1
    factors = list(tensors)
    factors[0] = aten.unsqueeze(factors[0], 0) if row else factors[0]
    factors[-1] = aten.unsqueeze(factors[-1], 1) if column else factors[-1]
    for left, right in pairwise(tensors):
        if left.shape[-1] != right.shape[0]:
            raise ShapeError(texts.unmatched("linalg.multi_dot", left.shape, right.shape, left.shape[-1], right.shape[0]))
    made = _in_order(factors, _cheapest([f.shape[0] for f in factors] + [factors[-1].shape[1]]), 0, count - 1)
    if row:
        made = aten.squeeze__dim(made, 0)
    return aten.squeeze__dim(made, -1) if column else made


def _cheapest(sizes: list[int]) -> dict[tuple[int, int], int]:
    """(i, j) -> the factor after which to split factors i to j, by dynamic programming. Factor i is sizes[i] by sizes[i + 1]."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = [cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            cost[i, j] = min(costs)
            split[i, j] = i + costs.index(cost[i, j])
    return split


def _in_order(factors: list[Tensor], split: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return factors[i]
    k = split[i, j]
    return aten.mm(_in_order(factors, split, i, k), _in_order(factors, split, k + 1, j))


def linalg_vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sums of conj(x) * y along a dim."""
    if x.dtype.category < FLOAT:
        raise DTypeError(texts.not_inexact("linalg.vecdot", x.dtype))
    if x.dtype is not y.dtype:
        raise DTypeError(f"linalg.vecdot: x and y must have one dtype, got {x.dtype.name} and {y.dtype.name}")
    product = aten.mul__Tensor(aten.conj(x) if x.dtype.is_complex else x, y)
    return aten.sum__dim_IntList(product, (dim,))


def tensordot(self: Tensor, other: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]) -> Tensor:
    """The sums of products along pairs of dims. The remaining dims of self come first, then those of other."""
    if len(dims_self) != len(dims_other):
        raise ShapeError(f"tensordot: needs as many dims of self as of other, got {list(dims_self)} and {list(dims_other)}")
    if self.dtype is not other.dtype:
        raise DTypeError(texts.several_dtypes("tensordot", {"self": self.dtype, "other": other.dtype}))
    for name, tensor, dims in (("self", self, dims_self), ("other", other, dims_other)):
        if dims and not tensor.ndim:
            raise DimError(f"tensordot: {name} has no dimensions, got dims {list(dims)}")
    left = wrap_dims(dims_self, self.ndim) if dims_self else ()
    right = wrap_dims(dims_other, other.ndim) if dims_other else ()
    x, y = self, other
    for d, e in zip(left, right, strict=True):
        m, n = self.shape[d], other.shape[e]
        if n == 1 != m:
            x = aten.sum__dim_IntList(x, (d,), True, dtype=x.dtype)
        elif m == 1 != n:
            y = aten.sum__dim_IntList(y, (e,), True, dtype=y.dtype)
        elif m != n:
            raise ShapeError(f"tensordot: dim {d} of self has length {m}, dim {e} of other has {n}")
    kept_left = [d for d in range(self.ndim) if d not in left]
    kept_right = [d for d in range(other.ndim) if d not in right]
    inner_size = numel([x.shape[d] for d in left])
    rows = aten.reshape(aten.permute(x, (*kept_left, *left)), (numel([x.shape[d] for d in kept_left]), inner_size))
    columns = aten.reshape(aten.permute(y, (*right, *kept_right)), (inner_size, numel([y.shape[d] for d in kept_right])))
    shape = [self.shape[d] for d in kept_left] + [other.shape[d] for d in kept_right]
    if not shape and self.dtype.category != BOOL:  # PyTorch's `dot` does not compute bools
        return aten.dot(aten.reshape(rows, (inner_size,)), aten.reshape(columns, (inner_size,)))
    return aten.reshape(aten.mm(rows, columns), shape)


def kron(self: Tensor, other: Tensor) -> Tensor:
    """A block for each element of self: `other` scaled by the element."""
    n = max(self.ndim, other.ndim)
    a, b = (1,) * (n - self.ndim) + self.shape, (1,) * (n - other.ndim) + other.shape
    left = aten.reshape(self, [length for m in a for length in (m, 1)])
    right = aten.reshape(other, [length for m in b for length in (1, m)])
    return aten.reshape(aten.mul__Tensor(left, right), [m * k for m, k in zip(a, b, strict=True)])


# ---- parts and patterns


def trace(self: Tensor) -> Tensor:
    """The sum of the main diagonal of a matrix."""
    if self.ndim != 2:
        raise ShapeError(f"trace: expected a matrix, got shape {list(self.shape)}")
    return aten.sum(aten.diagonal(self))


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """A diagonal of the last two dims."""
    return aten.diagonal(A, offset, dim1, dim2)


def cross(self: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The cross product of vectors of length 3 along `dim`, by default the first dim of length 3."""
    if dim is None:
        dim = next((d for d, n in enumerate(self.shape) if n == 3), None)
        if dim is None:
            raise ShapeError(f"cross: no dim of shape {list(self.shape)} has length 3")
    return aten.linalg_cross(self, other, dim=dim)


def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element, along a new last dim."""
    row = x if x.ndim else aten.unsqueeze(x, 0)
    count = row.shape[-1] if N is None else N
    if count < 2:
        raise ShapeError(f"linalg.vander: N must be greater than 1, got {count}")
    return _powers(row, count)


def _powers(x: Tensor, count: int) -> Tensor:
    ones = aten.new_ones(x, (*x.shape, 1))
    repeated = aten.expand(aten.unsqueeze(x, -1), (*x.shape, count - 1))
    return aten.cat([ones, aten.cumprod(repeated, -1)], -1)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of the elements of a vector, one row per element; the highest power comes first unless `increasing`."""
    if x.ndim != 1:
        raise ShapeError(texts.not_one_dim("vander", "x", x.shape))
    count = x.shape[0] if N is None else N
    if count < 0:
        raise ShapeError(texts.negative("vander", "N", count))
    whole = aten.to__dtype(x, int64) if x.dtype.category < FLOAT else x
    made: Tensor = _powers(whole, count) if count else aten.new_empty(whole, (*x.shape, 0))
    return made if increasing else aten.flip(made, (-1,))
