"""Rows of operators along dims: softmax, normalisation, cumulative sums and extremes, the largest elements.

The kernels serve contiguous float32 and float64. Other layouts and two-byte floats come as contiguous copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, wraps
from math import prod
from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Compiled, Row, Sizes
from turnout_aten.shapes.normalisation import row_length
from turnout_kernels import _native
from turnout_kernels.few import compiled
from turnout_kernels.layouts import any_floats
from turnout_kernels.native import FEW, GRAIN, NUMBER_OF, code, plain, run, threads, whole

# ---- softmax

# Columns from which on a dim that is not the last one is gone along as it lies.
_WIDE = 8


def softmax_of(*, logarithm: bool) -> Row:
    """softmax, or its logarithm."""

    def kernel(self: Any, dim: int, half_to_float: bool, out: Any = None) -> Any:
        if half_to_float or not self.size or not plain(self):
            return NotImplemented
        made = np.empty(self.shape, self.dtype) if out is None else out
        if not plain(self, made):
            return NotImplemented
        _along_columns((made,), (self,), dim, logarithm=logarithm)
        return made

    kernel.__name__ = kernel.__qualname__ = "log_softmax" if logarithm else "softmax"
    return Row(
        _along_dim(any_floats(kernel), arrays=1, dim=1),
        sizes=Sizes(over=partial(_native.row, "softmax", logarithm, GRAIN, 1, 0, False, np.empty_like, threads)),
    )


def softmax_backward_of(*, logarithm: bool) -> Row:
    """The gradient of softmax, or of its logarithm."""

    def kernel(grad_output: Any, output: Any, dim: int, input_dtype: Any, out: Any = None) -> Any:
        if not output.size or grad_output.shape != output.shape or (out is None and input_dtype.name != output.dtype.name):
            return NotImplemented
        if not plain(output, grad_output):
            return NotImplemented
        made = np.empty(output.shape, output.dtype) if out is None else out
        if not plain(output, made):
            return NotImplemented
        _along_columns((made,), (grad_output, output), dim, logarithm=logarithm, ending="_backward")
        return made

    kernel.__name__ = kernel.__qualname__ = "log_softmax_backward" if logarithm else "softmax_backward"
    return Row(_along_dim(any_floats(kernel), arrays=2, dim=2))


def _along_columns(outputs: Any, inputs: Any, dim: int, *, logarithm: bool, ending: str = "") -> None:
    """Call the kernel of softmax for the last dim, or that for another one."""
    shape = inputs[0].shape
    length, inner = shape[dim], prod(shape[dim % len(shape) + 1 :])
    if inner == 1:
        run(f"softmax{ending}", outputs, inputs, (code(inputs[0]), length, int(logarithm)))
    else:
        run(f"softmax_columns{ending}", outputs, inputs, (code(inputs[0]), length, inner, int(logarithm)))


def _along_dim(kernel: Any, *, arrays: int, dim: int) -> Any:
    """A kernel of contiguous arrays along a dim: `arrays` inputs, the output and a dim at a place among the arguments. It goes
    along the last dim instead where that is how the elements lie, or where there are few columns."""

    @wraps(kernel)
    def moved(*args: Any) -> Any:
        self, at = args[0], args[dim]
        ndim = self.ndim
        if not -ndim <= at < ndim:
            return NotImplemented
        at %= ndim
        in_a_row = self.strides[at] == self.itemsize
        if at == ndim - 1 or (not in_a_row and prod(self.shape[at + 1 :]) >= _WIDE):
            return kernel(*args)
        if args[-1].__class__ is not np.ndarray:
            raise NotImplementedError("a dim whose elements lie in a row needs an output")
        given = [a.swapaxes(at, -1) if i < arrays else a for i, a in enumerate(args)]
        given[dim], given[-1] = -1, args[-1].swapaxes(at, -1)
        return NotImplemented if kernel(*given) is NotImplemented else args[-1]

    return moved


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


_layer_norm = partial(_native.row, "layer_norm", False, GRAIN, 3, 0, False, np.empty_like, threads)


def native_layer_norm_backward(
    grad_out: Any, input: Any, normalized_shape: Sequence[int], mean: Any, rstd: Any, weight: Any, bias: Any,
    output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    length = row_length(input, normalized_shape, weight)
    if not length or grad_out.shape != input.shape or not mean.size == rstd.size == input.size // length:
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
    length = row_length(input, normalized_shape, weight)
    if not length or not plain(input, *_parameters(weight)):
        return NotImplemented
    made = np.empty(input.shape, input.dtype)
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


def _prepared_groups(outs: Any, input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float) -> Any:
    """For few floats of one dtype, what the C code is told is always the same."""
    given = [input, *_parameters(weight, bias)]
    if input.dtype.char not in "fd" or not 0 < input.size <= GRAIN or any(out.dtype.name != input.dtype.name for out in outs):
        return None
    if any(a.dtype is not input.dtype or not a.flags.c_contiguous for a in given):
        return None
    ints = (code(input), C // group, HxW, group, int(weight is not None), int(bias is not None))
    floats, number, kernel = (float(eps),), NUMBER_OF["group_norm"], any_floats(native_group_norm, outputs=3)

    def normalised(input: Any, weight: Any, bias: Any, a: Any, b: Any, c: Any, d: Any, e: Any, o: Any, p: Any, q: Any) -> Any:
        scale, shift = input if weight is None else weight, input if bias is None else bias
        if not (input.flags.aligned and scale.flags.aligned and shift.flags.aligned):
            return kernel(input, weight, bias, a, b, c, d, e, o, p, q)
        return _native.run(number, (o, p, q), (input, scale, shift), ints, floats, 1, 1)

    return normalised


def native_group_norm_backward(
    grad_out: Any,
    input: Any,
    mean: Any,
    rstd: Any,
    weight: Any,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> Any:
    if not input.size or input.size != N * C * HxW or grad_out.shape != input.shape or not mean.size == rstd.size == N * group:
        return NotImplemented
    if not plain(input, grad_out, mean, rstd, *_parameters(weight)) or (weight is not None and weight.size != C):
        return NotImplemented
    made = np.empty(input.shape if output_mask[0] else (1,), input.dtype)
    along, sums = np.empty((N, C), input.dtype), np.empty((N, C), input.dtype)
    ints = (code(input), C // group, HxW, group, int(weight is not None), int(bool(output_mask[0])))
    run("group_norm_backward", (made, along, sums), (grad_out, input, mean, rstd, input if weight is None else weight), ints)
    totals = [t.sum(0) if wanted else None for t, wanted in zip((along, sums), output_mask[1:], strict=True)]
    return made if output_mask[0] else None, *totals


# ---- cumulative sums


def cumulative(name: str, *, product: bool, of_few: Compiled | None = None) -> Row:
    """cumsum or cumprod."""

    def accumulated(self: Any, dim: int, out: Any = None) -> Any:
        if not _along(self, dim):
            return NotImplemented
        made = np.empty(self.shape, self.dtype) if out is None else out
        if not plain(self, made):
            return NotImplemented
        ints = (code(self), self.shape[dim], prod(self.shape[dim % self.ndim + 1 :]), int(product))
        run("cumulate", (made,), (self,), ints)
        return made

    of_any_floats = any_floats(accumulated)

    def kernel(self: Any, dim: int, dtype: Any = None, out: Any = None) -> Any:
        if dtype is not None and dtype.name != self.dtype.name:
            return NotImplemented
        return of_any_floats(self, dim) if out is None else of_any_floats(self, dim, out)

    kernel.__name__ = kernel.__qualname__ = name
    return Row(kernel, sizes=Sizes(FEW), program=of_few)


def _along(self: Any, dim: int) -> bool:
    """Whether an array with more than a few elements has that dim."""
    return bool(self.size > FEW and self.ndim and -self.ndim <= dim < self.ndim)


def cumulative_extreme(name: str, sign: int) -> Row:
    """cummax or cummin."""

    def kernel(self: Any, dim: int, values: Any, indices: Any) -> Any:
        if not _along(self, dim) or not plain(self, values) or indices.dtype != np.int64 or not whole(indices):
            return NotImplemented
        ints = (code(self), self.shape[dim], prod(self.shape[dim % self.ndim + 1 :]), sign)
        run("cumulative_extreme", (values, indices), (self,), ints)
        return None

    kernel.__name__ = kernel.__qualname__ = name
    return Row(any_floats(kernel, outputs=2), sizes=Sizes(FEW))


# ---- the largest or smallest elements

# As in native/rows.h.
_MOST_OF_TOPK = 64


def topk(self: Any, k: int, dim: int, largest: bool, sorted: bool, values: Any, indices: Any) -> Any:
    if not _along(self, dim) or dim % self.ndim != self.ndim - 1 or not 0 < k <= min(_MOST_OF_TOPK, self.shape[-1]):
        return NotImplemented
    if not plain(self, values) or indices.dtype != np.int64 or not whole(indices):
        return NotImplemented
    run("topk", (values, indices), (self,), (code(self), self.shape[-1], k, int(bool(largest))))
    return None


# fmt: off
KERNELS: dict[str, Any] = {
    "_softmax.out":                    softmax_of(logarithm=False),
    "_log_softmax.out":                softmax_of(logarithm=True),
    "_softmax_backward_data.out":      softmax_backward_of(logarithm=False),
    "_log_softmax_backward_data.out":  softmax_backward_of(logarithm=True),
    "native_layer_norm.out":           Row(any_floats(native_layer_norm, outputs=3), quiet=True, sizes=Sizes(over=_layer_norm)),
    "native_layer_norm_backward":      any_floats(native_layer_norm_backward, outputs=0),
    "native_group_norm.out":           Row(any_floats(native_group_norm, outputs=3), quiet=True, prepares=_prepared_groups),
    "native_group_norm_backward":      any_floats(native_group_norm_backward, outputs=0),
    "rms_norm":                        any_floats(rms_norm, outputs=0),
    "cumsum.out":                      cumulative("cumsum", product=False, of_few=compiled("add up")),
    "cumprod.out":                     cumulative("cumprod", product=True),
    "cummax.out":                      cumulative_extreme("cummax", 1),
    "cummin.out":                      cumulative_extreme("cummin", -1),
    "topk.values":                     Row(
        any_floats(topk, outputs=2), sizes=Sizes(FEW), quiet=True, program=compiled("order first"),
    ),
}
# fmt: on
