"""Rows of operators along dims: softmax, normalisation, reductions, cumulative sums. They serve contiguous float32 and float64.

A reduction is served where it takes the last dims, so that what it reduces is one run of memory after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from turnout_aten.kernels.wrapping import Row
from turnout_kernels.native import GRAIN, code, plain, run

# Elements that are summed by one part, where all elements are.
_RUN = 1 << 14
# One NumPy function is as fast up to this many elements.
_FEW = 1 << 12
_SUM, _LARGEST, _SMALLEST, _SQUARES, _NORM, _LOG_OF_POWERS, _DIFFERENCES = range(7)


_NAMES = {"f": "float32", "d": "float64"}

# ---- softmax


def _last(array: Any, dim: int) -> bool:
    """Whether `dim` is the last one, of a contiguous array that has elements."""
    return bool(array.size and array.ndim and dim in (-1, array.ndim - 1) and plain(array))


def softmax_of(*, logarithm: bool) -> Row:
    """softmax, or its logarithm."""

    def kernel(self: Any, dim: int, half_to_float: bool, out: Any = None) -> Any:
        if half_to_float or not _last(self, dim) or (out is not None and not plain(self, out)):
            return NotImplemented
        made = np.empty(self.shape, self.dtype) if out is None else out
        run("softmax", (made,), (self,), (code(self), self.shape[-1], int(logarithm)))
        return made

    kernel.__name__ = kernel.__qualname__ = "log_softmax" if logarithm else "softmax"
    return Row(kernel)


def softmax_backward_of(*, logarithm: bool) -> Row:
    """The gradient of softmax, or of its logarithm."""

    def kernel(grad_output: Any, output: Any, dim: int, input_dtype: Any, out: Any = None) -> Any:
        if not _last(output, dim) or grad_output.shape != output.shape or not plain(output, grad_output):
            return NotImplemented
        if out is None and input_dtype.name != _NAMES[output.dtype.char]:
            return NotImplemented
        made = np.empty(output.shape, output.dtype) if out is None else out
        if out is not None and not plain(output, out):
            return NotImplemented
        run("softmax_backward", (made,), (grad_output, output), (code(output), output.shape[-1], int(logarithm)))
        return made

    kernel.__name__ = kernel.__qualname__ = "log_softmax_backward" if logarithm else "softmax_backward"
    return Row(kernel)


# ---- normalisation


def _parameters(*arrays: Any) -> list[Any]:
    return [a for a in arrays if a is not None]


def native_layer_norm(
    input: Any, normalized_shape: Sequence[int], weight: Any, bias: Any, eps: float, out: Any, mean: Any, rstd: Any
) -> Any:
    given = _parameters(weight, bias)
    if not out.size or not plain(input, *given, out, mean, rstd) or (weight is None and bias is not None):
        return NotImplemented
    length = prod(normalized_shape)
    scale, shift = (input if p is None else p for p in (weight, bias))
    ints = (code(out), length, int(weight is not None), int(bias is not None), 0)
    run("layer_norm", (out, mean, rstd), (input, scale, shift), ints, (float(eps),))
    return None


def native_layer_norm_backward(
    grad_out: Any, input: Any, normalized_shape: Sequence[int], mean: Any, rstd: Any, weight: Any, bias: Any,
    output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    length = prod(normalized_shape)
    fits = (
        input.size
        and grad_out.shape == input.shape
        and input.shape[input.ndim - len(normalized_shape) :] == tuple(normalized_shape)
    )
    rows = input.size // length if fits else 0
    if not fits or mean.size != rows or rstd.size != rows or (weight is not None and weight.size != length):
        return NotImplemented
    if not plain(input, grad_out, mean, rstd, *_parameters(weight, bias)):
        return NotImplemented
    parts = max(1, min(-(-input.size // GRAIN), 16))
    wants = [bool(output_mask[0]), bool(output_mask[1]) and weight is not None, bool(output_mask[2]) and bias is not None]
    made = np.empty(input.shape if wants[0] else (1,), input.dtype)
    sums = np.empty((parts, 2, length) if wants[1] or wants[2] else (1,), input.dtype)
    ints = (code(input), length, int(weight is not None), int(wants[0]), int(wants[1] or wants[2]))
    run(
        "layer_norm_backward", (made, sums), (grad_out, input, mean, rstd, input if weight is None else weight), ints, parts=parts
    )
    totals = sums.sum(0)
    found = [made if wants[0] else None, None, None]
    for at, parameter in ((1, weight), (2, bias)):
        if wants[at]:
            found[at] = totals[at - 1].reshape(parameter.shape).copy()
    return tuple(found)


def rms_norm(input: Any, normalized_shape: Sequence[int], weight: Any, eps: Any) -> Any:
    shape = tuple(normalized_shape)
    fits = input.size and shape and input.shape[-len(shape) :] == shape and (weight is None or weight.shape == shape)
    if not fits or not plain(input, *_parameters(weight)):
        return NotImplemented
    length, made = prod(shape), np.empty(input.shape, input.dtype)
    statistics = np.empty((2, input.size // length), input.dtype)
    eps = float(np.finfo(input.dtype).eps) if eps is None else float(eps)
    ints = (code(input), length, int(weight is not None), 0, 1)
    run("layer_norm", (made, statistics[0], statistics[1]), (input, input if weight is None else weight, input), ints, (eps,))
    return made


def native_group_norm(
    input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float, out0: Any, out1: Any, out2: Any
) -> Any:
    if not out0.size or not plain(input, *_parameters(weight, bias), out0, out1, out2):
        return NotImplemented
    scale, shift = (input if p is None else p for p in (weight, bias))
    ints = (code(out0), C // group, HxW, group, int(weight is not None), int(bias is not None))
    run("group_norm", (out0, out1, out2), (input, scale, shift), ints, (float(eps),))
    return None


# ---- reductions


def _run_of(array: Any, dim: Any) -> int:
    """How many elements are reduced to one where `dim` (an int, several, or None or none for all) are the last dims; else 0."""
    if not array.size or not plain(array):
        return 0
    dims = range(array.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim) or range(array.ndim)
    if any(not -array.ndim <= d < array.ndim for d in dims):
        return 0
    places = sorted({d % array.ndim for d in dims})
    first = array.ndim - len(places)
    return prod(array.shape[first:]) if places == list(range(first, array.ndim)) else 0


def reduce(what: int, inputs: tuple[Any, ...], length: int, out: Any, factor: float = 1.0) -> Any:
    """Reduce each run of `length` elements of the first input into an element of `out`."""
    array = inputs[0]
    if length > 2 * _RUN and array.size == length:
        partial = np.empty(-(-length // _RUN), array.dtype)
        inner = _SQUARES if what == _NORM else what
        run("reduce_rows", (partial,), inputs, (code(array), inner, _RUN), (1.0,))
        if what == _NORM:
            total = float(np.sum(partial, dtype=np.float64))
            out.fill(total**0.5)
            return out
        what, inputs, length = (_SUM if what in (_SQUARES, _DIFFERENCES) else what), (partial,), partial.size
    run("reduce_rows", (out,), inputs, (code(array), what, length), (factor,))
    return out


def _result(self: Any, dim: Any, keepdim: bool, out: Any, few: int = _FEW) -> tuple[int, Any]:
    """(elements of a run, the output), or (0, None) where the kernel does not serve the call: for up to `few` elements, too."""
    length = _run_of(self, dim) if self.size > few else 0
    if not length:
        return 0, None
    if out is None:
        dims = [dim] if isinstance(dim, int) else range(self.ndim) if dim is None or not len(dim) else dim
        reduced = {d % self.ndim for d in dims}
        shape = [1 if i in reduced else n for i, n in enumerate(self.shape) if keepdim or i not in reduced]
        out = np.empty(shape, self.dtype)
    return (length, out) if plain(self, out) else (0, None)


def over_dims(name: str, what: int, *, dtype: bool, mean: bool = False) -> Row:
    """A reduction over dims; `dtype` says whether the operator has that argument."""

    def reduced(self: Any, dim: Any, keepdim: bool, out: Any) -> Any:
        length, target = _result(self, dim, keepdim, out)
        return reduce(what, (self,), length, target, 1 / length if mean else 1.0) if length else NotImplemented

    def with_dtype(self: Any, dim: Any, keepdim: bool = False, dtype: Any = None, out: Any = None) -> Any:
        return NotImplemented if dtype is not None and dtype.name != self.dtype.name else reduced(self, dim, keepdim, out)

    def without(self: Any, dim: Any = (), keepdim: bool = False, out: Any = None) -> Any:
        return reduced(self, dim, keepdim, out)

    kernel = with_dtype if dtype else without
    kernel.__name__ = kernel.__qualname__ = name
    return Row(kernel, limit=_FEW)


def over_all(name: str, what: int, *, dtype: bool, mean: bool = False) -> Row:
    """A reduction of all elements."""

    def reduced(self: Any, out: Any) -> Any:
        length, target = _result(self, None, False, out)
        return reduce(what, (self,), length, target, 1 / length if mean else 1.0) if length else NotImplemented

    def with_dtype(self: Any, dtype: Any = None, out: Any = None) -> Any:
        return NotImplemented if dtype is not None and dtype.name != self.dtype.name else reduced(self, out)

    def without(self: Any, out: Any = None) -> Any:
        return reduced(self, out)

    kernel = with_dtype if dtype else without
    kernel.__name__ = kernel.__qualname__ = name
    return Row(kernel, limit=_FEW)


def linalg_vector_norm(self: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any, out: Any) -> Any:
    if ord != 2 or (dtype is not None and dtype.name != self.dtype.name):
        return NotImplemented
    length, target = _result(self, dim, keepdim, out)
    return reduce(_NORM, (self,), length, target) if length else NotImplemented


def logsumexp(self: Any, dim: Any, keepdim: bool) -> Any:
    length, target = _result(self, dim, keepdim, None, 0)
    return (
        reduce(_LOG_OF_POWERS, (self,), length, target) if 0 < length < self.size or length in range(1, _FEW) else NotImplemented
    )


def mse_loss(self: Any, target: Any, reduction: int, out: Any) -> Any:
    if not reduction or self.size <= _FEW or self.shape != target.shape or not plain(self, target, out):
        return NotImplemented
    return reduce(_DIFFERENCES, (self, target), self.size, out, 1 / self.size if reduction == 1 else 1.0)


# ---- cumulative sums


def cumsum(self: Any, dim: int, dtype: Any = None, out: Any = None) -> Any:
    if not self.size or not self.ndim or not -self.ndim <= dim < self.ndim:
        return NotImplemented
    if dtype is not None and dtype.name != self.dtype.name:
        return NotImplemented
    made = np.empty(self.shape, self.dtype) if out is None else out
    if not plain(self, made):
        return NotImplemented
    run("cumulate", (made,), (self,), (code(self), self.shape[dim], prod(self.shape[dim % self.ndim + 1 :])))
    return made


# fmt: off
KERNELS_BY_OPERATOR: dict[str, Any] = {
    "_softmax.out":                    softmax_of(logarithm=False),
    "_log_softmax.out":                softmax_of(logarithm=True),
    "_softmax_backward_data.out":      softmax_backward_of(logarithm=False),
    "_log_softmax_backward_data.out":  softmax_backward_of(logarithm=True),
    "native_layer_norm.out":           Row(native_layer_norm, quiet=True),
    "native_layer_norm_backward":      native_layer_norm_backward,
    "native_group_norm.out":           Row(native_group_norm, quiet=True),
    "rms_norm":                        rms_norm,
    "sum.IntList_out":                 over_dims("sum", _SUM, dtype=True),
    "sum.out":                         over_all("sum", _SUM, dtype=True),
    "mean.out":                        over_dims("mean", _SUM, dtype=True, mean=True),
    "mean.dtype_out":                  over_all("mean", _SUM, dtype=True, mean=True),
    "amax.out":                        over_dims("amax", _LARGEST, dtype=False),
    "amin.out":                        over_dims("amin", _SMALLEST, dtype=False),
    "max.unary_out":                   over_all("max", _LARGEST, dtype=False),
    "min.unary_out":                   over_all("min", _SMALLEST, dtype=False),
    "linalg_vector_norm.out":          Row(linalg_vector_norm, limit=_FEW),
    "logsumexp":                       logsumexp,
    "mse_loss.out":                    Row(mse_loss, limit=_FEW, quiet=True),
    "cumsum.out":                      cumsum,
}
# fmt: on
