"""The table of element-wise functions: each row within its error on every device that compiles it, and no expression twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
from pretended_cuda import pretended

import turnout
from turnout_arrays.expressions import Expression, Language, library, table
from turnout_cuda import programs
from turnout_opencl import pointwise as of_opencl
from turnout_opencl import programs as opencl_programs

ROOT = Path(__file__).parents[2]
ROWS = table().functions
P, Q, R = 2.0, 20.0, 0.5  # the numbers of a call; products with them are exact
PI = "3.14159265358979323846264338327950288"  # more digits than a float has
CUBE = 0.044715


def erf(x: Any) -> Any:
    """SciPy's; of long doubles, which it does not have, by a series without cancellation: Abramowitz and Stegun 7.1.6."""
    if x.dtype != np.longdouble:
        return scipy.special.erf(x)
    size = np.minimum(np.abs(x), 7)  # erf 7 is 1 - 4e-23
    term = total = size
    for n in range(1, 300):
        term = term * (2 * size * size / (2 * n + 1))
        total = total + term
    return np.copysign(np.minimum(total * np.exp(-size * size) * (2 / np.sqrt(np.longdouble(PI))), 1), x)


def normal_share(x: Any) -> Any:
    """The share of a normal distribution below x. A row needs it beside 1: far below 0 it may be 0."""
    return scipy.special.ndtr(x) if x.dtype != np.longdouble else (1 + erf(x * np.sqrt(np.longdouble(0.5)))) / 2


def larger_term(a: Any, b: Any, c: Any) -> Any:
    return np.maximum.reduce([np.abs(each) for each in (a, b, P * b, c, P * b * c, P * (b / c))])


# What each row computes, in a wider dtype, in NumPy's and SciPy's words.
# fmt: off
EXACT: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "square": np.square, "reciprocal": np.reciprocal, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a),
    "plus": np.add, "minus": np.subtract, "mul": np.multiply, "div": np.divide,
    "add": lambda a, b: a + b * P, "sub": lambda a, b: a - b * P,
    "addcmul": lambda a, b, c: a + P * b * c, "addcdiv": lambda a, b, c: a + P * (b / c),
    "lerp": lambda a, b: b - (b - a) * (1 - P),
    "mse": lambda a, b: (a - b) ** 2, "mse_backward": lambda a, b, c: P * (b - c) * a,
    "maximum": np.maximum, "minimum": np.minimum, "sign": lambda a: np.nan_to_num(np.sign(a)),
    "relu": lambda a: np.maximum(a, 0), "threshold": lambda a: np.where(a <= P, Q, a),
    "threshold_backward": lambda a, b: np.where(b <= P, 0, a), "clamp": lambda a: np.clip(a, P, Q),
    "leaky_relu": lambda a: np.where(a > 0, a, a * P), "hardshrink": lambda a: np.where(np.abs(a) <= P, 0, a),
    "softshrink": lambda a: np.where(np.abs(a) <= P, 0, a - np.sign(a) * P),
    "hardsigmoid": lambda a: np.clip(a + 3, 0, 6) / 6, "hardswish": lambda a: a * np.clip(a + 3, 0, 6) / 6,
    "gt": np.greater, "ge": np.greater_equal, "lt": np.less, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
    "isnan": np.isnan,
    "abs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint,
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "atan": np.arctan,
    "erf": erf, "hypot": np.hypot, "tanh_backward": lambda a, b: a * (1 - b * b), "sigmoid": scipy.special.expit,
    "sigmoid_backward": lambda a, b: a * b * (1 - b),
    "silu": lambda a: a * scipy.special.expit(a),
    "silu_backward": lambda a, b: a * scipy.special.expit(b) * (1 + b * scipy.special.expit(-b)),
    "softplus": lambda a: np.where(a * P > Q, a, np.logaddexp(0, a * P) / P), "log_sigmoid": lambda a: -np.logaddexp(0, -a),
    "mish": lambda a: a * np.tanh(np.logaddexp(0, a)), "elu": lambda a: np.where(a > 0, a * Q, np.expm1(a * R) * P * Q),
    "gelu": lambda a: a * normal_share(a),
    "gelu_backward": lambda a, b: a * (normal_share(b) + b * np.exp(-b * b / 2) / np.sqrt(2 * b.dtype.type(PI))),
    "gelu_tanh": lambda a: a * scipy.special.expit(2 * np.sqrt(2 / a.dtype.type(PI)) * (a + CUBE * a**3)),
    "gelu_tanh_backward": lambda a, b: a * slope_of_gelu_tanh(b),
}
# fmt: on


def slope_of_gelu_tanh(x: Any) -> Any:
    line = 2 * np.sqrt(2 / x.dtype.type(PI))
    share = scipy.special.expit(line * (x + CUBE * x**3))
    return share + x * share * (1 - share) * line * (1 + 3 * CUBE * x * x)


