"""Rows of element-wise operators: once over memory, for floats of any kind, with any strides."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from turnout_aten.kernels.rows import Row, Sizes
from turnout_aten.shapes.activations import GELU
from turnout_aten.shapes.losses import MEAN
from turnout_kernels import _native, native
from turnout_kernels.native import CODES, F32, F64, FLOATS, NUMBER_OF, POINTWISE

Call = Callable[..., Any]

# One NumPy function is as fast up to this many elements.
LARGE = 1 << 16
# The same for two-byte floats, which NumPy converts one by one.
MEDIUM = 1 << 10
# Kernels of several steps are compiled for any number of elements above this.
SMALL = 32
# What only two-byte floats need: no number of others.
_ALL = 1 << 62

_MAP = NUMBER_OF["map"]
# What C does in vectors for float32 only: float64 goes to NumPy.
_SINGLE = frozenset(
    POINTWISE[name]
    for name in (
        "exp",
        "log",
        "tanh",
        "erf",
        "gelu",
        "gelu_tanh",
        "gelu_backward",
        "gelu_tanh_backward",
        "elu",
        "log1p",
        "expm1",
        "softplus",
        "mish",
        "hypot",
    )
)
# What NumPy rounds once, as C does: add with a factor of 1 or -1.
_ONE_STEP = frozenset(("add", "sub", "mul", "div", "maximum", "minimum", "neg", "square", "sqrt", "reciprocal", "abs"))
_FACTORS = ((), (1.0,), (-1.0,), (1,), (-1,))
_FACTORS_OF_ONE_STEP = (1, -1)
# Those that give bool.
_QUESTIONS = frozenset(_native.QUESTIONS)
# With a number as the second operand C repeats nothing: half the time. The number is rounded as an element would be.
_BY_NUMBER = {"add": "add_number", "sub": "sub_number", "mul": "mul_number", "div": "div_number"}
_NO_FACTOR = ((), (1,))
_NUMBERS = (float, int)
_EXACT = 1 << 53


def apply(name: str, inputs: tuple[Any, ...], out: Any, numbers: tuple[float, ...] = ()) -> Any:
    """`out`, or a new array, with an operator of inputs that broadcast; numbers may be among them. NotImplemented if C has no
    such dtypes, or if there is no `out` and the inputs are not contiguous and alike."""
    number = inputs[-1]
    if number.__class__ in _NUMBERS and len(inputs) == 2 and name in _BY_NUMBER and numbers in _NO_FACTOR:
        if not -_EXACT <= number <= _EXACT:
            return NotImplemented
        name, inputs, numbers = _BY_NUMBER[name], inputs[:1], (number,)
    operator = POINTWISE[name]
    alone = _taken_as_it_is(operator, inputs, out)
    if alone is not None and name not in _QUESTIONS:
        made = np.empty(alone.shape, alone.dtype) if out is None else out
        kind = CODES[alone.dtype.char]
        ints = (kind, operator, *(kind,) * (len(inputs) + 1))
        _native.run(_MAP, (made,), inputs, ints, (*numbers, 0.0, 0.0, 0.0)[:3], 1, 1)
        return made
    arrays: list[Any] = []
    double = out is not None and out.dtype.char == "d"
    if out is not None and name in _QUESTIONS and out.dtype.char != "?":
        return NotImplemented
    for value in inputs:
        if isinstance(value, np.ndarray):
            if value.dtype.char not in CODES:
                return NotImplemented
            double = double or value.dtype.char == "d"
            arrays.append(value)
        elif value.__class__ in _NUMBERS and -_EXACT <= value <= _EXACT:
            arrays.append(value)
        else:
            return NotImplemented
    if double and operator in _SINGLE:
        return NotImplemented
    if out is None:
        first: Any = None
        for value in arrays:  # no generator: its frames would take longer than the rest of a small call
            if value.__class__ is np.ndarray:
                if first is None:
                    first = value
                elif value.shape != first.shape or value.dtype is not first.dtype or value.strides != first.strides:
                    return NotImplemented
        if not first.flags.c_contiguous:  # how the result lies is said elsewhere
            return NotImplemented
        out = np.empty_like(first)
    if (out.dtype.char not in FLOATS and name not in _QUESTIONS) or not out.size:
        return NotImplemented
    dtypes = [CODES[out.dtype.char]]
    for at, value in enumerate(arrays):
        if value.__class__ is not np.ndarray:
            arrays[at] = value = np.full((), value, "d" if double else "f")
        dtypes.append(CODES[value.dtype.char])
        if value.dtype.kind == "V":
            arrays[at] = value.view(np.uint16)
    parts = native.parts_of(out.size)
    ints = (F64 if double else F32, operator, *dtypes)
    floats = (*numbers, 0.0, 0.0, 0.0)[:3]
    _native.run(_MAP, (native.buffer(out),), tuple(arrays), ints, floats, parts, native.threads() if parts > 1 else 1)
    return out


def _taken_as_it_is(operator: int, inputs: tuple[Any, ...], out: Any) -> Any:
    """The first input where all and `out` are whole arrays of one shape and dtype, float32 or float64, in one part: C takes them
    as they are. Else None."""
    first = inputs[0]
    if first.__class__ is not np.ndarray:
        return None
    dtype, shape = first.dtype, first.shape
    if not (dtype.char == "f" or (dtype.char == "d" and operator not in _SINGLE)) or not 0 < first.size <= native.GRAIN:
        return None
    for value in inputs if out is None else (*inputs, out):
        if value.__class__ is not np.ndarray or value.dtype is not dtype or value.shape != shape or not native.whole(value):
            return None
    return first


def computed(name: str, inputs: tuple[Any, ...], out: Any, numbers: tuple[float, ...] = ()) -> Any:
    """`apply` for a row that may be called without an output.

    Raises NotImplementedError, to be called with one, where arrays lie differently and the kernel below would round otherwise, or
    convert two-byte floats one by one: with and without an output, in place too, the same kernel computes the result.
    """
    made = apply(name, inputs, out, numbers)
    if made is NotImplemented and out is None:
        largest = _broadcasting(inputs)
        if largest is not None:
            made = apply(name, inputs, np.empty(largest.shape, largest.dtype), numbers)
        if made is not NotImplemented or (name in _ONE_STEP and numbers in _FACTORS and not halves(*inputs)):
            return made
        raise NotImplementedError(f"{name}: arrays of different layouts need an output")
    return made


def _broadcasting(inputs: tuple[Any, ...]) -> Any:
    """The input to whose shape the others expand, where all are row-major arrays of one dtype: the result lies as it does."""
    largest: Any = None
    for value in inputs:
        if value.__class__ is not np.ndarray or value.dtype is not inputs[0].dtype or not value.flags.c_contiguous:
            return None
        if largest is None or value.ndim > largest.ndim or (value.ndim == largest.ndim and value.size > largest.size):
            largest = value
    for value in inputs:
        for length, whole in zip(value.shape[::-1], largest.shape[::-1], strict=False):
            if length not in (1, whole):
                return None
    return largest


def halves(*arrays: Any) -> bool:
    """Whether an array has two-byte floats."""
    for array in arrays:  # noqa: SIM110 - no generator, as above
        if array.__class__ is np.ndarray and array.dtype.itemsize == 2:
            return True
    return False


def looked_at_in_c(name: str, *, inputs: int = 1, numbers: int = 0) -> Callable[[Call], Call]:
    """What makes a kernel that looks at arrays of one shape itself, and leaves any other call to another kernel; so it does with
    many elements without an output."""
    operator = POINTWISE[name]
    facts = operator, native.GRAIN, inputs, numbers, operator in _SINGLE
    return partial(_native.row, "pointwise", *facts, np.empty_like, native.threads)


# ---- one argument


def one(name: str, *, ufunc: str = "", single: bool = True) -> Row:
    """An operator of one array. If NumPy has a function of one step, only large arrays are taken; `single` says whether float32
    is, or only two-byte floats."""

    def kernel(self: Any, out: Any = None) -> Any:
        # A row decides by the size of its first array alone, so that all variants of an operator come to the same kernel.
        if self.size <= limit or (ufunc and not ((single and self.size > LARGE) or halves(self))):
            return NotImplemented
        return computed(name, (self,), out)

    limit = MEDIUM if ufunc else SMALL if name == "relu" else 0
    of_others = (LARGE if single else _ALL) if ufunc else limit
    over = None if ufunc else looked_at_in_c(name)
    return Row(kernel, pointwise=True, quiet=True, sizes=Sizes(of_others, limit, over=over))


def in_single(name: str, function: Any) -> Row:
    """A function of NumPy that goes over two-byte floats one by one: of large ones it is computed in float32."""

    def kernel(self: Any, out: Any = None) -> Any:
        if self.size <= MEDIUM or not halves(self):
            return NotImplemented
        if out is None:
            raise NotImplementedError(f"{name}: two-byte floats need an output")
        if out.dtype is not self.dtype:
            return NotImplemented
        each = np.empty_like(self, np.float32)
        apply("copy", (self,), each)
        function(each, each)
        return apply("copy", (each,), out)

    return Row(kernel, pointwise=True, sizes=Sizes(MEDIUM), quiet=True)


def with_numbers(name: str, count: int) -> Row:
    """An operator of one array and `count` numbers."""

    def taken(self: Any, numbers: tuple[Any, ...], out: Any) -> Any:
        if any(n.__class__ not in _NUMBERS or n != n for n in numbers):
            return NotImplemented
        return computed(name, (self,), out, tuple(map(float, numbers)))

    kernels: tuple[Any, ...] = (
        lambda self, first, out: taken(self, (first,), out),
        lambda self, first, second, out: taken(self, (first, second), out),
        lambda self, first, second, third, out: taken(self, (first, second, third), out),
    )
    return Row(kernels[count - 1], pointwise=True, sizes=Sizes(over=looked_at_in_c(name, numbers=count)))


def gelu(self: Any, approximate: str, out: Any) -> Any:
    return computed(GELU[approximate], (self,), out)


def clamp(self: Any, min: Any = None, max: Any = None, out: Any = None) -> Any:
    if self.size <= SMALL:
        return NotImplemented
    low, high = (-math.inf if min is None else min), (math.inf if max is None else max)
    if low.__class__ not in _NUMBERS or high.__class__ not in _NUMBERS or low != low or high != high:
        return NotImplemented
    return computed("clamp", (self,), out, (float(low), float(high)))


_POWERS = {2: "square", 3: "cube", -1: "reciprocal", -0.5: "rsqrt"}


def power(self: Any, exponent: Any, out: Any = None) -> Any:
    name = _POWERS.get(exponent) if exponent.__class__ in _NUMBERS else None
    return NotImplemented if name is None or self.size <= SMALL else computed(name, (self,), out)


# ---- several arguments


def many(name: str, *, ufunc: bool = False) -> Row:
    """An operator of two arrays or numbers."""

    def kernel(self: Any, other: Any, out: Any = None) -> Any:
        if self.size <= limit or (ufunc and self.size <= LARGE and not halves(self, other)):
            return NotImplemented
        return computed(name, (self, other), out)

    limit = MEDIUM if ufunc else SMALL
    return Row(kernel, pointwise=True, sizes=Sizes(LARGE if ufunc else limit, limit))


def compared(name: str) -> Row:
    """A comparison: of floats with others of their dtype or a number."""

    def kernel(self: Any, other: Any, out: Any = None) -> Any:
        if self.size <= (MEDIUM if halves(self) else LARGE) or self.dtype.char not in FLOATS:
            return NotImplemented
        if not (other.dtype is self.dtype if other.__class__ is np.ndarray else other.__class__ in _NUMBERS):
            return NotImplemented
        if out is None:
            raise NotImplementedError(f"{name}: the result has another dtype and needs an output")
        return computed(name, (self, other), out)

    return Row(kernel, pointwise=True, sizes=Sizes(MEDIUM))


def lerp(self: Any, end: Any, weight: Any, out: Any) -> Any:
    return computed("lerp", (self, end), out, (float(weight),)) if weight.__class__ in _NUMBERS else NotImplemented


def scaled(name: str) -> Row:
    """self + alpha other, or minus. With an alpha NumPy takes two steps, so float32 and float64 are compiled for any number of
    elements."""

    def kernel(self: Any, other: Any, alpha: Any = 1, out: Any = None) -> Any:
        if alpha.__class__ not in _NUMBERS or not -_EXACT <= alpha <= _EXACT:
            return NotImplemented
        alike = other.__class__ is np.ndarray and other.dtype is self.dtype and self.dtype.char in "fd"
        if self.size <= (MEDIUM if halves(self, other) else LARGE) and (alpha in _FACTORS_OF_ONE_STEP or not alike):
            return NotImplemented
        if out is None and halves(self, other) and (other.__class__ is not np.ndarray or alpha not in _FACTORS_OF_ONE_STEP):
            raise NotImplementedError(f"{name}: a number beside two-byte floats is rounded first, by the general path")
        return computed(name, (self, other), out, (alpha,))

    return Row(kernel, pointwise=True, sizes=Sizes(LARGE, MEDIUM, over=looked_at_in_c(name, inputs=2, numbers=1)))


def three(kernel: Call) -> Row:
    """A kernel of three arrays and a number."""
    over = looked_at_in_c(kernel.__name__, inputs=3, numbers=1)
    return Row(kernel, pointwise=True, quiet=True, sizes=Sizes(over=over))


def threshold_backward(grad_output: Any, self: Any, threshold: Any, out: Any = None) -> Any:
    return computed("threshold_backward", (grad_output, self), out, (float(threshold),))


def gelu_backward(grad_output: Any, self: Any, approximate: str, out: Any) -> Any:
    return computed(f"{GELU[approximate]}_backward", (grad_output, self), out)


def where(condition: Any, self: Any, other: Any, out: Any = None) -> Any:
    if condition.dtype.char != "?" or condition.size <= SMALL or out is None:
        return NotImplemented
    return computed("where", (condition, self, other), out)


def addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any, out: Any) -> Any:
    return computed("addcmul", (self, tensor1, tensor2), out, (value,)) if value.__class__ in _NUMBERS else NotImplemented


def addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any, out: Any) -> Any:
    return computed("addcdiv", (self, tensor1, tensor2), out, (value,)) if value.__class__ in _NUMBERS else NotImplemented


# ---- gradients that are composed of operators otherwise


def alike(*arrays: Any) -> bool:
    """Whether arrays have one shape and one dtype."""
    first = arrays[0]
    return all(a.shape == first.shape and a.dtype is first.dtype for a in arrays)


def hardswish_backward(grad_output: Any, self: Any) -> Any:
    return apply("hardswish_backward", (grad_output, self), None) if alike(grad_output, self) else NotImplemented


def leaky_relu_backward(grad_output: Any, self: Any, negative_slope: Any, self_is_result: bool) -> Any:
    if self_is_result or negative_slope.__class__ not in _NUMBERS or not alike(grad_output, self):
        return NotImplemented
    return apply("leaky_relu_backward", (grad_output, self), None, (float(negative_slope),))


def hardtanh_backward(grad_output: Any, self: Any, min_val: Any, max_val: Any) -> Any:
    if not alike(grad_output, self) or min_val.__class__ not in _NUMBERS or max_val.__class__ not in _NUMBERS:
        return NotImplemented
    return apply("hardtanh_backward", (grad_output, self), None, (float(min_val), float(max_val)))


def mse_loss_backward(grad_output: Any, self: Any, target: Any, reduction: int, grad_input: Any) -> Any:
    count = self.size if self.shape == target.shape else math.prod(np.broadcast_shapes(self.shape, target.shape))
    factor = 2.0 / max(count, 1) if reduction == MEAN else 2.0
    return computed("mse_backward", (grad_output, self, target), grad_input, (factor,))


# fmt: off
KERNELS: dict[str, Any] = {
    "neg.out":          one("neg", ufunc="negative"),
    "square.out":       one("square", ufunc="square"),
    "sqrt.out":         one("sqrt", ufunc="sqrt"),
    "reciprocal.out":   one("reciprocal", ufunc="reciprocal"),
    "exp.out":          one("exp", ufunc="exp"),
    "log.out":          one("log", ufunc="log"),
    "tanh.out":         one("tanh", ufunc="tanh"),
    "abs.out":          one("abs", ufunc="absolute", single=False),
    "floor.out":        one("floor", ufunc="floor", single=False),
    "ceil.out":         one("ceil", ufunc="ceil", single=False),
    "trunc.out":        one("trunc", ufunc="trunc", single=False),
    "sign.out":         one("sign", ufunc="sign", single=False),
    "round.out":        one("round", ufunc="rint", single=False),
    "cos.out":          in_single("cos", np.cos),
    "tan.out":          in_single("tan", np.tan),
    "exp2.out":         in_single("exp2", np.exp2),
    "rsqrt.out":        one("rsqrt"),
    "log1p.out":        one("log1p"),
    "expm1.out":        one("expm1"),
    "mish.out":         one("mish"),
    "erf.out":          one("erf"),
    "sigmoid.out":      one("sigmoid"),
    "silu.out":         one("silu"),
    "relu.out":         one("relu"),
    "hardsigmoid.out":  one("hardsigmoid"),
    "hardswish.out":    one("hardswish"),
    "leaky_relu.out":   with_numbers("leaky_relu", 1),
    "hardshrink.out":   with_numbers("hardshrink", 1),
    "softshrink.out":   with_numbers("softshrink", 1),
    "hardtanh.out":     with_numbers("clamp", 2),
    "threshold.out":    with_numbers("threshold", 2),
    "elu.out":          with_numbers("elu", 3),
    "softplus.out":     with_numbers("softplus", 2),
    "gelu.out":         Row(gelu, pointwise=True),
    "clamp.out":        Row(clamp, pointwise=True, sizes=Sizes(SMALL)),
    "pow.Tensor_Scalar_out": Row(power, pointwise=True, sizes=Sizes(SMALL)),
    "add.out":          scaled("add"),
    "sub.out":          scaled("sub"),
    "mul.out":          many("mul", ufunc=True),
    "div.out":          many("div", ufunc=True),
    "maximum.out":      many("maximum", ufunc=True),
    "minimum.out":      many("minimum", ufunc=True),
    "hypot.out":        many("hypot"),
    "lerp.Scalar_out":  Row(lerp, pointwise=True, quiet=True, sizes=Sizes(over=looked_at_in_c("lerp", inputs=2, numbers=1))),
    "gt.Tensor_out":    compared("gt"),
    "ge.Tensor_out":    compared("ge"),
    "lt.Tensor_out":    compared("lt"),
    "le.Tensor_out":    compared("le"),
    "eq.Tensor_out":    compared("eq"),
    "ne.Tensor_out":    compared("ne"),
    "where.self_out":   Row(where, pointwise=True, sizes=Sizes(SMALL), quiet=True),
    "addcmul.out":      three(addcmul),
    "addcdiv.out":      three(addcdiv),
    "sigmoid_backward.grad_input":   many("sigmoid_backward"),
    "tanh_backward.grad_input":      many("tanh_backward"),
    "silu_backward.grad_input":      many("silu_backward"),
    "threshold_backward.grad_input": Row(
        threshold_backward, pointwise=True, sizes=Sizes(SMALL, over=looked_at_in_c("threshold_backward", inputs=2, numbers=1))
    ),
    "gelu_backward.grad_input":      Row(gelu_backward, pointwise=True),
    "mse_loss_backward.grad_input":  Row(mse_loss_backward, pointwise=True),
    "hardswish_backward":  hardswish_backward,
    "leaky_relu_backward": leaky_relu_backward,
    "hardtanh_backward":   hardtanh_backward,
}
# fmt: on
