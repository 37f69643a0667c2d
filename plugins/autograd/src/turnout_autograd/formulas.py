"""What formulas in `derivatives.yaml` call: operators under short names, and gradients too long for one line.

Everything here is written in operators, so that a gradient can be differentiated again, batched, traced and cast. A function
is named after its operator with `_grad`; operators that core has for gradients keep their own names.
"""

from __future__ import annotations

from itertools import accumulate
from math import inf, prod
from typing import TYPE_CHECKING, Any

from turnout.dtypes import COMPLEX
from turnout.registry import find_operator
from turnout.state import BELOW_ADINPLACEORVIEW, DISPATCH
from turnout_aten.generated import operators as aten
from turnout_aten.shapes.extents import dense_strides as preserved
from turnout_aten.tensor.levels import GRAD
from turnout_aten.tensor.tensor import Tensor, wrap
from turnout_autograd.graph import is_plain

if TYPE_CHECKING:
    from turnout.operators import Operator

Ints = tuple[int, ...]


_END = (1 << 63) - 1  # what a slice without an end has


# ---- numbers and shapes

_expand = find_operator("aten::expand")
_t = find_operator("aten::t")


def _unrecorded(op: Operator, grad: Tensor, *args: Any) -> Tensor:
    """A view that need not be known as one, because nothing records: 1.5 us of 3.5 less."""
    include, keep = DISPATCH.get()
    ks = (grad.keys | include) & keep & BELOW_ADINPLACEORVIEW
    view: Tensor = op.lookup(ks)(ks, grad, *args)
    return view


_SMALL = 4096  # elements that are sooner written than viewed


def expand(grad: Tensor, shape: Ints) -> Tensor:
    """`grad.expand(shape)`, or the same values in memory of their own."""
    if GRAD.get()[0]:
        return grad.expand(shape)
    if prod(shape) <= _SMALL and is_plain(grad):  # 1.2 us instead of 2.3, and a leaf need not copy it
        array = grad.device.backend.spread(grad.array, shape)
        if array is not None:
            return wrap(array, grad.device)
    return _unrecorded(_expand, grad, shape, False)


def turned(grad: Tensor) -> Tensor:
    """`grad.t()`."""
    if is_plain(grad) and len(grad.array.shape) == 2:
        device = grad.device
        array = device.backend.transposed(grad.array)
        if array is not None:
            made = wrap(array, device)
            made.storage = grad.shared_storage()
            made.offset = grad.offset
            return made
    return grad.t() if GRAD.get()[0] else _unrecorded(_t, grad)


def is_recorded(*tensors: Tensor) -> bool:
    """Whether what is computed from one of these is recorded now: the gradient is to be differentiated with respect to it."""
    return bool(GRAD.get()[0]) and any(t.requires_grad for t in tensors)


def scaled(x: Any, factor: Any) -> Any:
    """x * conj(factor) without the work for 1 and -1."""
    if factor == 1:
        return x
    return -x if factor == -1 else x * conj(factor)


def conj(x: Any) -> Any:
    """The complex conjugate; real values are returned as they are."""
    if isinstance(x, Tensor):
        # x.dtype in line: 60 ns of 350; inside vmap it is another property
        dtype = x.device.backend.dtype_of(x.array) if type(x) is Tensor else x.dtype
        return aten.conj_physical(x) if dtype.category == COMPLEX else x
    return x.conjugate() if isinstance(x, complex) else x


def where(condition: Tensor, x: Any, y: Any) -> Tensor:
    """x or y elementwise, one of which may be a number."""
    if not isinstance(y, Tensor):
        return aten.where__ScalarOther(condition, x, y)
    return aten.where__self(condition, x, y) if isinstance(x, Tensor) else aten.where__ScalarSelf(condition, x, y)


def count(*shapes: Ints) -> int:
    """The number of elements of shapes broadcast together."""
    if len(shapes) == 1:
        return prod(shapes[0])
    ndim = max(map(len, shapes))
    padded = [(1,) * (ndim - len(s)) + s for s in shapes]
    return prod(next((n for n in lengths if n != 1), 1) for lengths in zip(*padded, strict=True))


def dims_of(ndim: int, dim: Any) -> Ints:
    """Dims as non-negative ints; None and () mean all."""
    dims = range(ndim) if dim is None or dim == () or dim == [] else (dim,) if isinstance(dim, int) else dim
    return tuple(sorted(d % ndim if ndim else 0 for d in dims))


