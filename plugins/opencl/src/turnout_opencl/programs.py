"""The source of a program: a template for one element type, with the cases of its switch.

One kernel serves all operators of a kind, by a number that picks the case: compiling a kernel takes a tenth of a second and more,
a switch that all work-items agree on costs nothing beside the memory traffic.
"""

from __future__ import annotations

import struct
from functools import cache
from importlib.resources import files
from typing import Any

from turnout.dtypes import DTYPES, DType, float32
from turnout_aten.dtypes import LARGEST

_STORAGE = {
    "float32": "float", "float64": "double", "float16": "half", "bfloat16": "ushort", "bool": "uchar",
    "int8": "char", "int16": "short", "int32": "int", "int64": "long",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
    "complex64": "ulong", "complex128": "ulong2",
}  # fmt: skip
_PLAIN = ("LD(p, i) ((p)[i])", "ST(p, i, v) ((p)[i] = (v))")
_ACCESS = {
    "float16": ("LD(p, i) vload_half(i, p)", "ST(p, i, v) vstore_half_rte(v, i, p)"),
    "bfloat16": ("LD(p, i) bfloat_in((p)[i])", "ST(p, i, v) ((p)[i] = bfloat_out(v))"),
    "bool": ("LD(p, i) ((p)[i])", "ST(p, i, v) ((p)[i] = (uchar)((v) != 0))"),
}
_BFLOAT = """\
float bfloat_in(ushort bits) { return as_float((uint)bits << 16); }
ushort bfloat_out(float v) {
  const uint bits = as_uint(v);
  if (isnan(v)) return (ushort)((bits >> 16) | 0x40);
  return (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
"""


class ElementType:
    """How a dtype looks in OpenCL C.

    storage   the type in memory
    computed  the type that values are computed in: float for two-byte floats
    kind      "float", "signed", "unsigned", "bool", or "moved" for types that are only copied (complex)
    """

    def __init__(self, dtype: DType) -> None:
        name = dtype.name
        self.dtype = dtype
        self.storage = _STORAGE[name]
        self.half = name in ("float16", "bfloat16")
        self.computed = "float" if self.half else self.storage
        self.kind = (
            "moved" if name.startswith("complex") else "bool" if name == "bool" else "float" if "float" in name
            else "unsigned" if name.startswith("uint") else "signed"
        )  # fmt: skip

    def bits(self, value: Any, double: bool) -> int:
        """A number as the integer that `Call.number` holds; integers wrap around."""
        if self.kind == "float":
            limit = float("inf") if double else LARGEST[float32]
            if abs(value) > limit:  # `struct` would refuse it
                value = float("inf") if value > 0 else -float("inf")
            packed = struct.pack("<d", value) if double else struct.pack("<f4x", value)
            return int.from_bytes(packed, "little", signed=True)
        if self.kind == "bool":
            return int(value != 0)
        wrapped = int(value) & 0xFFFFFFFFFFFFFFFF
        return wrapped - (1 << 64) if wrapped >> 63 else wrapped

    def definitions(self, double: bool) -> str:
        """The macros that `templates/types.cl` asks for."""
        load, store = _ACCESS.get(self.dtype.name, _PLAIN)
        wide = ("double" if double else "float") if self.kind == "float" else self.computed
        lines = [
            f"S {self.storage}", f"T {self.computed}", f"A {wide}", load, store,
            f"FLOATING {int(self.kind == 'float')}", f"SIGNED {int(self.kind in ('float', 'signed'))}",
            f"TRUTH {int(self.kind == 'bool')}", f"MOVES_ONLY {int(self.kind == 'moved')}",
            f"UNSIGNED_LONG {int(self.dtype.name == 'uint64')}",
            f"WIDE {int(self.kind == 'float' and not self.half)}",
        ]  # fmt: skip
        if double:
            lines.insert(0, "FP64 1")
        return "".join(f"#define {line}\n" for line in lines)


TYPES = {dtype: ElementType(dtype) for dtype in DTYPES.values()}

# ---- the cases of `map`: x, y, z are the operands, w is a number beside them

