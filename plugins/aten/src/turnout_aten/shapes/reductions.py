"""Shapes of reductions: which dims go, whether they stay as length 1, and the dtype things are added up in."""

from __future__ import annotations

from turnout.dtypes import COMPLEX, FLOAT, DType, bool_, int64, uint8
from turnout.errors import DimError, DTypeError, ShapeError
from turnout_aten.dtypes import promote_types
from turnout_aten.errors import arguments as texts
from turnout_aten.shapes.extents import numel, reduced, wrap_dim, wrap_dims
from turnout_aten.shapes.specs import Out, Result, in_dtype_of_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from turnout_aten.tensor.tensor import Tensor

    Dims = Sequence[int] | None

    from turnout_aten.shapes.specs import ShapeTable


def _answer(self: Tensor, shape: tuple[int, ...], computed: DType, given: DType) -> Out | Result:
    out = Out(shape, computed)
    return out if computed is given else Result(out, {"self": computed})


def sum_dtype(given: DType, dtype: DType | None) -> DType:
    """The dtype things are added up in: `dtype`, else int64 for integers and bools."""
    if dtype is not None:
        return dtype
    return given if given.category >= FLOAT else int64


@in_dtype_of_out
def total(self: Tensor, dtype: DType | None = None) -> Out | Result:
    """sum or prod of everything; integers and bools in int64 unless `dtype` says otherwise."""
    given = self.dtype
    return _answer(self, (), sum_dtype(given, dtype), given)


@in_dtype_of_out
def sum_dims(self: Tensor, dim: Dims, keepdim: bool = False, dtype: DType | None = None) -> Out | Result:
    """total over some dims, all of them for None and []."""
    given = self.dtype
    shape = self.array.shape
    return _answer(self, reduced(shape, wrap_dims(dim, len(shape)), keepdim), sum_dtype(given, dtype), given)


@in_dtype_of_out
def prod_dim(self: Tensor, dim: int, keepdim: bool = False, dtype: DType | None = None) -> Out | Result:
    """The product over one dim."""
    return sum_dims(self, (dim,), keepdim, dtype)


@in_dtype_of_out
def mean(self: Tensor, dtype: DType | None = None) -> Out | Result:
    """The mean of everything."""
    return mean_dims(self, None, False, dtype)


@in_dtype_of_out
def mean_dims(self: Tensor, dim: Dims, keepdim: bool = False, dtype: DType | None = None) -> Out | Result:
    """Float and complex tensors, or any with a float `dtype`."""
    given = self.dtype
    computed = given if dtype is None else dtype
    if computed.category < FLOAT:
        fix = "pass dtype=turnout.float32 or convert it" if dtype is None else "pass a float or complex dtype"
        raise DTypeError(f"mean: the result cannot have dtype {computed.name}; {fix}")
    shape = self.array.shape
    return _answer(self, reduced(shape, wrap_dims(dim, len(shape)), keepdim), computed, given)


def _some(name: str, shape: tuple[int, ...], dims: Sequence[int], given: Any = True) -> None:
    """Raise DimError for a dim without elements, ShapeError where no dims were `given`."""
    if not given and 0 in shape:
        raise ShapeError(texts.no_element(name, shape))
    for d in dims:
        if shape and shape[d] == 0:
            raise DimError(texts.no_element(name, shape, d))


def ordered(self: Tensor, *, empty: bool = False) -> DType:
    """Its dtype. Raises DTypeError for complex numbers, but where there are none if it may be `empty`."""
    dtype = self.dtype
    if dtype.category == COMPLEX and not (empty and not self.numel()):
        raise DTypeError(texts.unordered("", dtype))
    return dtype


def extreme_all(self: Tensor) -> Out:
    """max or min of everything."""
    dtype = ordered(self)
    if not numel(self.array.shape):
        raise ShapeError(texts.no_element("", self.array.shape))
    return Out((), dtype)


def extreme_dims(self: Tensor, dim: Dims = (), keepdim: bool = False) -> Out:
    """amax or amin over some dims, all of them for []."""
    dtype = ordered(self)
    shape = self.array.shape
    dims = wrap_dims(dim, len(shape))
    _some("", shape, dims, dim)
    return Out(reduced(shape, dims, keepdim), dtype)


def extreme_dim(self: Tensor, dim: int, keepdim: bool = False) -> Result:
    """(values, indices) along one dim, which the kernel gets counted from 0."""
    dtype = ordered(self)
    shape = self.array.shape
    dim = wrap_dim(dim, len(shape))
    _some("", shape, (dim,))
    left = reduced(shape, (dim,), keepdim)
    return Result((Out(left, dtype), Out(left, int64, exact=True)), None, {"dim": dim})