def count_of(shape: Ints, dim: Any) -> int:
    """The number of elements that a reduction over `dim` takes together."""
    return prod(shape[d] for d in dims_of(len(shape), dim)) if shape else 1


def sum_to(x: Tensor, shape: Ints) -> Tensor:
    """The sum over the dims along which `shape` was broadcast to x's."""
    have = x.shape
    if have == shape:
        return x
    leading = len(have) - len(shape)
    if leading:
        x = aten.sum__dim_IntList(x, tuple(range(leading)))
        if have[leading:] == shape:
            return x
    dims = tuple(d for d, n in enumerate(shape) if n == 1 and have[leading + d] != 1)
    return aten.sum__dim_IntList(x, dims, True) if dims else x


def restored(x: Tensor, shape: Ints, dim: Any, keepdim: bool) -> Tensor:
    """What a reduction of a tensor of `shape` gave, with the reduced dims back as 1."""
    if keepdim or not shape:
        return x
    for d in dims_of(len(shape), dim):
        x = x.unsqueeze(d)
    return x


def inverse(dims: Ints) -> Ints:
    """The permutation that undoes one."""
    found = [0] * len(dims)
    for i, d in enumerate(dims):
        found[d % len(dims)] = i
    return tuple(found)


# ---- reductions


def shared_grad(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """amax, amin: the elements that are the extremum share the gradient equally."""
    shape = self.shape
    mask = (self == restored(result, shape, dim, keepdim)).to(grad.dtype)
    share = restored(grad, shape, dim, keepdim)
    return mask * (share / mask.sum(dims_of(len(shape), dim), True) if shape else share)


def shared_of_all_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """max, min, median of all elements: those that are the result share the gradient equally, NaN where that is NaN."""
    nan = (self != self).logical_and(result != result)
    mask = (self == result).logical_or(nan).to(grad.dtype)
    return mask * (grad / mask.sum())


def selected_grad(grad: Tensor, shape: Ints, dim: int, indices: Tensor, keepdim: bool) -> Tensor:
    """max.dim, sort, topk: the gradient at the elements that were taken."""
    if not keepdim and shape:
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(shape).scatter(dim, indices, grad)


def products_of_others(x: Tensor) -> Tensor:
    """For each element the product of all others in its row, by an n x n table: exact, and differentiable again."""
    one = aten.eye(x.shape[-1], dtype=x.dtype, device=x.device) == 1
    made: Tensor = x.unsqueeze(-2).expand((*x.shape, x.shape[-1])).masked_fill(one, 1).prod(-1)
    return made


def prod_grad(grad: Tensor, self: Tensor, result: Tensor) -> Tensor:
    """The product of all others; by division where no element is 0."""
    if not self.shape:
        return grad
    return prod_grad_dim(grad, self.reshape((-1,)), result, 0, False).reshape(self.shape)


def prod_grad_dim(grad: Tensor, self: Tensor, result: Tensor, dim: int, keepdim: bool) -> Tensor:
    """Products along one dim.

    With a zero among the elements the products of all others are taken from an n x n table: exact, and differentiable again.
    """
    shape = self.shape
    if not shape:
        return grad
    share = restored(grad, shape, dim, keepdim)
    if not bool((self == 0).any()):
        return share * restored(result, shape, dim, keepdim) / self
    return share * products_of_others(self.transpose(dim, -1)).transpose(dim, -1)


def var_grad(grad: Tensor, self: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    """2 (x - mean) / (n - correction)."""
    shape = self.shape
    degrees = count_of(shape, dim) - (1 if correction is None else correction)
    factor = 2 / degrees if degrees else float("inf")
    centred = self - self.mean(dims_of(len(shape), dim), True) if shape else self - self
    return restored(grad, shape, dim, keepdim) * (centred * factor)


def std_grad(grad: Tensor, self: Tensor, result: Tensor, dim: Any, correction: Any, keepdim: bool) -> Tensor:
    """By the variance; 0 where the deviation is 0."""
    zero = result == 0
    return var_grad((grad / (result * 2).masked_fill(zero, 1)).masked_fill(zero, 0), self, dim, correction, keepdim)


def logsumexp_grad(grad: Tensor, self: Tensor, result: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The softmax."""
    shape = self.shape
    return restored(grad, shape, dim, keepdim) * conj((self - restored(result, shape, dim, keepdim)).exp())


def cumsum_grad(grad: Tensor, dim: int) -> Tensor:
    """The sum from the other end."""
    return grad if not grad.shape else grad.flip((dim,)).cumsum(dim).flip((dim,))


def cumprod_grad(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """The sum from the other end of grad * result, divided by self.

    With a zero among the elements the products without each one are taken from an n x n table: exact, and differentiable again.
    """
    if not self.shape or not count(self.shape):
        return grad
    if not bool((self == 0).any()):
        return cumsum_grad(grad * result, dim) / self
    n = self.shape[dim]
    last = self.transpose(dim, -1)
    one = aten.eye(n, dtype=self.dtype, device=self.device) == 1
    without = last.unsqueeze(-2).expand((*last.shape, n)).masked_fill(one, 1).cumprod(-1).triu()
    return (without * grad.transpose(dim, -1).unsqueeze(-2)).sum(-1).transpose(dim, -1)


def logcumsumexp_grad(grad: Tensor, self: Tensor, result: Tensor, dim: int) -> Tensor:
    """The sum of grad[k] * exp(self - result[k]) from each element on.

    Positive and negative gradients apart, as logarithms, so that nothing overflows. From an n x n table where numbers are
    complex, or where this is recorded: logarithms have no derivative with respect to a gradient of 0.
    """
    if not grad.shape:
        return grad
    if self.dtype.category == COMPLEX or is_recorded(grad, self):
        taken = (self.transpose(dim, -1).unsqueeze(-1) - result.transpose(dim, -1).unsqueeze(-2)).triu().exp().triu()
        return (conj(taken) * grad.transpose(dim, -1).unsqueeze(-2)).sum(-1).transpose(dim, -1)
    zero = grad == 0
    size = grad.masked_fill(zero, 1).abs().log().masked_fill(zero, -inf) - result
    parts = [size.masked_fill(grad <= 0, -inf), size.masked_fill(grad >= 0, -inf)]
    over, under = [(p.flip((dim,)).logcumsumexp(dim).flip((dim,)) + self).exp() for p in parts]
    return over - under


def cumulative_extreme_grad(grad: Tensor, shape: Ints, dim: int, indices: Tensor) -> Tensor:
    """cummax, cummin: added up at the elements that were the extremes."""
    return grad.new_zeros(shape).scatter_add(dim, indices, grad)


def aminmax_grad(grads: Any, self: Tensor, smallest: Tensor, largest: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """The sum of what amin and amax give."""
    each = zip(grads, (smallest, largest), strict=True)
    low, high = [None if g is None else shared_grad(g, self, r, dim, keepdim) for g, r in each]
    if low is None or high is None:
        return _present((low, high))
    return low + high


def vector_norm_grad(grad: Tensor, self: Tensor, result: Tensor, ord: Any, dim: Any, keepdim: bool) -> Tensor:
    """sign(x) |x|^(p-1) / norm^(p-1); 0 where the norm is 0, shared among the extremes for inf and -inf."""
    if self.dtype.category != COMPLEX:
        self = self.to(grad.dtype)
    shape = self.shape
    grad, norm = restored(grad, shape, dim, keepdim), restored(result, shape, dim, keepdim)
    if ord == 0:
        return (self * 0).masked_fill(self == self, 0)
    if ord == 2:
        zero = norm == 0
        return self * (grad / norm.masked_fill(zero, 1)).masked_fill(zero, 0)
    size = self.abs()
    zero = size == 0
    direction = self.sgn()
    if ord == 1:
        return direction * grad
    if ord in (inf, -inf):
        mask = (size == norm).to(grad.dtype)
        return direction * (mask * (grad / (mask.sum(dims_of(len(shape), dim), True) if shape else mask)))
    if ord < 2:
        powers = size.masked_fill(zero, 1).pow(ord - 1).masked_fill(zero, 0)
    else:
        powers = size.pow(ord - 1)
    none = norm == 0  # 1 there, or the derivative with respect to grad would be NaN
    return direction * powers * (grad * norm.masked_fill(none, 1).pow(1 - ord)).masked_fill(none, 0)


# ---- layers and losses


def softmax_second_grad(grad: Tensor, grad_output: Tensor, output: Tensor, dim: int) -> Tensor:
    """d <grad, y (g - sum(g y))> / dy."""
    inner = grad_output - (grad_output * output).sum(dim, True)
    return grad * inner - grad_output * (grad * output).sum(dim, True)


def log_softmax_second_grad(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    """d <grad, g - exp(y) sum(g)> / dg."""
    return grad - (grad * output.exp()).sum(dim, True)


def mse_second_grad(grad: Tensor, grad_output: Tensor, reduction: int, elements: int) -> Tensor:
    """d <grad, mse_loss_backward> / dself."""
    return grad * grad_output * (2 / elements if reduction == 1 and elements else 2)


def mse_second_grad_output(grad: Tensor, self: Tensor, target: Tensor, reduction: int) -> Tensor:
    """d <grad, mse_loss_backward> / dgrad_output."""
    each = grad * ((self - target) * 2)
    if reduction == 0:
        return each
    return each.sum() / count(each.shape) if reduction == 1 else each.sum()


def dropout_scale(p: float, train: bool | None) -> float:
    """What kept elements were multiplied by."""
    return 1.0 if train is False else 0.0 if p == 1 else 1 / (1 - p)


# ---- views, joining, indexing


def slice_grad(grad: Tensor, shape: Ints, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    """Zeros with the gradient in the slice."""
    return aten.slice_backward(grad, shape, dim, 0 if start is None else start, _END if end is None else end, step)


def as_strided_grad(
    grad: Tensor, geometry: tuple[Ints, Ints, int], size: Ints, stride: Ints, offset: int | None
) -> Tensor:
    """Add the gradient up in memory, and read it as self lies there; shared evenly where elements of self share a place."""
    shape, strides, own_offset = geometry
    start = own_offset if offset is None else offset
    if not prod(size) or not prod(shape):
        return grad.new_zeros(shape)
    reach = 1 + max(
        start + sum((n - 1) * s for n, s in zip(size, stride, strict=True)),
        own_offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)),
    )
    places = aten.arange(reach, device=grad.device)
    memory = grad.new_zeros((reach,))
    memory = memory.index_add(0, places.as_strided(size, stride, start).reshape((-1,)), grad.reshape((-1,)))
    own = places.as_strided(shape, strides, own_offset).reshape((-1,))
    found = memory.index_select(0, own)
    if _may_overlap(shape, strides):
        times = grad.new_zeros((reach,)).index_add(0, own, grad.new_ones((count(shape),)))
        found = found / times.index_select(0, own)
    return found.reshape(shape)


def _may_overlap(shape: Ints, strides: Ints) -> bool:
    """Whether two indices may lead to one place."""
    reach = 0
    for stride, length in sorted((abs(s), n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if stride <= reach:
            return True
        reach += stride * (length - 1)
    return False


def _present(grads: Any) -> Tensor:
    return next(g for g in grads if g is not None)


def unbind_grad(grads: Any, shape: Ints, dim: int) -> Tensor:
    """The gradients stacked, zeros for outputs that were not used."""
    one = _present(grads)
    return aten.stack([one.new_zeros(one.shape) if g is None else g for g in grads], dim)


def split_sizes_of(shape: Ints, split_size: int, dim: int) -> Ints:
    """The lengths that `split` gives."""
    total = shape[dim]
    if not split_size:
        return (0,)
    return tuple(min(split_size, total - i) for i in range(0, max(total, 1), split_size))


def split_grad(grads: Any, shape: Ints, sizes: Ints, dim: int) -> Tensor:
    """The gradients joined, zeros for outputs that were not used."""
    dim %= len(shape)
    one = _present(grads)

    def part(i: int) -> Tensor:
        return one.new_zeros((*shape[:dim], sizes[i], *shape[dim + 1 :])) if grads[i] is None else grads[i]

    return aten.cat([part(i) for i in range(len(sizes))], dim)


def cat_grad(grad: Tensor, shapes: list[Ints], dim: int) -> list[Tensor]:
    """The part of each tensor. Tensors of shape [0] take part in any cat and get zeros."""
    skipped = [s == (0,) and grad.shape != (0,) and len(grad.shape) != 1 for s in shapes]
    lengths = [0 if skip else s[dim] for s, skip in zip(shapes, skipped, strict=True)]
    starts = accumulate(lengths, initial=0)
    return [
        grad.new_zeros((0,)) if skip else aten.slice__Tensor(grad, dim, start, start + length, 1)
        for skip, length, start in zip(skipped, lengths, starts, strict=False)
    ]


def repeat_grad(grad: Tensor, repeats: Ints, shape: Ints) -> Tensor:
    """The sum over the copies."""
    leading = len(repeats) - len(shape)
    if 0 in repeats:
        return grad.new_zeros(shape)
    split = [*repeats[:leading]]
    for times, length in zip(repeats[leading:], shape, strict=True):
        split += [times, length]
    sums = (*range(leading), *range(leading, len(split), 2))
    return grad.reshape(tuple(split)).sum(sums) if sums else grad


def index_select_grad(grad: Tensor, shape: Ints, dim: int, positions: Tensor) -> Tensor:
    """Zeros with the gradients added at their positions."""
    if not shape:
        return grad.sum() if grad.shape else grad
    if not positions.shape:
        positions = positions.reshape((1,))
    return grad.new_zeros(shape).index_add(dim, positions, grad)


def gathered(grad: Tensor, dim: int, positions: Tensor, shape: Ints) -> Tensor:
    """scatter's source: what was taken of it, zeros for the rest."""
    return padded_to(grad.gather(dim, positions), shape)


def laid_out(grad: Tensor, geometry: tuple[Ints, Ints, int]) -> Tensor:
    """A gradient in the strides that a clone of self has, which is what `as_strided_scatter` writes into."""
    shape, strides, _ = geometry
    made = grad.new_empty_strided(shape, preserved(shape, strides))
    return made.copy_(grad)


# ---- scattering with a reduction


def scatter_reduce_grad(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """(of self, of src). Without `include_self` nothing comes from elements of self that something was written over."""
    if not self.shape:
        self, result, grad = self.reshape((1,)), result.reshape((1,)), grad.reshape((1,))
        of_self, of_src = scatter_reduce_grad(
            grad, self, 0, index.reshape((-1,)), src.reshape((-1,)), reduce, include_self, result
        )
        return of_self.reshape(()), of_src.reshape(src.shape)
    used = part_of(src, index.shape)
    if reduce == "sum":
        of_self, of_used = grad, grad.gather(dim, index)
    elif reduce == "mean":
        counts = grad.new_full(self.shape, int(include_self)).scatter_add(dim, index, grad.new_ones(index.shape))
        share = grad / counts.masked_fill(counts == 0, 1)
        of_self, of_used = share, share.gather(dim, index)
    elif reduce == "prod":
        of_self, of_used = _scattered_prod_grad(grad, self, dim, index, used, include_self, result)
    else:
        of_self, of_used = _scattered_extremum_grad(grad, self, dim, index, used, include_self, result)
    if not include_self:
        of_self = of_self.scatter(dim, index, 0)
    return of_self, padded_to(of_used, src.shape)


def _scattered_prod_grad(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """The product of all others: by division, and where one factor only is 0, of all but that one."""
    ones = self.masked_fill(self == 0, 1)
    of_self = grad * ones.scatter_reduce(dim, index, src, "prod", include_self=include_self) / ones
    zero = src == 0
    zeros = grad.new_zeros(self.shape).scatter_add(dim, index, zero.to(grad.dtype))
    only = zero.logical_and(zeros.gather(dim, index) == 1)
    without = self.scatter_reduce(dim, index, src.masked_fill(only, 1), "prod", include_self=include_self)
    of_src = where(
        only, (grad * without).gather(dim, index), (grad * result).gather(dim, index) / src.masked_fill(zero, 1)
    )
    return of_self, of_src


def _scattered_extremum_grad(
    grad: Tensor, self: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, result: Tensor
) -> tuple[Tensor, Tensor]:
    """All that are the extremum share the gradient equally."""
    self_is = (self == result).to(grad.dtype)
    src_is = (src == result.gather(dim, index)).to(grad.dtype)
    first = self_is if include_self else grad.new_zeros(self.shape)
    counts = first.scatter_add(dim, index, src_is)
    share = grad / counts.masked_fill(counts == 0, 1)
    of_self = self_is * share if include_self else grad
    return of_self, src_is * share.gather(dim, index)


def part_of(src: Tensor, shape: Ints) -> Tensor:
    """The first elements along each dim, as many as `shape` says: what scatter reads of its source."""
    for d, (have, want) in enumerate(zip(src.shape, shape, strict=True)):
        if have != want:
            src = aten.slice__Tensor(src, d, 0, want, 1)
    return src


def padded_to(found: Tensor, shape: Ints) -> Tensor:
    """Zeros behind along each dim, up to `shape`."""
    for d, (have, want) in enumerate(zip(found.shape, shape, strict=True)):
        if have != want:
            found = aten.slice_backward(found, (*found.shape[:d], want, *found.shape[d + 1 :]), d, 0, have, 1)
    return found
