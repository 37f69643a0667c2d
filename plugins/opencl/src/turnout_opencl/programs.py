"""The source of a program: a template for one element type, with the cases of its switch.

One kernel serves all operators of a kind, by a number that picks the case: compiling a kernel takes a tenth of a second and more,
a switch that all work-items agree on costs nothing beside the memory traffic.
"""

from __future__ import annotations

import struct
from functools import cache
from importlib.resources import files
from typing import Any

from turnout.dtypes import DTYPES, DType, bool_, float32
from turnout_arrays.expressions import Language, library, table
from turnout_arrays.random import words_source
from turnout_aten.dtypes import LARGEST

_STORAGE = {
    "float32": "float", "float64": "double", "float16": "half", "bfloat16": "ushort", "bool": "uchar",
    "int8": "char", "int16": "short", "int32": "int", "int64": "long",
    "uint8": "uchar", "uint16": "ushort", "uint32": "uint", "uint64": "ulong",
    "complex64": "ulong", "complex128": "ulong2",
}  # fmt: skip
# How an element is loaded from a place of a pointer, and how a value is stored there.
_PLAIN = ("{p}[{i}]", "{p}[{i}] = {v}")
_ACCESS = {
    "float16": ("vload_half({i}, {p})", "vstore_half_rte({v}, {i}, {p})"),
    "bfloat16": ("bfloat_in({p}[{i}])", "{p}[{i}] = bfloat_out({v})"),
    "bool": ("{p}[{i}]", "{p}[{i}] = (uchar)(({v}) != 0)"),
}
_BFLOAT = """\
float bfloat_in(ushort bits) { return as_float((uint)bits << 16); }
ushort bfloat_out(float v) {
  const uint bits = as_uint(v);
  if (isnan(v)) return (ushort)((bits >> 16) | 0x40);
  return (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
"""


def lanes_of(dtype: DType) -> int:
    """Elements of a vector: it has 256 bits, but for small elements."""
    return 4 if dtype.itemsize == 8 else 8


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
        self._access = _ACCESS.get(name, _PLAIN)
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

    def loaded(self, pointer: str, at: str) -> str:
        """The expression of an element in the type that values are computed in."""
        return self._access[0].format(p=pointer, i=at)

    def stored(self, pointer: str, at: str, value: str) -> str:
        """The expression that stores a value."""
        return self._access[1].format(p=pointer, i=at, v=value)

    def definitions(self, double: bool, lanes: int = 0) -> str:
        """The macros that `templates/types.cl` asks for. Vectors have so many `lanes` where that is given."""
        wide = ("double" if double else "float") if self.kind == "float" else self.computed
        lines = [
            f"S {self.storage}", f"T {self.computed}", f"A {wide}",
            f"LD(p, i) ({self.loaded('(p)', 'i')})", f"ST(p, i, v) ({self.stored('(p)', 'i', '(v)')})",
            f"FLOATING {int(self.kind == 'float')}", f"SIGNED {int(self.kind in ('float', 'signed'))}",
            f"TRUTH {int(self.kind == 'bool')}", f"MOVES_ONLY {int(self.kind == 'moved')}",
            f"UNSIGNED_LONG {int(self.dtype.name == 'uint64')}",
            f"WIDE {int(self.kind == 'float' and not self.half)}", f"LANES {lanes or lanes_of(self.dtype)}",
            f"PLAIN {int(self.storage == self.computed and self.kind != 'moved')}",
        ]  # fmt: skip
        if double:
            lines.insert(0, "FP64 1")
        return "".join(f"#define {line}\n" for line in lines)


TYPES = {dtype: ElementType(dtype) for dtype in DTYPES.values()}

# ---- the cases of `map`: x, y, z are the operands, w is a number beside them

_OPENCL = Language("(T){}", library())


