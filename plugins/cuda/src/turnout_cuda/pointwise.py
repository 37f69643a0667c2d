"""Element-wise functions. CuPy starts a thread for each element, which takes longer than to move it; raw kernels have one for 16
bytes. What kernels of the shared library ask the array module for (`exp`, `add`) is served here for many elements, and CuPy does
the rest. Functions of several steps have rows of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from turnout_aten.kernels.rows import SAME, Row
from turnout_aten.shapes.activations import GELU
from turnout_cuda.floats import kind
from turnout_cuda.programs import DTYPES, Programs, name_of

Table = dict[str, Any]
# Elements from which on raw kernels compute: few too, for a plan asks its questions once, and all paths give the same bits.
LIMIT = 1

ONE = (
    "absolute", "arctan", "ceil", "cos", "cosh", "exp", "expm1", "floor", "log", "log10", "log1p", "log2", "negative", "rint",
    "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
)  # fmt: skip
TWO = ("add", "subtract", "multiply", "true_divide", "maximum", "minimum")
COMPARISONS = ("greater", "greater_equal", "less", "less_equal", "equal", "not_equal")


def _serves(x: Any, *others: Any) -> bool:
    """Whether all are contiguous floats of one dtype and shape."""
    dtype, shape = x.dtype, x.shape
    return (
        name_of(x) in DTYPES
        and x.flags.c_contiguous
        and all(o.dtype == dtype and o.shape == shape and o.flags.c_contiguous for o in others)
    )


class Function:
    """A ufunc of CuPy's, whose calls with many elements go to a raw kernel. Its other attributes are the ufunc's."""

    def __init__(self, xp: Any, ufunc: Any, name: str, result: str = "") -> None:
        self.xp = xp
        self.ufunc = ufunc
        self.kernel = f"of_{name}"
        self.result = result
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ufunc, name)

    def target(self, x: Any, out: Any) -> Any:
        """Where the result goes; None where a raw kernel cannot write it."""
        dtype = self.result or x.dtype
        if out is None:
            return self.xp.empty(x.shape, dtype)
        return out if out.dtype == dtype and out.shape == x.shape and out.flags.c_contiguous else None


class OfOne(Function):
    """A function of one argument."""

    def __call__(self, x: Any, out: Any = None, **options: Any) -> Any:
        if not options and x.size >= LIMIT and _serves(x):
            made = self.target(x, out)
            if made is not None:
                self.xp.programs.over_elements(self.kernel, name_of(x), x.size, (x, made, x.size), packed=True)
                return made
        return self.ufunc(x, **options) if out is None else self.ufunc(x, out=out, **options)


class OfTwo(Function):
    """A function of an array, and a number or another array, which may be repeated along leading or trailing dims."""

    def __call__(self, x: Any, other: Any, out: Any = None, **options: Any) -> Any:
        if not options and getattr(x, "size", 0) >= LIMIT and _serves(x):
            place = _repeated(x, other)
            made = None if place is None else self.target(x, out)
            if place is not None and made is not None:
                given, number, inner, count = place
                args = (x, given, made, x.size, inner, count, number)
                self.xp.programs.over_elements(self.kernel, name_of(x), x.size, args, packed=True)
                return made
        return self.ufunc(x, other, **options) if out is None else self.ufunc(x, other, out=out, **options)


def _repeated(x: Any, other: Any) -> tuple[Any, float, int, int] | None:
    """(array, number, inner, count) such that element i of x meets element i / inner % count of the array, or the number where
    count is 0. None where that is not so."""
    if other.__class__ is float or (other.__class__ is int and abs(other) <= 1 << 53):
        return x, float(other), 1, 0
    if getattr(other, "dtype", None) != x.dtype or not hasattr(other, "flags") or not other.flags.c_contiguous:
        return None
    if other.shape == x.shape:
        return other, 0.0, 1, x.size
    if not other.size or other.ndim > x.ndim:
        return None
    lead = x.ndim - other.ndim
    dims = [i for i, n in enumerate(other.shape, lead) if n != 1]
    if not dims:
        return other, 0.0, x.size, 1
    first, end = dims[0], dims[-1] + 1
    if other.shape[first - lead : end - lead] != x.shape[first:end]:
        return None
    return other, 0.0, prod(x.shape[end:]), other.size


def functions(xp: Any) -> Table:
    """Name -> function of the array module, for names that `xp.cupy` has."""
    made: Table = {name: OfOne(xp, getattr(xp.cupy, name), name) for name in ONE}
    made |= {name: OfTwo(xp, getattr(xp.cupy, name), name) for name in TWO}
    return made | {name: OfTwo(xp, getattr(xp.cupy, name), name, "bool") for name in COMPARISONS}


def convert(xp: Any, target: Any, source: Any) -> bool:
    """Write a contiguous array of floats into one of another dtype, if a raw kernel does that: from float32 or to it."""
    names = name_of(source), name_of(target)
    alike = source.shape == target.shape and source.flags.c_contiguous and target.flags.c_contiguous
    if source.size < LIMIT or not alike or names[0] == names[1] or "float32" not in names or not {*names} <= DTYPES.keys():
        return False
    kernel, kind = ("from_float32", names[1]) if names[0] == "float32" else ("to_float32", names[0])
    xp.programs.over_elements(kernel, kind, source.size, (source, target, source.size), packed=True)
    return True


def kernels(xp: Any, programs: Programs) -> Table:
    """The rows of this module."""

    def start(name: str, given: tuple[Any, ...], out: Any, numbers: tuple[float, ...] = ()) -> Any:
        x = given[0]
        if not _serves(*given) or not x.size:
            return NotImplemented
        made = xp.empty(x.shape, x.dtype) if out is None else out
        if made.shape != x.shape or made.dtype != x.dtype or not made.flags.c_contiguous:
            return NotImplemented
        programs.over_elements(f"of_{name}", name_of(x), x.size, (*given, made, x.size, *numbers), packed=True)
        return made

    def one(name: str) -> Callable[..., Any]:
        def kernel(self: Any, out: Any = None) -> Any:
            return start(name, (self,), out)

        return kernel

    def slope(name: str) -> Callable[..., Any]:
        def kernel(grad_output: Any, other: Any, out: Any = None) -> Any:
            return start(f"{name}_backward", (grad_output, other), out)

        return kernel

    def gelu(self: Any, approximate: str, out: Any = None) -> Any:
        return start(GELU[approximate], (self,), out)

    def gelu_backward(grad_output: Any, self: Any, approximate: str, out: Any = None) -> Any:
        return start(f"{GELU[approximate]}_backward", (grad_output, self), out)

    def threshold_backward(grad_output: Any, self: Any, threshold: Any, out: Any = None) -> Any:
        return start("threshold_backward", (grad_output, self), out, (float(threshold),))

    def clamp(self: Any, min: Any = None, max: Any = None, out: Any = None) -> Any:
        if kind(self) is None or any(v.__class__ not in (int, float) or v != v for v in (min, max) if v is not None):
            return NotImplemented
        low = float("-inf") if min is None else float(min)
        return start("clamp", (self,), out, (low, float("inf") if max is None else float(max)))

    def leaky_relu(self: Any, negative_slope: Any, out: Any = None) -> Any:
        return start("leaky_relu", (self,), out, (float(negative_slope),))

    def softplus(self: Any, beta: Any, threshold: Any, out: Any = None) -> Any:
        return start("softplus", (self,), out, (float(beta), float(threshold)))

    def elu(self: Any, alpha: Any, scale: Any, input_scale: Any, out: Any = None) -> Any:
        return start("elu", (self,), out, (float(alpha), float(scale), float(input_scale)))

    def power(self: Any, exponent: Any, out: Any = None) -> Any:
        if exponent.__class__ not in (int, float) or exponent == 2:
            return NotImplemented
        return start("power", (self,), out, (float(exponent),))

    def where(condition: Any, self: Any, other: Any, out: Any) -> Any:
        """For arrays of the condition's shape, and numbers."""
        numbers = [float(v) if v.__class__ in (int, float) else None for v in (self, other)]
        arrays = [v for v, number in zip((self, other), numbers, strict=True) if number is None]
        if not arrays or condition.dtype.kind != "b" or not _serves(*arrays, out) or not out.size:
            return NotImplemented
        if condition.shape != out.shape or not condition.flags.c_contiguous:
            return NotImplemented
        given = [out if number is not None else v for v, number in zip((self, other), numbers, strict=True)]
        which = sum(bit for bit, number in zip((1, 2), numbers, strict=True) if number is not None)
        args = (condition, *given, out, out.size, which, *[number or 0.0 for number in numbers])
        programs.over_elements("of_where", name_of(out), out.size, args, packed=True)
        return out

    def pointwise(fn: Any) -> Row:
        return Row(fn, SAME, pointwise=True)

    return {
        **{f"{name}.out": pointwise(one(name)) for name in ("sigmoid", "relu", "erf", "silu", "mish", "hardswish")},
        **{f"{name}.out": pointwise(one(name)) for name in ("rsqrt", "reciprocal")},
        **{f"{name}_backward.grad_input": pointwise(slope(name)) for name in ("sigmoid", "tanh", "silu")},
        "where.self_out": Row(where, pointwise=True),
        "gelu.out": pointwise(gelu),
        "gelu_backward.grad_input": pointwise(gelu_backward),
        "threshold_backward.grad_input": pointwise(threshold_backward),
        "clamp.out": pointwise(clamp),
        "leaky_relu.out": pointwise(leaky_relu),
        "softplus.out": pointwise(softplus),
        "elu.out": pointwise(elu),
        "pow.Tensor_Scalar_out": pointwise(power),
    }
