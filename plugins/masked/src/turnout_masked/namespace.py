"""`turnout.masked`: reductions and softmaxes of the elements that a mask selects.

A mask is a bool tensor that broadcasts to the input. True selects an element; a mask of None selects all. Other elements are
replaced by the neutral value of the reduction, so a result without selected elements is that value. Everything here is written
in operators.
"""

from __future__ import annotations

from turnout.dtypes import BOOL, COMPLEX, FLOAT, DType, bool_, get_default_dtype, int64
from turnout.errors import DTypeError, ShapeError
from turnout.operators.arguments import as_dtype
from turnout.operators.tracebacks import shortening
from turnout_aten import operators as _operators
from turnout_aten.dtypes import value_range
from turnout_aten.errors.arguments import undefined_for
from turnout_aten.functions.docstrings import describe
from turnout_aten.generated import functions as _functions
from turnout_aten.shapes.extents import listed, wrap_dim
from turnout_aten.shapes.reductions import sum_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor

    Dims = int | Sequence[int] | None


def _masked(input: Tensor, mask: Tensor | None, fill: Any) -> Tensor:
    """The input with `fill` where the mask is False."""
    if mask is None:
        return input
    return _operators.where__ScalarOther(_expanded(input, mask), input, fill)


def _expanded(input: Tensor, mask: Tensor) -> Tensor:
    # differs from torch: the functions of `torch.masked` take numbers as a mask, which masked tensors do not.
    if mask.dtype is not bool_:
        raise DTypeError(f"masked: the mask must be a bool tensor, got {mask.dtype.name}")
    if mask.ndim > input.ndim:
        raise ShapeError(f"masked: a mask of shape {list(mask.shape)} has more dims than the input of shape {list(input.shape)}")
    return _operators.expand(mask, input.shape)


def _dims(dim: Dims, ndim: int) -> tuple[int, ...]:
    """Dims counted from 0; None and () mean all dims."""
    return tuple([wrap_dim(d, ndim) for d in listed(dim, ndim)])


def _summed_dtype(input: Tensor, dtype: DType | None) -> DType:
    return sum_dtype(input.dtype, None) if dtype is None else _dtype(input, dtype)


def _dtype(input: Tensor, dtype: DType | None) -> DType:
    """What is computed in."""
    return input.dtype if dtype is None else as_dtype("masked", "dtype", dtype)


def _running_dtype(input: Tensor, dtype: DType | None) -> DType:
    """That of running sums and products: the input's, unless it is bool, for which PyTorch has none."""
    return int64 if dtype is None and input.dtype is bool_ else _dtype(input, dtype)


def _as(x: Tensor, dtype: DType | None) -> Tensor:
    return x if dtype is None else _operators.to__dtype(x, dtype)


# ---- reductions


@shortening
def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The sum over some dims; for integers and bools in int64.

    Example:
        >>> turnout.masked.sum(turnout.tensor([1, 9, 3]), mask=turnout.tensor([True, False, True]))
        tensor(4)
    """
    kept = _masked(_as(input, _summed_dtype(input, dtype)), mask, 0)
    return _functions.sum(kept, _dims(dim, input.ndim), keepdim)


@shortening
def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The product over some dims; for integers and bools in int64.

    Example:
        >>> turnout.masked.prod(turnout.tensor([2, 9, 3]), mask=turnout.tensor([True, False, True]))
        tensor(6)
    """
    made = _masked(_as(input, _summed_dtype(input, dtype)), mask, 1)
    for d in sorted(_dims(dim, input.ndim), reverse=True):
        made = _functions.prod(made, d, keepdim)
    return made


@shortening
def amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The largest element over some dims.

    Example:
        >>> turnout.masked.amax(turnout.tensor([1, 9]), mask=turnout.tensor([True, False]))
        tensor(1)
    """
    kept = _masked(_as(input, dtype), mask, value_range(_dtype(input, dtype))[0])
    return _functions.amax(kept, _dims(dim, input.ndim), keepdim)


@shortening
def amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The smallest element over some dims.

    Example:
        >>> turnout.masked.amin(turnout.tensor([1, 9]), mask=turnout.tensor([False, True]))
        tensor(9)
    """
    kept = _masked(_as(input, dtype), mask, value_range(_dtype(input, dtype))[1])
    return _functions.amin(kept, _dims(dim, input.ndim), keepdim)


