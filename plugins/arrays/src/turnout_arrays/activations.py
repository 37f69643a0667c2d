"""Activation functions, and those backward passes that are separate operators."""

from __future__ import annotations

from typing import Any

from turnout_arrays.erf import erf_of
from turnout_arrays.numbers import number_as, store, store_by, widen
from turnout_arrays.pointwise import Table, row
from turnout_aten.kernels.rows import SAME, Row

# Up to this many elements, relu is the maximum with an array of zeros: NumPy vectorises the maximum of two arrays, but not of an
# array and a number, which takes twice the time. For more elements, the zeros would double the memory of relu.
_ZEROS_UP_TO = 1 << 20


def kernels(xp: Any) -> Table:
    """The rows of this module for an array module."""
    erf_function = erf_of(xp)
    byte, words = xp.dtype("int8"), {2: xp.dtype("int16"), 4: xp.dtype("int32"), 8: xp.dtype("int64")}

    def sigmoid(self: Any, out: Any = None) -> Any:
        wide = widen(xp, self)
        value = xp.exp(xp.negative(wide))
        value += 1
        return store_by(xp, out, xp.reciprocal, (value,), self.dtype)

    def relu(self: Any, out: Any = None) -> Any:
        if self.dtype.kind in "bc":
            raise TypeError("relu is for real numbers")
        if self.dtype.kind == "f" and self.size <= _ZEROS_UP_TO and self.flags.c_contiguous:
            return xp.maximum(self, xp.zeros(self.shape, self.dtype), out=out)
        return xp.maximum(self, 0, out=out)

    def erf(self: Any, out: Any) -> Any:
        return store(xp, out, erf_function(widen(xp, self)))

    def silu(self: Any, out: Any) -> Any:
        x = widen(xp, self)
        value = xp.exp(-x)
        value += 1
        return store_by(xp, out, xp.true_divide, (x, value))

    def mish(self: Any, out: Any) -> Any:
        x = widen(xp, self)
        return store(xp, out, x * xp.tanh(xp.logaddexp(x, xp.zeros((), x.dtype))))

    def softplus(self: Any, beta: Any, threshold: Any, out: Any) -> Any:
        x = widen(xp, self)
        scaled = x * beta
        # differs from torch: `softplus` with a large threshold is not infinite where the exponential is.
        curve = xp.maximum(scaled, 0) + xp.log1p(xp.exp(-xp.abs(scaled)))
        return store(xp, out, xp.where(scaled > threshold, x, curve / beta))

    def elu(self: Any, alpha: Any, scale: Any, input_scale: Any, out: Any) -> Any:
        x = widen(xp, self)
        return store(xp, out, xp.where(x > 0, x * scale, xp.expm1(x * input_scale) * (alpha * scale)))

    def glu(self: Any, dim: int, out: Any) -> Any:
        first, second = xp.split(widen(xp, self), 2, dim)
        return store(xp, out, first / (1 + xp.exp(-second)))

    def gelu(self: Any, approximate: str, out: Any) -> Any:
        x = widen(xp, self)
        value = xp.tanh(tanh_argument(x, x * x)) if approximate == "tanh" else erf_function(x * _SQRT_HALF)
        value += 1
        value *= 0.5
        return store_by(xp, out, xp.multiply, (value, x))

    def tanh_argument(x: Any, square: Any) -> Any:
        value = square * (_TANH_SCALE * _TANH_CUBE)
        value += _TANH_SCALE
        value *= x
        return value

    def gelu_backward(grad_output: Any, self: Any, approximate: str, out: Any) -> Any:
        x, grad = widen(xp, self), widen(xp, grad_output)
        if approximate == "tanh":
            square = x * x
            tanh = xp.tanh(tanh_argument(x, square))
            # ((1 + t) + x (1 - t) (1 + t) d) / 2, with d the derivative of the argument; x comes last, because it may be large.
            value = square
            value *= 3 * _TANH_SCALE * _TANH_CUBE
            value += _TANH_SCALE
            value *= 1 - tanh
            tanh += 1
            value *= tanh
            value *= x
            value += tanh
            value *= 0.5
            return store_by(xp, out, xp.multiply, (value, grad))
        density = x * x
        density *= -0.5
        density = xp.exp(density)
        density *= _DENSITY
        density *= x
        value = erf_function(x * _SQRT_HALF)
        value += 1
        value *= 0.5
        value += density
        return store_by(xp, out, xp.multiply, (value, grad))

    def threshold_backward(grad_output: Any, self: Any, threshold: Any, out: Any = None) -> Any:
        bits = words.get(grad_output.dtype.itemsize)
        if bits is None or grad_output.dtype.kind not in "fV" or self.shape != grad_output.shape:
            return store(xp, out, xp.where(self <= threshold, xp.zeros((), grad_output.dtype), grad_output))
        # Masks all bits or none: 6 us for 16,384 elements. `where` takes 18 us because it branches at every element.
        kept = (self <= threshold).view(byte)
        kept -= 1
        kept = kept.astype(bits)
        kept &= grad_output.view(bits)
        return store(xp, out, kept.view(grad_output.dtype))

    def chained(slope: Any, factor: Any, grad_output: Any, out: Any, dtype: Any) -> Any:
        """conj(slope * factor) * grad_output, in the memory of `slope`."""
        if factor is not None:
            slope *= factor
        if slope.dtype.kind == "c":
            slope = xp.conj(slope)
        return store_by(xp, out, xp.multiply, (slope, widen(xp, grad_output)), dtype)

    def sigmoid_backward(grad_output: Any, output: Any, out: Any = None) -> Any:
        y = widen(xp, output)
        return chained(1 - y, y, grad_output, out, output.dtype)

    def tanh_backward(grad_output: Any, output: Any, out: Any = None) -> Any:
        y = widen(xp, output)
        return chained(1 - y * y, None, grad_output, out, output.dtype)

    def silu_backward(grad_output: Any, self: Any, out: Any) -> Any:
        """s (1 + x (1 - s)), with the sigmoid s."""
        # differs from torch: `silu_backward` of complex tensors is conjugated, as every gradient is, also where no graph is made.
        x = widen(xp, self)
        gate = xp.exp(-x)
        gate += 1
        gate = xp.reciprocal(gate)
        slope = 1 - gate
        slope *= x
        slope += 1
        return chained(slope, gate, grad_output, out, out.dtype)

    # fmt: off
    return piecewise(xp) | {
        "sigmoid.out":                   row(sigmoid, SAME, refuses="biu"),
        "relu.out":                      row(relu, SAME, steps=((xp.maximum, "self", 0.0),)),
        "erf.out":                       row(erf),
        "silu.out":                      row(silu, quiet=True),
        "mish.out":                      row(mish),
        "softplus.out":                  row(softplus),
        "elu.out":                       row(elu),
        "glu.out":                       Row(glu),
        "gelu.out":                      row(gelu),
        "gelu_backward.grad_input":      row(gelu_backward),
        "silu_backward.grad_input":      row(silu_backward),
        "threshold_backward.grad_input": row(threshold_backward, SAME),
        "sigmoid_backward.grad_input":   row(sigmoid_backward, SAME),
        "tanh_backward.grad_input":      row(tanh_backward, SAME),
    }
    # fmt: on