def _shared(*names: str) -> dict[str, str]:
    """Rows of `turnout_arrays.expressions`. Their first number is w, others are operands behind the inputs."""
    made = {}
    for name in names:
        row = table().functions[name]
        places = dict(zip("abc", "xyz", strict=True)) | dict(zip("pqr", ("w", *"xyz"[row.inputs :]), strict=False))
        made[name] = _OPENCL.written(row, places)
    return made


# fmt: off
_ANY = {
    **_shared(
        "add", "plus", "sub", "minus", "mul", "square", "maximum", "minimum", "addcmul", "sign", "threshold",
        "threshold_backward",
    ),
    "fill":    "y",
    "rsub":    "y - w * x",
    "clamp":   "SMALLER(LARGER(x, y), z)",  # bounds may be arrays
    "pow":     "POWER(x, y)",
}
_NUMBERS = {
    **_shared("neg", "relu"),
    "floor_divide": "FLOORED(x, y)",
    "trunc_divide": "TRUNCATED(x, y)",
    "remainder":    "REMAINDER(x, y)",
}
_FLOATS = {
    **_shared(
        "abs", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "reciprocal", "floor", "ceil", "trunc",
        "round", "erf", "sigmoid", "div", "lerp", "gelu", "gelu_tanh", "gelu_backward", "gelu_tanh_backward", "silu_backward",
        "sigmoid_backward", "tanh_backward", "mse", "mse_backward",
    ),
    "atan2": "atan2(x, y)",
}
# The rarer ones are a program of their own, compiled when one of them is first called.
_RARER = {
    **_shared(
        "atan", "cosh", "sinh", "tan", "log2", "log10", "hypot", "addcdiv", "silu", "mish", "softplus", "elu", "leaky_relu",
        "hardsigmoid", "hardswish", "hardshrink", "softshrink",
    ),
    "acos": "acos(x)", "acosh": "acosh(x)", "asin": "asin(x)", "asinh": "asinh(x)", "atanh": "atanh(x)", "exp2": "exp2(x)",
    "deg2rad": "x * (T)0.017453292519943295", "rad2deg": "x * (T)57.29577951308232",
    "sinc": "x == 0 ? (T)1 : sin(x * (T)M_PI_) / (x * (T)M_PI_)", "frac": "x - trunc(x)", "erfc": "erfc(x)",
    "copysign": "copysign(x, y)", "fmax": "fmax(x, y)", "fmin": "fmin(x, y)", "fmod": "fmod(x, y)",
    "heaviside": "x == 0 ? y : (T)(x > 0)",
    "logaddexp": "x == y ? x + (T)M_LN2_ : LARGER(x, y) + log1p(exp(-fabs(x - y)))",
    "logaddexp2": "x == y ? x + 1 : LARGER(x, y) + log1p(exp2(-fabs(x - y))) * (T)M_LOG2E_",
    "xlogy": "y != y ? y : x == 0 ? (T)0 : x * log(y)", "xlog1py": "y != y ? y : x == 0 ? (T)0 : x * log1p(y)",
    "entropy": "x != x ? x : x < 0 ? -(T)INFINITY : x == 0 ? (T)0 : -x * log(x)",
    "nan_to_num": "x != x ? y : isinf(x) ? (x > 0 ? z : w) : x",
    "lerp_by": _OPENCL.written(table().functions["lerp"], {"a": "x", "b": "y", "p": "z"}), "glu": "x / (1 + exp(-y))",
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
    **_shared("eq", "ne", "lt", "le", "gt", "ge", "isnan"),
    "logical_not": "x == 0", "logical_and": "x != 0 && y != 0", "logical_or": "x != 0 || y != 0",
    "logical_xor": "(x != 0) != (y != 0)", "truth": "x != 0", "signbit": "SIGNBIT(x)",
    "isinf": "INFINITE(x)", "isposinf": "INFINITE(x) && x > 0", "isneginf": "INFINITE(x) && x < 0",
}
# Functions whose expressions hold for vectors of floats too; compilers of CPUs have them in vectors only where we say so.
_VECTORS = frozenset((
    "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "atan2", "gelu", "gelu_tanh",
    "gelu_backward", "silu_backward", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "exp2", "log2",
    "log10", "erfc", "silu", "glu", "pow", "hypot",
))
# PoCL's sines of vectors are wrong for the smallest numbers, so these are our own (`templates/sines.cl`).
_SINES = {"sin": "sines(x, 0)", "cos": "sines(x, 1)"}
# fmt: on