@shortening
def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The index of the largest element, in the input's dtype. With dim=None: in the flattened tensor.

    Example:
        >>> turnout.masked.argmax(turnout.tensor([1, 9]), mask=turnout.tensor([True, False]))
        tensor(0)
    """
    x = _as(input, dtype)
    return _as(_functions.argmax(_masked(x, mask, value_range(x.dtype)[0]), dim, keepdim), x.dtype)


@shortening
def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The index of the smallest element. See `argmax`.

    Example:
        >>> turnout.masked.argmin(turnout.tensor([1, 9]), mask=turnout.tensor([False, True]))
        tensor(1)
    """
    x = _as(input, dtype)
    return _as(_functions.argmin(_masked(x, mask, value_range(x.dtype)[1]), dim, keepdim), x.dtype)


def _count(input: Tensor, mask: Tensor | None, dims: tuple[int, ...], keepdim: bool) -> Any:
    """The number of elements behind each result; a Python number without a mask."""
    if mask is not None:
        return _functions.sum(_expanded(input, mask), dims, keepdim)
    count = 1
    for d in dims if input.ndim else ():
        count *= input.shape[d]
    return count


@shortening
def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The mean over some dims; nan where no elements are selected. Raises DTypeError for bools.

    Example:
        >>> turnout.masked.mean(turnout.tensor([1.0, 9.0]), mask=turnout.tensor([True, False]))
        tensor(1.)
    """
    dtype = _dtype(input, dtype)
    if dtype.category == BOOL:
        raise DTypeError(undefined_for("masked.mean", bool_))
    dims = _dims(dim, input.ndim)
    total = _functions.sum(_masked(_as(input, dtype), mask, 0), dims, keepdim)
    return _functions.div(total, _count(input, mask, dims, keepdim))


@shortening
def median(
    input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The median along a dim, the lower of two; nan where no elements are selected. Raises DTypeError for non-float tensors.

    Arguments:
        dim: the dim to reduce

    Example:
        >>> turnout.masked.median(turnout.tensor([1.0, 9.0, 5.0]), mask=turnout.tensor([True, False, True]))
        tensor(1.)
    """
    # differs from torch: `masked.median` refuses integers. PyTorch computes them in float32, which does not hold large ones.
    if input.dtype.category != FLOAT:
        raise DTypeError(f"masked.median needs a float tensor, got {input.dtype.name}")
    kept = _masked(_as(input, dtype), mask, float("nan"))
    return _functions.nanmedian(kept, dim, keepdim)[0]