def piecewise(xp: Any) -> Table:
    """Piecewise linear activation functions."""

    def leaky_relu(self: Any, negative_slope: Any, out: Any) -> Any:
        x = widen(xp, self)
        return store(xp, out, xp.where(x > 0, x, x * negative_slope))

    def hardtanh(self: Any, min_val: Any, max_val: Any, out: Any) -> Any:
        low, high = number_as(xp, min_val, self.dtype), number_as(xp, max_val, self.dtype)
        return store(xp, out, xp.minimum(xp.maximum(self, low), high))

    def hardsigmoid(self: Any, out: Any) -> Any:
        return store(xp, out, _gate(widen(xp, self)) / 6)

    def hardswish(self: Any, out: Any) -> Any:
        x = widen(xp, self)
        value = _gate(x)
        value *= x
        return store_by(xp, out, xp.true_divide, (value, 6))

    def _gate(x: Any) -> Any:
        return xp.clip(x + 3, 0, 6)

    def hardshrink(self: Any, lambd: Any, out: Any) -> Any:
        limit = number_as(xp, lambd, self.dtype)
        return store(xp, out, xp.where((self >= -limit) & (self <= limit), xp.zeros((), self.dtype), self))

    def softshrink(self: Any, lambd: Any, out: Any) -> Any:
        x = widen(xp, self)
        inside = xp.where(xp.isnan(x), x, xp.zeros((), x.dtype))
        return store(xp, out, xp.where(x > lambd, x - lambd, xp.where(x < -lambd, x + lambd, inside)))

    def threshold(self: Any, threshold: Any, value: Any, out: Any) -> Any:
        return store(xp, out, xp.where(self <= threshold, number_as(xp, value, self.dtype), self))

    # fmt: off
    return {
        "leaky_relu.out":  row(leaky_relu, quiet=True),
        "hardtanh.out":    row(hardtanh),
        "hardsigmoid.out": row(hardsigmoid),
        "hardswish.out":   row(hardswish),
        "hardshrink.out":  row(hardshrink),
        "softshrink.out":  row(softshrink),
        "threshold.out":   row(threshold),
    }
    # fmt: on


_SQRT_HALF = 0.7071067811865476
_DENSITY = 0.3989422804014327  # 1 / sqrt(2 pi)
_TANH_SCALE = 0.7978845608028654  # sqrt(2 / pi)
_TANH_CUBE = 0.044715  # Hendrycks and Gimpel 2016, "Gaussian Error Linear Units"
