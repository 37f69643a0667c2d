"""Reductions. A dim is an int or a list of ints; None or [] means all. The result is accumulated in the dtype of `out`.

Two-byte floats are accumulated in float32 and rounded once at the end. `total` keeps the error of float32 sums from growing with
their length.
"""

from __future__ import annotations

from typing import Any

from turnout_arrays.indexing import along, around
from turnout_arrays.numbers import NO_ORDER, NO_OUTPUT, PREPARED, TWO_BYTES, computed_dtype, store, store_by, store_single, widen
from turnout_aten.kernels.rows import COUNT, FREEDOM, SAME, Row, Steps
from turnout_aten.shapes.extents import NO_DIMS, degrees_of_freedom, dims_of, listed

Table = dict[str, Any]


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    return sums(xp) | extremes(xp) | truths(xp) | moments(xp) | norms(xp)


def axes(self: Any, dim: Any) -> Any:
    """A dim argument as the array module's `axis`."""
    if dim is None:
        return None
    if not self.shape:
        if any(d not in (0, -1) for d in listed(dim, 0)):
            raise IndexError(f"dim {dim} of a 0-dim array")
        return None
    if isinstance(dim, int):
        return dim
    return tuple(dim) if len(dim) else None


def _count(self: Any, dims: tuple[int, ...]) -> int:
    """The number of elements behind each result."""
    count = 1
    for d in dims:
        count *= self.shape[d]
    return count


def row_major(xp: Any, value: Any) -> Any:
    """A new result in row-major order; array modules keep the memory order of the input."""
    return value if len(value.shape) < 2 or value.flags.c_contiguous else xp.ascontiguousarray(value)


def _keep(xp: Any, value: Any, self: Any, keepdim: bool) -> Any:
    """The result of a reduction over all dims, with every dim kept as length 1."""
    return value.reshape((1,) * len(self.shape)) if keepdim else value


# An array module adds the numbers of one line in pairs, but line after line in sequence: the sum of 10**6 rows of 0.1 is 1% off.
_STEPS = 64