# fmt: off
_ANY = {
    "fill":    "y",
    "add":     "x + w * y",
    "plus":    "x + y",
    "sub":     "x - w * y",
    "minus":   "x - y",
    "rsub":    "y - w * x",
    "mul":     "x * y",
    "square":  "x * x",
    "maximum": "LARGER(x, y)",
    "minimum": "SMALLER(x, y)",
    "clamp":   "SMALLER(LARGER(x, y), z)",
    "addcmul": "x + w * y * z",
    "sign":    "(T)((x > 0) - (x < 0))",
    "threshold_backward": "y <= w ? (T)0 : x", "threshold": "x <= w ? y : x",
    "pow":     "POWER(x, y)",
}
_NUMBERS = {
    "neg":     "-x",
    "relu":    "LARGER(x, (T)0)",
    "floor_divide": "FLOORED(x, y)",
    "trunc_divide": "TRUNCATED(x, y)",
    "remainder":    "REMAINDER(x, y)",
}
_FLOATS = {
    "abs": "fabs(x)", "exp": "exp(x)", "expm1": "expm1(x)", "log": "log(x)", "log1p": "log1p(x)", "sqrt": "sqrt(x)",
    "rsqrt": "1 / sqrt(x)", "sin": "sin(x)", "cos": "cos(x)", "tanh": "tanh(x)", "reciprocal": "1 / x",
    "floor": "floor(x)", "ceil": "ceil(x)", "trunc": "trunc(x)", "round": "rint(x)", "erf": "erf(x)",
    "sigmoid": "1 / (1 + exp(-x))", "div": "x / y", "atan2": "atan2(x, y)",
    "lerp": "fabs(w) < (T)0.5 ? x + w * (y - x) : y - (y - x) * (1 - w)",
    "gelu": "(T)0.5 * x * (1 + erf(x * SQRT_HALF))",
    "gelu_tanh": "(T)0.5 * x * (1 + tanh(TANH_SCALE * (x + TANH_CUBE * x * x * x)))",
    "gelu_backward": "x * ((T)0.5 * (1 + erf(y * SQRT_HALF)) + y * exp((T)-0.5 * y * y) * DENSITY)",
    "gelu_tanh_backward": "x * gelu_tanh_slope(y)",
    "silu_backward": "x * (1 + y * (1 - 1 / (1 + exp(-y)))) / (1 + exp(-y))",
    "sigmoid_backward": "x * (y * (1 - y))",
    "tanh_backward": "x * (1 - y * y)",
    "mse": "(x - y) * (x - y)",
    "mse_backward": "w * (x - y) * z",
}
# The rarer ones are a program of their own, compiled when one of them is first called.
_CURVES = {
    "acos": "acos(x)", "acosh": "acosh(x)", "asin": "asin(x)", "asinh": "asinh(x)", "atan": "atan(x)", "atanh": "atanh(x)",
    "cosh": "cosh(x)", "sinh": "sinh(x)", "tan": "tan(x)", "exp2": "exp2(x)", "log2": "log2(x)", "log10": "log10(x)",
    "deg2rad": "x * (T)0.017453292519943295", "rad2deg": "x * (T)57.29577951308232",
    "sinc": "x == 0 ? (T)1 : sin(x * (T)M_PI_) / (x * (T)M_PI_)", "frac": "x - trunc(x)", "erfc": "erfc(x)",
    "copysign": "copysign(x, y)", "fmax": "fmax(x, y)", "fmin": "fmin(x, y)", "hypot": "hypot(x, y)", "fmod": "fmod(x, y)",
    "heaviside": "x == 0 ? y : (T)(x > 0)",
    "logaddexp": "x == y ? x + (T)M_LN2_ : LARGER(x, y) + log1p(exp(-fabs(x - y)))",
    "logaddexp2": "x == y ? x + 1 : LARGER(x, y) + log1p(exp2(-fabs(x - y))) * (T)M_LOG2E_",
    "xlogy": "y != y ? y : x == 0 ? (T)0 : x * log(y)", "xlog1py": "y != y ? y : x == 0 ? (T)0 : x * log1p(y)",
    "entropy": "x != x ? x : x < 0 ? -(T)INFINITY : x == 0 ? (T)0 : -x * log(x)",
    "nan_to_num": "x != x ? y : isinf(x) ? (x > 0 ? z : w) : x",
    "lerp_by": "fabs(z) < (T)0.5 ? x + z * (y - x) : y - (y - x) * (1 - z)", "addcdiv": "x + w * (y / z)",
    "silu": "x / (1 + exp(-x))", "glu": "x / (1 + exp(-y))", "mish": "x * tanh(x > 20 ? x : log1p(exp(x)))",
    "softplus": "x * y > w ? x : log1p(exp(x * y)) / y",
    "elu": "x > 0 ? x * w : expm1(x * z) * y", "leaky_relu": "x > 0 ? x : x * w",
    "hardsigmoid": "SMALLER(LARGER(x + 3, (T)0), (T)6) / 6", "hardswish": "x * SMALLER(LARGER(x + 3, (T)0), (T)6) / 6",
    "hardshrink": "fabs(x) <= w ? (T)0 : x", "softshrink": "x > w ? x - w : x < -w ? x + w : x != x ? x : (T)0",
}
# So are these, with the functions of `templates/special.cl`.
_SPECIAL = {
    "lgamma": "isinf(x) ? (T)INFINITY : (T)lgamma((A)x)", "digamma": "(T)digamma_(x)", "erfinv": "(T)erfinv_(x)",
    "i0": "(T)bessel_i(x, 0, 0)", "i0e": "(T)bessel_i(x, 0, 1)", "i1": "(T)bessel_i(x, 1, 0)", "i1e": "(T)bessel_i(x, 1, 1)",
    "erfcx": "(T)erfcx_(x)", "log_ndtr": "(T)log_ndtr_(x)", "ndtri": "(T)ndtri_(x)", "zeta": "(T)zeta_(x, y)",
    "polygamma": "(T)polygamma_(w, x)", "logit": "(T)logit_(x)",
    "round_to": "(T)rounded_to(x, fabs(w), w < 0)",
}
_DIVISORS = {"gcd": "greatest_divisor(x, y)", "lcm": "least_multiple(x, y)"}
_INTEGERS = {
    "fmod": "WHOLE_REST(x, y)", "heaviside": "x == 0 ? y : (T)(x > 0)",
    "left_shift": "OUTSIDE(y) ? (T)0 : (T)(x << y)", "right_shift": "OUTSIDE(y) ? (T)(x < 0 ? -1 : 0) : (T)(x >> y)",
    "abs": "x < 0 ? -x : x", "floor": "x", "ceil": "x", "trunc": "x", "round": "x",
    "and": "x & y", "or": "x | y", "xor": "x ^ y", "not": "~x",
}
_BOOLS = {"and": "x & y", "or": "x | y", "xor": "x ^ y", "not": "!x"}
_TESTS = {
    "eq": "x == y", "ne": "x != y", "lt": "x < y", "le": "x <= y", "gt": "x > y", "ge": "x >= y",
    "isnan": "x != x", "logical_not": "x == 0", "logical_and": "x != 0 && y != 0", "logical_or": "x != 0 || y != 0",
    "logical_xor": "(x != 0) != (y != 0)", "truth": "x != 0", "signbit": "SIGNBIT(x)",
    "isinf": "INFINITE(x)", "isposinf": "INFINITE(x) && x > 0", "isneginf": "INFINITE(x) && x < 0",
}
# fmt: on