NUMBERS = {
    name: i
    for i, name in enumerate(dict.fromkeys((*_ANY, *_NUMBERS, *_FLOATS, *_INTEGERS, *_BOOLS, *_RARER, *_SPECIAL, *_DIVISORS)))
}
TESTS = {name: i for i, name in enumerate(_TESTS)}
SOURCES = {dtype: i for i, dtype in enumerate(TYPES)}


def map_program(name: str, dtype: DType) -> str:
    """The program that has an element-wise function."""
    if name in _SPECIAL or name in _DIVISORS:
        return "special"
    return "elementary" if name in _RARER and TYPES[dtype].kind == "float" else "map"


def map_cases(kind: str) -> dict[str, str]:
    """The element-wise functions that exist for a kind of type."""
    own = {"float": _NUMBERS | _FLOATS, "bool": _BOOLS}.get(kind, _NUMBERS | _INTEGERS)
    return {} if kind == "moved" else _ANY | own


def source(template: str, dtype: DType, double: bool, vector: int = 1) -> str:
    """The whole source of a program."""
    kind = TYPES[dtype]
    if template.startswith("loop:"):
        return _loop(template, kind, double, vector)
    if template.startswith("sweep:"):
        return _sweep(template, kind, double)
    if template == "reduce":
        return _preamble(template, kind, double) + _reductions(kind)
    if template.startswith(("slide:", "correlate:")):
        name, rows, columns = template.split(":")
        blocks = f"#define ROWS {rows}\n#define {_COLUMNS[name]} {columns}\n"
        return _preamble(name, kind, double) + blocks + _template(name)
    text = _template("map" if template in ("elementary", "special") else template)
    if template in ("map", "elementary", "special"):
        named = _named(template, kind)
        cases = [f"    case {NUMBERS[name]}: r = (T)({value}); break;" for name, value in named.items()]
    elif template == "test":
        cases = [f"    case {TESTS[name]}: r = {value}; break;" for name, value in _TESTS.items()]
    else:
        cases = _casts(double) if template == "cast" else []
    return _preamble(template, kind, double) + text.replace("@CASES@", "\n".join(cases))


def _preamble(template: str, kind: ElementType, double: bool, lanes: int = 0) -> str:
    text = kind.definitions(double, lanes) + _template("types")
    if template == "random":
        text += "typedef ulong word64;\n" + words_source()
    if template == "cast" or kind.dtype.name == "bfloat16":
        text += _BFLOAT
    if template in ("map", "elementary", "special", "test", "cast") and kind.kind != "moved":
        text += _template("functions")
    return text + (_template("special") if template == "special" else "")


def _named(template: str, kind: ElementType) -> dict[str, str]:
    if template == "special":
        return _SPECIAL if kind.kind == "float" else _DIVISORS
    return _RARER if template == "elementary" else map_cases(kind.kind)


# ---- reductions: all of them in one program, or, for large arrays, a program of one, a sweep