def total(xp: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The sum over an axis, several, or all (None). The relative error of float32 sums is near 1e-7 whatever their length."""
    dtype = x.dtype
    if x.size <= _STEPS or dtype.char not in "fF" or (axis is None and x.flags.c_contiguous):
        return xp.add.reduce(x, axis, None, None, keepdims)
    dims = dims_of(x.ndim, axis)
    if _count(x, dims) <= _STEPS or _sequence(x, dims) <= _STEPS:
        return xp.add.reduce(x, axis, None, None, keepdims)
    for dim in reversed(dims):
        x = _line(xp, x, dim)
    return x if keepdims else xp.squeeze(x, dims)


def _sequence(x: Any, dims: Any) -> int:
    """How many sums an array module adds one after the other: of all reduced dims but the innermost ones."""
    places = [d for d in range(x.ndim) if x.shape[d] > 1]
    places.sort(key=lambda d: -abs(x.strides[d]))
    inner, reach = set(), None
    while places and places[-1] in dims:
        d = places.pop()
        if reach is not None and x.strides[d] != reach:  # it does not continue the line
            break
        inner.add(d)
        reach = x.strides[d] * x.shape[d]
    count = 1
    for d in dims:
        count *= 1 if d in inner else x.shape[d]
    return count


def _line(xp: Any, x: Any, dim: int) -> Any:
    """The sum over one dim, which is kept, as sums of `_STEPS` numbers that are added in double precision."""
    length = x.shape[dim]
    if length <= _STEPS or _sequence(x, [dim]) <= _STEPS:
        return xp.add.reduce(x, dim, None, None, True)
    pieces = length // _STEPS
    whole = (slice(None),) * dim + (slice(0, pieces * _STEPS),)
    cut = x[whole].reshape((*x.shape[:dim], pieces, _STEPS, *x.shape[dim + 1 :]))
    wide = xp.dtype("c16" if x.dtype.kind == "c" else "f8")
    made = xp.add.reduce(xp.add.reduce(cut, dim + 1), dim, wide, None, True)
    if pieces * _STEPS < length:
        made = made + xp.add.reduce(x[(slice(None),) * dim + (slice(pieces * _STEPS, None),)], dim, None, None, True)
    return made.astype(x.dtype)


def _kept(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """A shape with length 1 at a dim."""
    dim %= len(shape)
    return (*shape[:dim], 1, *shape[dim + 1 :])


def sums(xp: Any) -> Table:
    """Sums, products, means. Without `out`, only calls without a dtype conversion are handled."""

    def reduced(ufunc: Any, self: Any, axis: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
        if out is None and dtype is not None:
            raise NotImplementedError(NO_OUTPUT)
        if (self if out is None else out).dtype.char in TWO_BYTES:
            wide = ufunc.reduce(self, axis, xp.float32, None, keepdim)
            return store(xp, out, wide) if out is not None else row_major(xp, wide.astype(self.dtype))
        if out is None:
            return row_major(xp, ufunc.reduce(self, axis, None, None, keepdim))
        return ufunc.reduce(self, axis, out.dtype, out, keepdim)

    def added(self: Any, axis: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
        """`reduced` for sums, of which those of floats are made by `total`."""
        if out is None and dtype is None and self.size <= _STEPS and self.dtype.char in "fd":
            return row_major(xp, xp.add.reduce(self, axis, None, None, keepdim))
        kind = self.dtype if out is None else out.dtype
        if (out is None and dtype is not None) or kind.kind not in "fcV" or self.dtype.kind not in "fcV":
            return reduced(xp.add, self, axis, keepdim, dtype, out)
        if out is None:
            return row_major(xp, store(xp, None, total(xp, widen(xp, self), axis, keepdim), self.dtype))
        x = widen(xp, self)
        wanted = computed_dtype(xp, out.dtype)
        return store(xp, out, total(xp, x if x.dtype == wanted else x.astype(wanted), axis, keepdim))

    def sum_all(self: Any, dtype: Any = None, out: Any = None) -> Any:
        if out is None and dtype is None and self.size <= _STEPS and self.dtype.char in "fd":
            return xp.add.reduce(self, None, None, xp.empty((), self.dtype))  # a number would have to become an array
        return added(self, None, False, dtype, out)

    def sum_dims(self: Any, dim: Any, keepdim: bool = False, dtype: Any = None, out: Any = None) -> Any:
        if (
            out is None
            and dtype is None
            and self.size <= _STEPS
            and self.dtype.char in "fd"
            and self.ndim < 3
            and self.ndim
            and dim
        ):
            return xp.add.reduce(self, dim, None, None, keepdim)  # in row-major order, as it has one line at most
        return added(self, axes(self, dim), keepdim, dtype, out)

    def mean_dims(self: Any, dim: Any, keepdim: bool = False, dtype: Any = None, out: Any = None) -> Any:
        if out is None and (dtype is not None or self.dtype.kind not in "fc" or self.dtype.char in TWO_BYTES):
            raise NotImplementedError(NO_OUTPUT)
        axis = axes(self, dim)
        wanted = self.dtype if out is None else computed_dtype(xp, out.dtype)
        summed = total(xp, self if self.dtype == wanted else self.astype(wanted), axis, keepdim)
        value = xp.true_divide(summed, _count(self, dims_of(self.ndim, axis)))
        return store(xp, out, value) if out is not None else row_major(xp, value)

    def mean_all(self: Any, dtype: Any = None, out: Any = None) -> Any:
        return mean_dims(self, None, False, dtype, out)

    def prod_all(self: Any, dtype: Any = None, out: Any = None) -> Any:
        return reduced(xp.multiply, self, None, False, dtype, out)

    def prod_dim(self: Any, dim: int, keepdim: bool = False, dtype: Any = None, out: Any = None) -> Any:
        return reduced(xp.multiply, self, axes(self, dim), keepdim, dtype, out)

    summed = ((xp.add, "self"),)
    mean = (*summed, (xp.true_divide, 0, COUNT))
    # fmt: off
    return {
        "sum.out":         Row(sum_all, SAME, program=Steps(summed, _STEPS)),
        "sum.IntList_out": Row(sum_dims, SAME, program=Steps(summed, _STEPS)),
        "mean.dtype_out":  Row(mean_all, SAME, program=Steps(mean, _STEPS)),
        "mean.out":        Row(mean_dims, SAME, program=Steps(mean, _STEPS)),
        "prod.out":        Row(prod_all, SAME, program=Steps(((xp.multiply, "self"),))),
        "prod.int_out":    Row(prod_dim, SAME, program=Steps(((xp.multiply, "self"),))),
    }
    # fmt: on


def extremes(xp: Any) -> Table:
    """The largest and smallest elements, and their indices. NaN counts as both; among equal elements the first one wins."""

    def real(self: Any) -> None:
        if self.dtype.kind == "c":  # array modules order complex numbers; the shape function refuses them
            raise NotImplementedError(NO_ORDER)

    def extreme(ufunc: Any) -> Any:
        def kernel(self: Any, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
            real(self)
            value = ufunc.reduce(self, axes(self, dim), None, out, keepdim)
            return value if out is not None else row_major(xp, value)

        return kernel

    amax, amin = extreme(xp.maximum), extreme(xp.minimum)

    def max_all(self: Any, out: Any = None) -> Any:
        real(self)
        return xp.maximum.reduce(self, None, None, out)

    def min_all(self: Any, out: Any = None) -> Any:
        real(self)
        return xp.minimum.reduce(self, None, None, out)

    def where(name: str) -> Any:
        def kernel(self: Any, dim: Any, keepdim: bool, out: Any) -> Any:
            if not self.shape:
                return store(xp, out, xp.zeros((), out.dtype))
            if dim is None:
                return store(xp, out, _keep(xp, xp.asarray(getattr(self, name)()), self, keepdim))
            return store(xp, out, getattr(self, name)(dim, None, keepdims=keepdim))

        return kernel

    def both(name: str) -> Any:  # the name of a method, which has two frames less than the function
        def kernel(self: Any, dim: int, keepdim: bool, values: Any, indices: Any) -> None:
            if not self.shape:
                return store_single(xp, self, values, indices)
            at = getattr(self, name)(dim, None, keepdims=True)
            found = self[along(xp, at.shape, dim % self.ndim, at)]
            store(xp, values, found.reshape(values.shape))
            store(xp, indices, at.reshape(indices.shape))

        return kernel

    def prepared(name: str) -> Any:
        """What prepares plans of few real numbers: the indices go into their output at once, what is around them is kept."""
        find = getattr(xp.ndarray, name)

        def prepares(outs: Any, self: Any, dim: int, keepdim: bool) -> Any:
            kept = outs[0].shape if keepdim or not self.shape else _kept(self.shape, dim)
            places = around(xp, kept, dim, self) if self.shape else None
            if places is None or not 0 < self.size <= PREPARED or self.dtype.kind not in "fiu":
                return None
            before, behind = places
            shape, keepdim = outs[0].shape, bool(keepdim)

            def picked(self: Any, dim: int, keep: bool, values: Any, indices: Any) -> None:
                find(self, dim, indices, keepdims=keepdim)
                values[...] = self[(*before, indices.reshape(kept), *behind)].reshape(shape)

            return picked

        return prepares

    def aminmax(self: Any, dim: Any, keepdim: bool, smallest: Any, largest: Any) -> None:
        amin(self, dim, keepdim, smallest)
        amax(self, dim, keepdim, largest)

    # fmt: off
    return {
        "aminmax.out":   Row(aminmax),
        "amax.out":      Row(amax, SAME, program=Steps(((xp.maximum, "self"),))),
        "amin.out":      Row(amin, SAME, program=Steps(((xp.minimum, "self"),))),
        "max.unary_out": Row(max_all, SAME, program=Steps(((xp.maximum, "self"),))),
        "min.unary_out": Row(min_all, SAME, program=Steps(((xp.minimum, "self"),))),
        "max.dim_max":   Row(both("argmax"), quiet=True, prepares=prepared("argmax")),
        "min.dim_min":   Row(both("argmin"), quiet=True, prepares=prepared("argmin")),
        "argmax.out":    Row(where("argmax"), quiet=True),
        "argmin.out":    Row(where("argmin"), quiet=True),
    }
    # fmt: on


def truths(xp: Any) -> Table:
    """`any` and `all`. Without elements they are False and True."""

    def over_all(ufunc: Any) -> Any:
        def kernel(self: Any, out: Any) -> Any:
            truths = self if self.dtype.kind == "b" else self != 0
            return ufunc.reduce(truths, None, None, out) if out.dtype.kind == "b" else store(xp, out, ufunc.reduce(truths, None))

        return kernel

    def over_dims(ufunc: Any) -> Any:
        def kernel(self: Any, dim: Any, keepdim: bool, out: Any) -> Any:
            if dim in NO_DIMS:
                return store(xp, out, self != 0)
            return store(xp, out, ufunc.reduce(self != 0, axes(self, dim), keepdims=keepdim))

        return kernel

    def prepared(ufunc: Any) -> Any:
        reduce = ufunc.reduce
        return lambda outs, self: (lambda self, out: reduce(self, None, None, out)) if self.dtype.kind == "b" else None

    # fmt: off
    return {
        "any.all_out":  Row(over_all(xp.logical_or), quiet=True, prepares=prepared(xp.logical_or)),
        "any.out":      Row(over_dims(xp.logical_or), quiet=True),
        "any.dims_out": Row(over_dims(xp.logical_or), quiet=True),
        "all.all_out":  Row(over_all(xp.logical_and), quiet=True, prepares=prepared(xp.logical_and)),
        "all.out":      Row(over_dims(xp.logical_and), quiet=True),
        "all.dims_out": Row(over_dims(xp.logical_and), quiet=True),
    }
    # fmt: on


def moments(xp: Any) -> Table:
    """Variance and standard deviation, in two passes."""

    def variance(self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
        x = widen(xp, self)
        axis = axes(x, dim)
        count = _count(x, dims_of(x.ndim, axis))
        mean = xp.true_divide(total(xp, x, axis, True), count)
        distance = x - mean
        squares = (distance * xp.conj(distance)).real if x.dtype.kind == "c" else distance * distance
        return xp.true_divide(total(xp, squares, axis, keepdim), max(degrees_of_freedom(count, correction), 0))

    def var(self: Any, dim: Any, correction: Any, keepdim: bool, out: Any) -> Any:
        return store(xp, out, variance(self, dim, correction, keepdim))

    def std(self: Any, dim: Any, correction: Any, keepdim: bool, out: Any) -> Any:
        return store_by(xp, out, xp.sqrt, (variance(self, dim, correction, keepdim),))

    distance = (xp.add, "self"), (xp.true_divide, 0, COUNT), (xp.subtract, "self", 1)
    squared = (*distance, (xp.multiply, 2, 2), (xp.add, 3), (xp.true_divide, 4, FREEDOM))
    return {
        "var.correction_out": Row(var, quiet=True, program=Steps(squared, _STEPS)),
        "std.correction_out": Row(std, quiet=True, program=Steps((*squared, (xp.sqrt, 5)), _STEPS)),
    }


def norms(xp: Any) -> Table:
    """(sum of |x| ** ord) ** (1 / ord). inf and -inf give the largest and smallest |x|, 0 counts the nonzero elements."""

    def vector_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
        x = widen(xp, self)
        axis = axes(x, dim)
        if ord == 2:
            squares = x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x
            return store(xp, out, xp.sqrt(total(xp, squares, axis, keepdim)))
        size = xp.abs(x)
        if ord == 0:
            return store(xp, out, xp.add.reduce(size != 0, axis, keepdims=keepdim))
        if ord in (float("inf"), float("-inf")):
            extreme = xp.maximum if ord > 0 else xp.minimum
            return store(xp, out, extreme.reduce(size, axis, keepdims=keepdim))
        if ord == 1:
            return store(xp, out, total(xp, size, axis, keepdim))
        return store(xp, out, xp.power(total(xp, xp.power(size, ord), axis, keepdim), 1 / ord))

    root = (xp.multiply, "self", "self"), (xp.add, 0), (xp.sqrt, 1)
    return {"linalg_vector_norm.out": Row(vector_norm, program=Steps(root, _STEPS))}