def arg_extreme(self: Tensor, dim: int | None = None, keepdim: bool = False) -> Out:
    """Indices in int64: into one dim, or into the flattened tensor for None."""
    if ordered(self) is bool_:
        raise DTypeError(f"{texts.undefined_for('', bool_)}; convert to an integer dtype first")
    shape = self.array.shape
    dims = tuple(range(len(shape))) if dim is None else (wrap_dim(dim, len(shape)),)
    _some("", shape, dims)
    return Out(reduced(shape, dims, keepdim), int64, exact=True)


_TRUTHS = (bool_, uint8)


def _truth_dtype(self: Tensor) -> DType:
    return uint8 if self.dtype is uint8 else bool_


def truth_all(self: Tensor) -> Out:
    """any or all of everything: a bool, for uint8 tensors a uint8."""
    return Out((), _truth_dtype(self), exact=_TRUTHS)


def truth_dim(self: Tensor, dim: int, keepdim: bool = False) -> Out:
    """truth_all over one dim."""
    shape = self.array.shape
    return Out(reduced(shape, (wrap_dim(dim, len(shape)),), keepdim), _truth_dtype(self), exact=_TRUTHS)


def truth_dims(self: Tensor, dim: Dims = None, keepdim: bool = False) -> Out:
    """truth_all over some dims: all for None, none for []."""
    shape = self.array.shape
    dims = () if dim is not None and not dim else wrap_dims(dim, len(shape))
    return Out(reduced(shape, dims, keepdim), _truth_dtype(self), exact=_TRUTHS)


def spread(self: Tensor, dim: Dims = None, correction: Any = None, keepdim: bool = False) -> Out:
    """var or std: float and complex tensors; the result is real."""
    dtype = self.dtype
    if dtype.category < FLOAT:
        raise DTypeError(texts.not_inexact("", dtype))
    if isinstance(correction, complex):
        raise DTypeError(f"correction must be a real number, got {correction}")
    shape = self.array.shape
    return Out(reduced(shape, wrap_dims(dim, len(shape)), keepdim), dtype.to_real())


def both_extremes(self: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Out, Out]:
    """aminmax: (smallest, largest) over one dim or all."""
    dtype = ordered(self)
    shape = self.array.shape
    dims = wrap_dims(None if dim is None else (dim,), len(shape))
    _some("", shape, dims, dim is not None)
    left = reduced(shape, dims, keepdim)
    return Out(left, dtype), Out(left, dtype)


def vector_norm(self: Tensor, ord: Any = 2, dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Out | Result:
    """The norm over some dims, all for None and []: float and complex tensors; the result is real."""
    given = self.dtype
    if given.category < FLOAT:
        raise DTypeError(texts.not_inexact("linalg.vector_norm", given))
    if dtype is not None and (dtype.category != given.category or promote_types(given, dtype) is not dtype):
        kind = "complex" if given.is_complex else "real"
        raise DTypeError(f"linalg.vector_norm: dtype must be {kind} and hold all of {given.name}, got {dtype.name}")
    if isinstance(ord, complex):
        raise DTypeError(f"linalg.vector_norm: ord must be a real number, got {ord}")
    shape = self.array.shape
    dims = wrap_dims(dim, len(shape))
    if ord < 0 or ord == float("inf"):
        _some("linalg.vector_norm", shape, dims)
    out = Out(reduced(shape, dims, keepdim), (dtype or given).to_real())
    return out if dtype in (None, given) else Result(out, {"self": dtype})


# fmt: off
SHAPES: ShapeTable = {
    "sum.out": total,
    "prod.out": total,
    "sum.IntList_out": sum_dims,
    "prod.int_out": prod_dim,
    "mean.dtype_out": mean,
    "mean.out": mean_dims,
    "max.unary_out": extreme_all,
    "min.unary_out": extreme_all,
    "amax.out": extreme_dims,
    "amin.out": extreme_dims,
    "max.dim_max": extreme_dim,
    "min.dim_min": extreme_dim,
    "argmax.out": arg_extreme,
    "argmin.out": arg_extreme,
    "any.all_out": truth_all,
    "all.all_out": truth_all,
    "any.out": truth_dim,
    "all.out": truth_dim,
    "any.dims_out": truth_dims,
    "all.dims_out": truth_dims,
    "var.correction_out": spread,
    "std.correction_out": spread,
    "aminmax.out": both_extremes,
    "linalg_vector_norm.out": vector_norm,
}
# fmt: on