def numbers(row: Expression) -> tuple[float, ...]:
    return tuple(value for name, value in zip("pqr", (P, Q, R), strict=True) if name in row.words())


def kernels(row: Expression, inputs: list[Any], out: Any) -> Any:
    pointwise = pytest.importorskip(
        "turnout_kernels.pointwise", reason="the extension module is not built: there is no C compiler"
    )
    known = row.name in pointwise.POINTWISE
    return out if known and pointwise.apply(row.name, tuple(inputs), out, numbers(row)) is not NotImplemented else None


def opencl(row: Expression, inputs: list[Any], out: Any) -> Any:
    given: list[Any] = [turnout.from_numpy(each).to("opencl").array for each in inputs]
    made = turnout.from_numpy(out).to("opencl")
    if row.name in opencl_programs.TESTS:
        of_opencl.run_test(row.name, made.array, *given)
    elif row.name not in opencl_programs.NUMBERS or row.name == "clamp":
        return None
    else:
        first, *others = numbers(row) or (0,)
        of_opencl.run_map(row.name, made.array, *given, *others, w=first)
    return made.cpu().numpy()


@pytest.fixture(scope="module")
def cuda() -> Iterator[Callable[..., Any]]:
    kernel_of = {row: name for rows in programs.ELEMENTWISE.values() for name, row in rows.items()}

    def compute(row: Expression, inputs: list[Any], out: Any) -> Any:
        if row.name not in kernel_of:
            return None
        given = [turnout.from_numpy(each).to("pretended").array for each in inputs]
        made = turnout.from_numpy(out).to("pretended")
        name = kernel_of[row.name]
        repeats = (1, given[1].size, 0.0) if row.inputs == 2 and name in programs.ELEMENTWISE["arithmetic"] else ()
        size, dtype = given[0].size, inputs[0].dtype.name
        passed = (*given, made.array, size, *repeats, *numbers(row))
        backend.xp.programs.over_elements(f"of_{name}", dtype, size, passed, packed=True)
        return made.cpu().numpy()

    with pretended() as backend:
        yield compute


WIDER = {"float32": np.float64, "float64": np.longdouble}


def drawn(seed: int, dtype: str) -> list[Any]:
    """Three arrays of 2^14 numbers: of every size, near 1, and special values."""
    random = np.random.default_rng(seed)
    limits = np.finfo(dtype)
    power = 300 if dtype == "float64" else 30
    tiny, large = float(limits.smallest_subnormal), float(limits.max) / 1.1
    special = np.array([0.0, -0.0, 1.0, -1.0, tiny, large, -large, np.inf, -np.inf, np.nan])
    made = []
    for _ in range(3):
        sizes = random.choice([-1, 1], 1 << 13) * 10.0 ** random.uniform(-power, power, 1 << 13)
        each = np.concatenate([sizes, random.normal(0, 4, (1 << 13) - special.size), special])
        made.append(random.permutation(each).astype(dtype))
    return made


@pytest.mark.parametrize("dtype", WIDER)
@pytest.mark.parametrize("device", ["kernels", "opencl", "cuda"])
def test_each_row_is_within_its_error(device: str, dtype: str, seeds: Any, request: pytest.FixtureRequest) -> None:
    if np.finfo(WIDER[dtype]).eps == np.finfo(dtype).eps:
        pytest.skip("long doubles have no more digits than doubles here")
    if device == "opencl":
        request.getfixturevalue("need_device")("opencl")
    compute = request.getfixturevalue("cuda") if device == "cuda" else {"kernels": kernels, "opencl": opencl}[device]
    assert EXACT.keys() == ROWS.keys()
    wrong, served = [], 0
    for seed in seeds(1, many=64):
        arrays = drawn(seed, dtype)
        for name, row in ROWS.items():
            inputs = arrays[: row.inputs]
            with np.errstate(all="ignore"):
                wide = [each.astype(WIDER[dtype]) for each in inputs]
                exact = EXACT[name](*wide)
                found = compute(row, inputs, np.empty(1 << 14, "?" if row.is_question else dtype))
                served += found is not None
                if found is not None:
                    wrong += [f"{name} (seed {seed}): {said}" for said in [problem(row, found, exact, wide)] if said]
    assert not wrong, "\n".join(wrong)
    assert served >= len(ROWS) // 2