@shortening
def norm(
    input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The vector norm over some dims.

    Example:
        >>> turnout.masked.norm(turnout.tensor([3.0, 4.0, 9.0]), mask=turnout.tensor([True, True, False]))
        tensor(5.)
    """
    order = 2.0 if ord is None else ord
    kept = _masked(input, mask, float("inf") if order == float("-inf") else 0)
    return _operators.linalg_vector_norm(kept, order, _dims(dim, input.ndim), keepdim, dtype=dtype)


@shortening
def var(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance over some dims. `correction` is subtracted from the count: 1 by default, 0 for unbiased=False.

    Example:
        >>> turnout.masked.var(turnout.tensor([1.0, 3.0, 9.0]), mask=turnout.tensor([True, True, False]))
        tensor(2.)
    """
    taken = correction if correction is not None else 1 if unbiased is None else int(unbiased)
    dtype = _dtype(input, dtype) if dtype is not None or input.dtype.category >= FLOAT else get_default_dtype()
    x = _as(input, dtype)
    dims = _dims(dim, input.ndim)
    middle = _functions.div(_functions.sum(_masked(x, mask, 0), dims, True), _count(input, mask, dims, True))
    distance = _masked(_functions.sub(x, middle), mask, 0)
    squares = _operators.mul__Tensor(distance, _operators.conj(distance) if dtype.category == COMPLEX else distance)
    total = _functions.sum(_operators.real(squares) if dtype.category == COMPLEX else squares, dims, keepdim)
    count = _count(input, mask, dims, keepdim)
    freedom = max(count - taken, 0) if isinstance(count, int) else _functions.clamp(_functions.sub(count, taken), 0)
    return _as(_functions.div(total, freedom), dtype)


@shortening
def std(
    input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation: the root of `var`.

    Example:
        >>> turnout.masked.std(turnout.tensor([1.0, 3.0, 9.0]), mask=turnout.tensor([True, True, False]))
        tensor(1.4142)
    """
    found = var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask)
    return _functions.sqrt(found)


@shortening
def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """log(sum(exp(input))) over some dims.

    Example:
        >>> turnout.masked.logsumexp(turnout.tensor([0.0, 9.0]), mask=turnout.tensor([True, False]))
        tensor(0.)
    """
    kept = _masked(_as(input, dtype), mask, value_range(_dtype(input, dtype))[0])
    return _as(_functions.logsumexp(kept, _dims(dim, input.ndim), keepdim), _dtype(input, dtype))


# ---- along a dim


@shortening
def cumsum(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The running sum along a dim.

    Arguments:
        dim: the dim along which it runs

    Example:
        >>> turnout.masked.cumsum(turnout.tensor([1, 9, 3]), 0, mask=turnout.tensor([True, False, True]))
        tensor([1, 1, 4])
    """
    return _functions.cumsum(_masked(_as(input, dtype), mask, 0), dim, dtype=_running_dtype(input, dtype))


@shortening
def cumprod(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The running product along a dim.

    Arguments:
        dim: the dim along which it runs

    Example:
        >>> turnout.masked.cumprod(turnout.tensor([1, 9, 3]), 0, mask=turnout.tensor([True, False, True]))
        tensor([1, 1, 3])
    """
    return _functions.cumprod(_masked(_as(input, dtype), mask, 1), dim, dtype=_running_dtype(input, dtype))


@shortening
def softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """softmax along a dim: 0 where the mask is False, nan where it is False everywhere.

    Arguments:
        dim: the dim over which the results add up to 1

    Example:
        >>> turnout.masked.softmax(turnout.tensor([0.0, 9.0]), 0, mask=turnout.tensor([True, False]))
        tensor([1., 0.])
    """
    x = _as(input, dtype)
    return _functions.softmax(_masked(x, mask, value_range(x.dtype)[0]), dim)


@shortening
def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of `softmax`.

    Arguments:
        dim: the dim over which the exponentials add up to 1

    Example:
        >>> turnout.masked.log_softmax(turnout.tensor([0.0, 9.0]), 0, mask=turnout.tensor([True, False]))
        tensor([0., -inf])
    """
    x = _as(input, dtype)
    return _functions.log_softmax(_masked(x, mask, value_range(x.dtype)[0]), dim)


@shortening
def softmin(input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None) -> Tensor:
    """softmax of the negated input.

    Arguments:
        dim: the dim over which the results add up to 1

    Example:
        >>> turnout.masked.softmin(turnout.tensor([0.0, 1.0]), 0)
        tensor([0.7311, 0.2689])
    """
    x = _as(input, dtype)
    return _functions.softmax(_functions.neg(_masked(x, mask, value_range(x.dtype)[1])), dim)


@shortening
def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """The input divided by its vector norm along a dim, or by `eps` if that is larger; 0 where the mask is False.

    Arguments:
        dim: the dim of a vector
        eps: the smallest divisor

    Example:
        >>> turnout.masked.normalize(turnout.tensor([3.0, 4.0, 9.0]), 2.0, 0, mask=turnout.tensor([True, True, False]))
        tensor([0.6000, 0.8000, 0.0000])
    """
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    x = _masked(_as(input, dtype), mask, 0)
    return _functions.div(x, _functions.clamp(size, eps))


@shortening
def logaddexp(
    input: Tensor, other: Tensor, *, dtype: DType | None = None, input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """log(exp(input) + exp(other)); an element that its mask does not select counts as -inf.

    Arguments:
        other: the second operand
        input_mask: the elements of `input` that count
        other_mask: the elements of `other` that count

    Example:
        >>> masked = turnout.masked
        >>> masked.logaddexp(turnout.tensor([0.0, 0.0]), turnout.tensor([0.0, 0.0]), other_mask=turnout.tensor([True, False]))
        tensor([0.6931, 0.0000])
    """
    a, b = _as(input, dtype), _as(other, dtype)
    return _operators.logaddexp(_masked(a, input_mask, float("-inf")), _masked(b, other_mask, float("-inf")))


__all__ = describe(
    globals(),
    input="a tensor",
    dim="the dim, or the dims, to reduce; None means all",
    keepdim="whether a reduced dim stays, with length 1",
    dtype="the dtype to which the elements are converted first",
    mask="the elements that count, bool, broadcast to `input`; all by default",
    ord="the order of the norm",
    unbiased="whether the correction is 1",
    correction="what is subtracted from the count",
)
__dir__ = __all__.copy
