"""Element-wise kernels: which case of the templates `map` and `test` an operator is, and how its operands are passed.

All tensors of a call have been converted to one dtype; a Python number stands for an operand that is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from turnout.dtypes import BOOL, FLOAT, bool_, complex64, complex128, float32, float64
from turnout_aten.errors.arguments import NO_QUOTIENT
from turnout_aten.kernels.rows import Row
from turnout_opencl.arrays import ClArray, broadcast_strides, new_array
from turnout_opencl.backend import contiguous, copy
from turnout_opencl.grids import packed
from turnout_opencl.loops import run_loop
from turnout_opencl.programs import NUMBERS, TESTS, TYPES, map_program

Kernel = Callable[..., Any]
DIVISIONS = ("floor_divide", "trunc_divide", "remainder", "fmod")
_PARTS = {complex64: float32, complex128: float64}  # what the two numbers of an element are


def operands(out: ClArray, given: tuple[Any, ...]) -> tuple[list[Any], list[Any], list[int], list[Any]]:
    """Buffers, strides and offsets of the operands broadcast to `out`, and the numbers in place of those that are not arrays."""
    buffers, strides, bases, numbers = [], [], [], []
    nowhere = (0,) * len(out.shape)
    for value in given:
        if isinstance(value, ClArray):
            same = value.shape == out.shape
            buffers.append(value.buffer)
            strides.append(value.strides if same else broadcast_strides(value, out.shape))
            bases.append(value.offset)
            numbers.append(0)
        else:
            buffers.append(None)
            strides.append(nowhere)
            bases.append(0)
            numbers.append(0 if value is None else value)
    return buffers, strides, bases, numbers


def run_map(name: str, out: ClArray, x: Any, y: Any = None, z: Any = None, w: Any = 0, *, flag: Any = None) -> ClArray:
    """Queue an element-wise function into `out`, in its dtype. `flag` is a buffer that integer division by zero marks.

    Without it, no divisor may be 0.
    """
    place = out.place
    kind = TYPES[out.dtype]
    buffers, strides, bases, numbers = operands(out, (x, y, z))
    bits = [kind.bits(v, place.double) for v in (*numbers, w)]
    template = map_program(name, out.dtype)
    marks = name in DIVISIONS and out.dtype.category != FLOAT  # loops have no flag to mark
    if not marks and run_loop(template, name, out.dtype, out, buffers, strides, bases, bits):
        return out
    call, count = packed(NUMBERS[name], out.shape, (out.strides, *strides), (out.offset, *bases), numbers=bits)
    place.start(template, out.dtype, "map", call, (out.buffer, *buffers, flag), count)
    return out


def run_test(name: str, out: ClArray, x: Any, y: Any = None) -> ClArray:
    """Queue a comparison or test of operands of one dtype into `out`, whose elements are bytes."""
    place = out.place
    dtype = (x if isinstance(x, ClArray) else y).dtype
    kind = TYPES[dtype]
    buffers, strides, bases, numbers = operands(out, (x, y))
    bits = [kind.bits(v, place.double) for v in numbers]
    if run_loop("test", name, dtype, out, buffers, strides, bases, bits):
        return out
    call, count = packed(TESTS[name], out.shape, (out.strides, *strides), (out.offset, *bases), numbers=bits)
    place.start("test", dtype, "test", call, (out.buffer, *buffers), count)
    return out


def as_bool(array: ClArray) -> ClArray:
    """Whether each element is not 0, as a bool array."""
    if array.dtype is bool_:
        return array
    made = new_array(array.place, array.shape, bool_)
    part = _PARTS.get(array.dtype)
    if part is None:
        return run_test("truth", made, array)
    strides = tuple(2 * step for step in array.strides)
    halves = [ClArray(array.place, array.buffer, array.shape, part, strides, 2 * array.offset + i) for i in (0, 1)]
    return run_test("logical_or", made, *halves)


# ---- kernels from names


def unary(name: str, run: Kernel = run_map) -> Kernel:
    """A function of one operand, or with `run_test` a question."""

    def kernel(self: Any, out: ClArray) -> None:
        run(name, out, self)

    return kernel


def binary(name: str, run: Kernel = run_map) -> Kernel:
    """A function of two operands, or with `run_test` a question."""

    def kernel(self: Any, other: Any, out: ClArray) -> None:
        run(name, out, self, other)

    return kernel


def scaled(plain: str, general: str) -> Kernel:
    """A sum with `alpha`. The usual value, 1, has a case without the product."""

    def kernel(self: Any, other: Any, alpha: Any, out: ClArray) -> None:
        if alpha == 1 and plain:
            run_map(plain, out, self, other)
        else:
            run_map(general, out, self, other, w=alpha)

    return kernel


def divided(name: str) -> Kernel:
    """A rounded quotient or a remainder; integers must not be divided by zero."""

    def kernel(self: Any, other: Any, out: ClArray) -> None:
        if out.dtype.category == FLOAT:
            run_map(name, out, self, other)
            return
        made = new_array(out.place, out.shape, out.dtype)  # a refused call leaves `out` as it was
        with_flag(made, lambda flag: run_map(name, made, self, other, flag=flag), _no_zero)
        copy(out, made)

    return kernel


def _no_zero(wrong: int) -> Exception:
    return ZeroDivisionError(NO_QUOTIENT)


def with_flag(array: ClArray, start: Callable[[Any], Any], error: Callable[[int], Exception]) -> None:
    """Start kernels with a flag buffer, wait, and raise `error(what they reported)` if they marked it."""
    if not array.size:
        return
    place = array.place
    flag = np.zeros(2, np.int64)
    buffer = place.allocate(flag.nbytes)
    place.copy_in(buffer, flag)
    start(buffer)
    place.copy_out(flag, buffer)
    if flag[0]:
        raise error(int(flag[1]))


def logical(name: str) -> Kernel:
    """A question about two arrays whose dtypes may differ: nothing is converted, each element counts as itself != 0."""

    def kernel(self: ClArray, other: ClArray, out: ClArray) -> None:
        if self.dtype is not other.dtype:
            self, other = as_bool(self), as_bool(other)
        run_test(name, out, self, other)

    return kernel


# ---- kernels of their own


def div_mode(self: Any, other: Any, rounding_mode: str | None, out: ClArray) -> None:
    """True division, or division with a rounding mode."""
    names = {None: "div", "trunc": "trunc_divide", "floor": "floor_divide"}
    divided(names[rounding_mode])(self, other, out)


def power(self: Any, exponent: Any, out: ClArray) -> None:
    """Powers; the square has its own case."""
    if exponent.__class__ in (int, float) and exponent == 2:
        run_map("square", out, self)
    else:
        run_map("pow", out, self, exponent)


def where(condition: ClArray, self: Any, other: Any, out: ClArray) -> None:
    """`self` where the condition is true, else `other`."""
    place = out.place
    kind = TYPES[out.dtype]
    buffers, strides, bases, numbers = operands(out, (condition, self, other))
    bits = [kind.bits(v, place.double) for v in numbers[1:]]
    if run_loop("choose", "where", out.dtype, out, buffers, strides, bases, bits):
        return
    call, count = packed(0, out.shape, (out.strides, *strides), (out.offset, *bases), numbers=bits)
    place.start("test", out.dtype, "choose", call, (out.buffer, *buffers), count)


def clamp(self: ClArray, min: Any, max: Any, out: ClArray) -> None:
    """Limit to two bounds, one of which may be absent."""
    if min is None:
        run_map("minimum", out, self, max)
    elif max is None:
        run_map("maximum", out, self, min)
    else:
        run_map("clamp", out, self, min, max)


def clamp_min(self: ClArray, min: Any, out: ClArray) -> None:
    """Elementwise maximum of self and a lower limit."""
    clamp(self, min, None, out)


def clamp_max(self: ClArray, max: Any, out: ClArray) -> None:
    """Elementwise minimum of self and an upper limit."""
    clamp(self, None, max, out)


def lerp(self: ClArray, end: ClArray, weight: Any, out: ClArray) -> None:
    """Linear interpolation; weights 0 and 1 give the ends exactly."""
    if isinstance(weight, ClArray):
        run_map("lerp_by", out, self, end, weight)
    else:
        run_map("lerp", out, self, end, w=weight)


def addcmul(self: ClArray, tensor1: ClArray, tensor2: ClArray, value: Any, out: ClArray) -> None:
    """self + value * tensor1 * tensor2."""
    run_map("addcmul", out, self, tensor1, tensor2, value)


def addcdiv(self: ClArray, tensor1: ClArray, tensor2: ClArray, value: Any, out: ClArray) -> None:
    """self + value * tensor1 / tensor2."""
    run_map("addcdiv", out, self, tensor1, tensor2, value)


def absolute(self: ClArray, out: ClArray) -> None:
    """The absolute value; an unsigned number is returned unchanged."""
    run_map("abs", out, self)


def sign(self: ClArray, out: ClArray) -> None:
    """-1, 0 or 1; 0 for NaN."""
    if self.dtype.category == BOOL:
        copy(out, self)
    else:
        run_map("sign", out, self)


def dense(array: ClArray, dtype: Any) -> ClArray:
    """The array itself if it has the dtype, else a converted copy."""
    return array if array.dtype is dtype else contiguous(array, dtype)


def row(kernel: Kernel) -> Row:
    return Row(kernel, pointwise=True)


# fmt: off
KERNELS = {
    **{f"{name}.out": row(unary(name)) for name in (
        "neg", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "reciprocal",
        "floor", "ceil", "round", "trunc", "square",
    )},
    "abs.out":              row(absolute),
    "sign.out":             row(sign),
    "bitwise_not.out":      row(unary("not")),
    "isnan.out":            row(unary("isnan", run_test)),
    "logical_not.out":      row(unary("logical_not", run_test)),
    "add.out":              row(scaled("plus", "add")),
    "sub.out":              row(scaled("minus", "sub")),
    "rsub.Tensor_out":      row(scaled("", "rsub")),
    "mul.out":              row(binary("mul")),
    "div.out":              row(binary("div")),
    "div.out_mode":         row(div_mode),
    "floor_divide.out":     row(divided("floor_divide")),
    "remainder.Tensor_out": row(divided("remainder")),
    "fmod.Tensor_out":      row(divided("fmod")),
    "pow.Tensor_Tensor_out": row(power),
    "pow.Tensor_Scalar_out": row(power),
    "maximum.out":          row(binary("maximum")),
    "minimum.out":          row(binary("minimum")),
    **{f"{name}.Tensor_out": row(binary(name, run_test)) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"{name}.out": row(logical(name)) for name in ("logical_and", "logical_or", "logical_xor")},
    **{f"bitwise_{name}.Tensor_out": row(binary(name)) for name in ("and", "or", "xor")},
    "where.self_out":       row(where),
    "clamp.out":            row(clamp),
    "clamp.Tensor_out":     row(clamp),
    "clamp_min.Tensor_out": row(clamp_min),
    "clamp_max.Tensor_out": row(clamp_max),
    "lerp.Scalar_out":      row(lerp),
    "lerp.Tensor_out":      row(lerp),
    "addcdiv.out":          row(addcdiv),
    "addcmul.out":          row(addcmul),
}
# fmt: on