# How a reduction takes in an element x around a centre c, how it joins partial results, and where it begins.
# fmt: off
_PICK = {"largest": "(({x} > {r}) | ({x} != {x})) ? {x} : {r}", "smallest": "(({x} < {r}) | ({x} != {x})) ? {x} : {r}"}
_STEPS = {
    "total":         ("r + x", "total", "0"),
    "product":       ("r * x", "product", "1"),
    "largest":       (_PICK["largest"].format(x="x", r="r"), "largest", "x"),
    "smallest":      (_PICK["smallest"].format(x="x", r="r"), "smallest", "x"),
    "some":          ("x != (R)0 ? x : r", "some", "0"),
    "every":         ("x == (R)0 ? x : r", "every", "1"),
    "deviation":     ("r + (x - c) * (x - c)", "total", "0"),
    "sizes":         ("r + SIZE(x)", "total", "0"),
    "squares":       ("r + x * x", "total", "0"),
    "powers":        ("r + pow(SIZE(x), (R)REAL_NUMBER(1))", "total", "0"),
    "nonzero":       ("x != (R)0 ? r + (R)1 : r", "total", "0"),
    "largest_size":  (_PICK["largest"].format(x="SIZE(x)", r="r"), "largest", "SIZE(x)"),
    "smallest_size": (_PICK["smallest"].format(x="SIZE(x)", r="r"), "smallest", "SIZE(x)"),
}
# fmt: on
REDUCTIONS = {name: i for i, name in enumerate(_STEPS)}
_NARROW = ("largest", "smallest", "some", "every", "largest_size", "smallest_size")  # those that need no wider type
# How extremes take in elements that are no NaN, by one instruction of most processors. The template looks for NaN apart.
_NUMBERS_ONLY = {
    name: f"({x} {'>' if name.startswith('largest') else '<'} r) ? {x} : r"
    for name, x in (("largest", "x"), ("smallest", "x"), ("largest_size", "SIZE(x)"), ("smallest_size", "SIZE(x)"))
}


def _reductions(kind: ElementType) -> str:
    rows = [(op, *_STEPS[name]) for name, op in REDUCTIONS.items() if name != "powers" or kind.kind == "float"]
    firsts = [f"      case {op}: r = {first}; break;" for op, _, _, first in rows]
    steps = [f"      case {op}: r = {step}; break;" for op, step, _, _ in rows]
    return _template("reduce").replace("@FIRSTS@", "\n".join(firsts)).replace("@STEPS@", "\n".join(steps))


def sweep_program(op: int) -> str:
    """The program of one reduction over large arrays."""
    return f"sweep:{list(_STEPS)[op]}"


def _sweep(program: str, kind: ElementType, double: bool) -> str:
    name = program.partition(":")[2]
    step, joined, first = _STEPS[name]
    defined = {"R": "T" if name in _NARROW else "A", "STEP(r, x, c)": f"({step})", "FIRST(x)": f"({first})"}
    # Powers are functions, which not every compiler of a CPU has in vectors.
    defined |= {"W": "1", "RV": "R"} if name == "powers" else {"W": "LANES", "RV": "PASTE(R, W)"}
    defined["JOIN(r, x)"] = f"({_STEPS[joined][0]})"
    if name in _NUMBERS_ONLY:
        defined["PICK(r, x)"] = f"({_NUMBERS_ONLY[name]})"
    if name in ("largest", "smallest"):
        defined["BEATS(x, r)"] = f"((x) {'>' if name == 'largest' else '<'} (r) || ((x) != (x) && (r) == (r)))"
    return _preamble("sweep", kind, double) + "".join(f"#define {k} {v}\n" for k, v in defined.items()) + _template("sweep")


# ---- convolutions

_COLUMNS = {"slide": "VECTORS", "correlate": "TAPS"}  # what a work-item has beside rows


def slide_program(rows: int, vectors: int) -> str:
    """The program of convolutions, whose work-items have so many channels of results and vectors of positions."""
    return f"slide:{rows}:{vectors}"


def correlate_program(rows: int, taps: int) -> str:
    """The program of gradients of weights, whose work-items have so many channels of results and elements of their windows."""
    return f"correlate:{rows}:{taps}"


# ---- loops: one function, compiled for how its operands lie