def problem(row: Expression, found: Any, exact: Any, inputs: list[Any]) -> str:
    """What is wrong with results of a row."""
    if row.is_question:
        return "" if np.array_equal(found, exact) else "another answer"
    rounded = exact.astype(found.dtype)
    unit = np.abs(rounded)
    if row.unit:
        a, b, c = (*inputs, *[np.ones_like(inputs[0])] * 2)[:3]
        unit = np.maximum(unit, np.abs(a) if row.unit == "a" else larger_term(a, b, c)).astype(found.dtype)
    if row.unit == "a":  # far out, a gradient is a product of 0 and infinity, in PyTorch too
        near = np.all([np.abs(each) < 1e9 for each in inputs], axis=0)
        unit, rounded, found, exact = unit[near], rounded[near], found[near], exact[near]
        inputs = [each[near] for each in inputs]
    within = np.isfinite(unit) & np.isfinite(rounded) & np.isfinite(found) & (unit > np.finfo(unit.dtype).tiny * 1e8)
    off = np.abs(found.astype(exact.dtype) - exact)[within] / np.spacing(unit[within])
    at = int(np.argmax(off)) if off.size else 0
    if off.size and off[at] > row.error:
        return f"{off[at]:.3g} units at {[float(each[within][at]) for each in inputs]}, more than {row.error}"
    other = ~within & (np.isnan(found) != np.isnan(rounded)) & np.isfinite(unit)
    return f"{found[other][0]} for {rounded[other][0]} at {[float(each[other][0]) for each in inputs]}" if other.any() else ""


def test_no_expression_is_written_by_hand_that_a_row_has() -> None:
    """What OpenCL and the kernels have of their own, in the words of the table: none is a row, and none is there twice."""
    words = {"x": "a", "y": "b", "z": "c", "w": "p", "p[0]": "p", "p[1]": "q"}

    def plain(text: str) -> str:
        text = re.sub(r"\(T\)|V\(\w+\)|MATHS\((\w+)\)", r"\1", text)
        text = re.sub(r"p\[\d\]|\b[xyzw]\b", lambda found: words[found[0]], text)
        return re.sub(r"[\s()]", "", text)

    header = (ROOT / "plugins/kernels/src/turnout_kernels/native/pointwise.h").read_text(encoding="utf-8")
    own = [plain(text) for text in re.findall(r"^    X\(\w+, (.*)\) *\\?$", header, re.MULTILINE)]
    parts = vars(opencl_programs)
    named = {name: text for kind in ("_ANY", "_NUMBERS", "_FLOATS", "_RARER", "_TESTS") for name, text in parts[kind].items()}
    own += [plain(text) for name, text in named.items() if name not in ROWS]
    assert len(own) == len(set(own)) > 30
    floats = parts["_ANY"] | parts["_NUMBERS"] | parts["_FLOATS"] | parts["_RARER"]
    written = {name for name, text in floats.items() if name in ROWS and opencl_programs._shared(name)[name] != text}
    # Bounds may be arrays there, and PoCL's sines of vectors are wrong for the smallest numbers.
    assert written | parts["_SINES"].keys() == {"clamp", "sin", "cos"}
    rows = {plain(row.text) for row in ROWS.values()}
    assert not rows & set(own)
    for file in (ROOT / "plugins/cuda/src/turnout_cuda/kernels").glob("*.cu"):
        text = file.read_text(encoding="utf-8")
        assert not rows & {plain(each) for each in re.findall(r"OF(?:_TWO)?\((.*)\)\)", text)}, file.name


def test_the_header_of_the_kernels_is_that_of_the_table() -> None:
    header = ROOT / "plugins/kernels/src/turnout_kernels/native/expressions.h"
    if not header.exists():
        pytest.skip("turnout-kernels was not built here")
    listed = re.findall(r"^    X\((\w+), ", header.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(listed) == {
        name for name, row in ROWS.items() if not row.words() & {"sin", "cos", "tan", "sinh", "cosh", "atan", "log2", "log10"}
    }
    native = pytest.importorskip("turnout_kernels._native")
    assert {*native.QUESTIONS} == {name for name, row in ROWS.items() if row.is_question and row.inputs == 2}


def test_a_helper_is_written_as_a_function_or_in_place() -> None:
    row = table().helpers["silu_slope"]
    called = Language("{}f", library(), "my_{}")
    head = lambda name, parameters: f"float {name}(float {parameters[0]})"  # noqa: E731
    assert called.define(row, head, "float") == (
        "float my_silu_slope(float x) { float e = exp(-fabs(x)); float s = 1 / (1 + e); "
        "return x > 0 ? s * (1 + x * (e * s)) : e * s * (1 + x * s); }"
    )
    assert called.written(ROWS["silu_backward"], {}) == "my_silu_slope(b) * a"
    assert Language("{}", library()).written(ROWS["sigmoid"], {"a": "x + 1"}) == "(1 / (1 + exp(-(x + 1))))"
    assert not Language("{}", {"exp": "exp"}).has(ROWS["silu_backward"])