NUMBERS = {
    name: i
    for i, name in enumerate(dict.fromkeys((*_ANY, *_NUMBERS, *_FLOATS, *_INTEGERS, *_BOOLS, *_CURVES, *_SPECIAL, *_DIVISORS)))
}
TESTS = {name: i for i, name in enumerate(_TESTS)}
SOURCES = {dtype: i for i, dtype in enumerate(TYPES)}


def map_program(name: str, dtype: DType) -> str:
    """The program that has an element-wise function."""
    if name in _SPECIAL or name in _DIVISORS:
        return "special"
    return "curves" if name in _CURVES and TYPES[dtype].kind == "float" else "map"


def map_cases(kind: str) -> dict[str, str]:
    """The element-wise functions that exist for a kind of type."""
    own = {"float": _NUMBERS | _FLOATS, "bool": _BOOLS}.get(kind, _NUMBERS | _INTEGERS)
    return {} if kind == "moved" else _ANY | own


def source(template: str, dtype: DType, double: bool) -> str:
    """The whole source of a program."""
    kind = TYPES[dtype]
    text = _template("map" if template in ("curves", "special") else template)
    if template in ("map", "curves", "special"):
        named = _CURVES if template == "curves" else map_cases(kind.kind)
        if template == "special":
            named = _SPECIAL if kind.kind == "float" else _DIVISORS
            text = _template("special") + text
        cases = [f"    case {NUMBERS[name]}: r = (T)({value}); break;" for name, value in named.items()]
    elif template == "test":
        cases = [f"    case {TESTS[name]}: r = {value}; break;" for name, value in _TESTS.items()]
    else:
        cases = _casts(double) if template == "cast" else []
    text = text.replace("@CASES@", "\n".join(cases))
    needs_bfloat = template == "cast" or dtype.name == "bfloat16"
    return kind.definitions(double) + _template("types") + (_BFLOAT if needs_bfloat else "") + text


def _casts(double: bool) -> list[str]:
    lines = []
    for dtype, number in SOURCES.items():
        kind = TYPES[dtype]
        if kind.kind == "moved" or (dtype.name == "float64" and not double):
            continue
        pointer = f"((__global const {kind.storage} *)a)"
        value = {"float16": f"vload_half(j, {pointer})", "bfloat16": f"bfloat_in({pointer}[j])"}
        loaded = value.get(dtype.name, f"{pointer}[j]")
        convert = "FROM_FLOAT" if kind.kind == "float" else "AS_T"
        lines.append(f"    case {number}: r = {convert}({loaded}); break;")
    return lines


@cache
def _template(name: str) -> str:
    return files(__package__).joinpath("templates", f"{name}.cl").read_text(encoding="utf-8")