def loop_program(template: str, name: str, lines: str) -> str:
    """The program of a function over large arrays. `lines` says of each operand how its lines lie: see `_loop`."""
    return f"loop:{template}:{name}:{lines}"


def _loop(program: str, kind: ElementType, double: bool, vector: int) -> str:
    """The source of a `loop_program`.

    Per operand, "n" stands for a number, "e" for elements next to each other, "g" for those with gaps, "s" for one per line.
    """
    _, template, name, lines = program.split(":")
    given = [kind] * len(lines)
    made = kind
    if template == "choose":
        given[0] = TYPES[bool_]
        expression = "x ? y : z"
    elif template == "test":
        made, expression = TYPES[bool_], _TESTS[name]
    elif template == "cast":
        given[0] = TYPES[DTYPES[name]]
        convert = "FROM_FLOAT" if given[0].kind == "float" else "AS_T"
        expression = "x" if given[0] is kind else f"{convert}(x)"
    else:
        expression = f"(T)({_named(template, kind)[name]})"
    if kind.storage != "float" or (name not in _VECTORS and (name not in _SINES or not double)):
        vector = 1
    of_vectors = _SINES.get(name) or expression.removeprefix("(T)")
    operands, moved, scalars, vectors = [], [], [], []
    for at, (letter, line, each) in enumerate(zip("xyz", lines, given, strict=False), 1):
        number = f"NUMBER({at - 2 if template == 'choose' else at - 1})"
        operands.append(f"__global const {each.storage} *restrict p{letter}")
        loaded = f"({number})" if line == "n" else each.loaded(f"p{letter}", "j" if line == "e" else "0")
        if line != "n":
            moved.append(f"  p{letter} += at[{at}];")
        if line == "e":
            scalars.append(f"    const {each.computed} {letter} = {loaded};")
            vectors.append(f"    const VT {letter} = LOOSE_CONST(p{letter} + j);")
        elif line == "g":
            moved.append(f"  const long gap_{letter} = call.inner_step[{at}][0];")
            scalars.append(f"    const {each.computed} {letter} = {each.loaded(f'p{letter}', f'(j * gap_{letter})')};")
            vectors.append(f"    VT {letter};\n#pragma unroll\n    for (int l = 0; l < LANES; l++)")
            vectors.append(f"      ((T *)&{letter})[l] = p{letter}[(j + l) * gap_{letter}];")
        else:
            moved.append(f"  const {each.computed} {letter}_ = {loaded};")
            scalars.append(f"    const {each.computed} {letter} = {letter}_;")
            vectors.append(f"    const VT {letter} = (VT)({letter}_);")
    scalars.append(f"    {made.stored('o', 'j', expression)};")
    vectors.append(f"    LOOSE(o + j) = {of_vectors};")
    text = _preamble(template, kind, double, vector) + f"#define RESULT {made.storage}\n"
    text += (_template("sines") if vector > 1 and name in _SINES else "") + _template("loop")
    if template == "cast" and kind.kind == "moved":
        text = text.replace("  const T w = NUMBER(3);\n", "")
    parts = {"@OPERANDS@": ", ".join(operands), "@LINES@": "\n".join(moved)}
    parts |= {"@VECTORS@": "\n".join(vectors), "@ELEMENTS@": "\n".join(scalars)}
    for mark, value in parts.items():
        text = text.replace(mark, value)
    return text


def _casts(double: bool) -> list[str]:
    lines = []
    for dtype, number in SOURCES.items():
        kind = TYPES[dtype]
        if kind.kind == "moved" or (dtype.name == "float64" and not double):
            continue
        loaded = kind.loaded(f"((__global const {kind.storage} *)a)", "j")
        convert = "FROM_FLOAT" if kind.kind == "float" else "AS_T"
        lines.append(f"    case {number}: r = {convert}({loaded}); break;")
    return lines


@cache
def _template(name: str) -> str:
    return files(__package__).joinpath("templates", f"{name}.cl").read_text(encoding="utf-8")
