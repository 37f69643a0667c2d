"""Calls with a number written in several ways: as a Python number, a NumPy scalar, a 0-dim array or a 0-dim tensor.

`program(seed)` draws an operator, method, factory or assignment with a number in it, `call(seed)` a row of the table of operator
cases. Each is run with its numbers as Python has them and in other forms, and must end alike: with the same dtype, shape and
elements, or both with an error.
"""

from __future__ import annotations

import math
import random
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from turnout_conformance.cases import CASES, build

Namespace = Any  # turnout or torch

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64")
WHOLE = (0, 1, 2, 3, -1, -2, 7, 100, 127, 128, 200, 255, 256, 300, -128, -129, -300, 2**31, 2**40, 2**53, 2**63 - 1, -(2**63))
NUMBERS = (*WHOLE, True, False, 0.0, 0.5, -1.5, 2.0, 2.75, 1e5, 1e300, -1e300, math.inf, math.nan, 1j, 0.5 - 2j)

OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "==", "!=", "<", "<=", ">", ">=")
CALLS = (
    "t.add(x, n)", "t.sub(x, n)", "t.mul(x, n)", "t.div(x, n)", "t.mul(n, x)", "t.sub(n, x)", "t.div(n, x)", "x.add_(n)",
    "x.mul_(n)", "x.fill_(n)", "t.add(x, x, alpha=n)", "t.sub(x, x, alpha=n)", "t.mul(x, n, out=o)", "t.add(x, n, out=o)",
    "t.true_divide(x, n, out=o)", "t.multiply(x, n, out=o)", "t.pow(x, n)", "t.pow(n, x)", "t.remainder(x, n)",
    "t.fmod(x, n)", "t.floor_divide(x, n)", "t.bitwise_and(x, n)", "t.eq(x, n)", "t.lt(x, n)", "t.full((2,), n)",
    "t.full((2,), n, dtype=x.dtype)", "t.full_like(x, n)", "x.new_full((2,), n)", "t.scalar_tensor(n)",
    "t.where(m, n, x)", "t.where(m, x, n)", "t.where(m, n, 0)", "x.masked_fill(m, n)", "x.masked_fill_(m, n)",
    "x.index_fill(0, i, n)", "x.scatter(0, i, n)", "t.linspace(0, n, 3)", "t.linspace(0, n, 3, dtype=x.dtype)",
    "t.addcmul(x, x, x, value=n)", "t.lerp(x, x, n)", "t.nn.functional.pad(x, (1, 1), value=n)",
    "t.nn.functional.threshold(x, 0, n)", "t.nn.functional.hardtanh(x, 0, n)", "t.nn.functional.leaky_relu(x, n)",
    "t.rsub(x, n)", "t.xlogy(x, n)", "t.float_power(x, n)", "x.fill_diagonal_(n)", "t.result_type(x, n)",
    "t.nn.functional.celu(x, n)", "t.nn.functional.elu(x, n)", "t.special.zeta(x, n)", "t.linalg.norm(x, n)",
    "t.isin(x, n)", "t.index_add(x, 0, i, x[:1], alpha=n)", "t.renorm(x.reshape(1, 3), n, 0, 1)", "n in x",
)  # fmt: skip
ASSIGNMENTS = ("x[0] = n", "x[:] = n", "x[m] = n", "x[i] = n", "x[...] = n")
IN_PLACE = ("+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>")
SMALL = (
    "t.arange(n)", "t.arange(0, n, 1)", "t.zeros(n)", "x.repeat(n)", "x.roll(n)", "x.select(0, n)", "x[n]", "x.sum(n)",
    "x.reshape(1, 3).tril(n)", "t.nn.functional.one_hot(i, n)", "x.softmax(n)", "x.unsqueeze(n)", "t.eye(n)", "x.split(n)",
)  # fmt: skip


@dataclass
class Program:
    """A call on x, a tensor of three elements; `n` is the number, `form` the way it is written."""

    text: str
    dtype: str
    number: Any
    form: str
    names: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> str:
        """The program as it can be run."""
        made = [
            "import numpy as np, turnout as t",
            f"x = t.tensor([1, 0, 2]).to(t.{self.dtype}); o = t.empty(3, dtype=x.dtype)",
            "m, i = t.tensor([True, False, True]), t.tensor([0])",
            f"n = {written(self.number, self.form)}",
            self.text if _is_statement(self.text) else f"print({self.text})",
        ]
        return "\n".join(made)


def _is_statement(text: str) -> bool:
    return "= n" in text and "==" not in text and "(" not in text.split("= n")[0]


def written(number: Any, form: str) -> str:
    """A number in one of the forms, as Python source."""
    plain = f"float('{number}')" if isinstance(number, float) and not math.isfinite(number) else repr(number)
    if form == "python":
        return plain
    if form == "tensor":
        kind = {float: ", dtype=t.float64", complex: ", dtype=t.complex128"}.get(type(number), "")
        return f"t.tensor({plain}{kind})"
    if form.startswith("array "):
        return f"np.array({plain}, np.{form.removeprefix('array ')})"
    return f"np.{form}({plain})"


def forms(number: Any) -> list[str]:
    """The NumPy types that hold a number exactly."""
    if isinstance(number, bool):
        return ["bool_"]
    if isinstance(number, int):
        return [k for k in ("int8", "int16", "int32", "int64", "uint8", "uint64") if _in(np.iinfo(k), number)]
    exact: Any = float if isinstance(number, float) else complex
    kinds = ("float16", "float32", "float64", "longdouble") if exact is float else ("complex64", "complex128")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [k for k in kinds if number != number or exact(getattr(np, k)(number)) == number]


def _in(limits: Any, number: int) -> bool:
    return bool(limits.min <= number <= limits.max)


def program(seed: int) -> Program:
    """One of the lines above with a number in a NumPy type."""
    pick = random.Random(seed)
    kind = pick.choice(("operator", "reflected", "in place", "call", "call", "assignment", "small"))
    number = pick.choice(NUMBERS)
    if kind == "operator":
        text = f"x {pick.choice(OPERATORS)} n"
    elif kind == "reflected":
        text = f"n {pick.choice(OPERATORS)} x"
    elif kind == "in place":
        text = f"x {pick.choice(IN_PLACE)}= n"
    elif kind == "call":
        text = pick.choice(CALLS)
    elif kind == "assignment":
        text = pick.choice(ASSIGNMENTS)
    else:
        text, number = pick.choice(SMALL), pick.choice((0, 1, 2, -1))
    return Program(text, pick.choice(DTYPES), number, pick.choice(forms(number)))


@dataclass
class Outcome:
    """What a call ended with."""

    error: BaseException | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    elements: Any = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return f"{self.dtype} {list(self.shape)} {self.elements}"


def run(program: Program, t: Namespace, form: str | None = None) -> Outcome:
    """Run a program with turnout or torch."""
    x = t.tensor([1, 0, 2]).to(getattr(t, program.dtype))
    names = {"t": t, "np": np, "x": x, "o": t.empty(3, dtype=x.dtype)}
    names["m"], names["i"] = t.tensor([True, False, True]), t.tensor([0])
    names["n"] = eval(written(program.number, form or program.form), names)
    statement = _is_statement(program.text)
    if program.text.startswith("x.fill_diagonal_"):
        names["x"] = x.reshape(1, 3)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if t.__name__ == "torch" else "error")
            if statement:
                exec(program.text, names)
                return outcome(names["x"])
            return outcome(eval(program.text, names))
    except Exception as error:  # noqa: BLE001 - its class is compared
        return Outcome(error)


def outcome(value: Any) -> Outcome:
    """A result as plain data."""
    if isinstance(value, (tuple, list)):
        parts = [outcome(v) for v in value]
        return Outcome(None, str([p.dtype for p in parts]), (len(parts),), [p.elements for p in parts])
    if hasattr(value, "tolist") and hasattr(value, "detach"):
        return Outcome(None, str(value.dtype).rpartition(".")[2], tuple(value.shape), value.tolist())
    kind = type(value).__name__.lower()
    return Outcome(None, kind, (), str(value).rpartition(".")[2] if kind == "dtype" else value)


def same(a: Any, b: Any, tolerance: float = 0.0) -> bool:
    """Whether nested lists hold the same numbers."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(v, w, tolerance) for v, w in zip(a, b, strict=True))
    if isinstance(a, complex) or isinstance(b, complex):
        a, b = complex(a), complex(b)
        return same(a.real, b.real, tolerance) and same(a.imag, b.imag, tolerance)
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or (math.isfinite(a) and math.isfinite(b) and abs(a - b) <= tolerance * max(abs(a), abs(b)))
    return bool(a == b)


def alike(a: Outcome, b: Outcome) -> bool:
    """Whether two calls ended alike: with one result, or both with an error."""
    if a.error is not None or b.error is not None:
        return a.error is not None and b.error is not None
    return a.dtype == b.dtype and a.shape == b.shape and same(a.elements, b.elements)


# ---- the table of operator cases


@dataclass
class Call:
    """A sample of an operator case, with some of its numbers in other forms."""

    op: str
    dtype: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    way: str
    forms: dict[int, str]  # the position among the numbers of the call -> the form

    def __str__(self) -> str:
        given = {index: form for index, form in self.forms.items() if form != "python"}
        return f"{self.op} by {self.way} in {self.dtype}: {self.args} {self.kwargs}, the numbers {given}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _count(value: Any) -> list[Any]:
    if _is_number(value):
        return [value]
    if isinstance(value, (list, tuple)):
        return [n for v in value for n in _count(v)]
    if isinstance(value, dict):
        return [n for v in value.values() for n in _count(v)]
    return []


ROWS = [(case, sample) for case in CASES for sample in case.samples if _count(list(sample.args)) or _count(sample.kwargs)]


def call(seed: int) -> Call:
    """A call from the table, with each number in a form of its own."""
    pick = random.Random(seed)
    case, sample = pick.choice(ROWS)
    numbers = _count(list(sample.args)) + _count(sample.kwargs)
    way = pick.choice(("overload", "function"))
    chosen = {}
    for index, number in enumerate(numbers):
        possible = [k for k in forms(number) if k != "longdouble"]
        kinds = ["python", *possible, *(f"array {k}" for k in possible)]
        if way == "overload":
            kinds.append("tensor")
        chosen[index] = pick.choice(kinds)
    return Call(case.op, pick.choice(case.dtypes), sample.args, dict(sample.kwargs), way, chosen)


def run_call(one: Call, t: Namespace, *, plain: bool) -> Outcome:
    """Run a call with its numbers as Python has them, or in their forms."""
    at = iter(range(10**6))

    def form(value: Any) -> Any:
        if _is_number(value):
            index = next(at)
            return value if plain else eval(written(value, one.forms[index]), {"np": np, "t": t})
        if isinstance(value, (list, tuple)):
            return [form(v) for v in value]
        if isinstance(value, dict):
            return {k: form(v) for k, v in value.items()}
        return value

    def make(data: Any, dtype: str) -> Any:
        return t.tensor(data, dtype=getattr(t, dtype))

    args, kwargs = form(list(one.args)), form(one.kwargs)
    args = [build(a, one.dtype, make) for a in args]
    kwargs = {k: build(v, one.dtype, make) for k, v in kwargs.items()}
    name, _, overload = one.op.partition(".")
    function = getattr(getattr(t.ops.aten, name), overload or "default")
    if one.way == "function":
        public = [getattr(room, name, None) for room in (t, t.nn.functional, t.linalg, t.special, t.fft)]
        function = next((f for f in public if f is not None), getattr(t.ops.aten, name))
    t.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return outcome(function(*args, **kwargs))
    except Exception as error:  # noqa: BLE001 - its class is compared
        return Outcome(error)


def shrunk(one: Call, fails: Any) -> Call:
    """The call with as many numbers as possible in Python's form, while it still fails."""
    for index in list(one.forms):
        fewer = Call(one.op, one.dtype, one.args, one.kwargs, one.way, {**one.forms, index: "python"})
        if fails(fewer):
            one = fewer
    return one


# ---- numbers beside two-byte floats, at which it matters whether they are rounded to them first

# A call on x, y, the sorted s and the number n -> whether PyTorch rounds n. `o` is for outputs.
BESIDE_HALVES = {
    "x + n": True, "n - x": True, "x.sub_(n)": True, "t.add(x, n, out=o)": True, "t.add(x, 3, alpha=n)": True,
    "t.add(x, y, alpha=n)": True, "x.sub_(y, alpha=n)": True, "t.rsub(x, y, alpha=n)": True,
    "x == n": True, "x != n": True, "x < n": True, "x <= n": True, "n < x": True, "n <= x": True, "x.eq_(n)": True,
    "x % n": True, "t.fmod(x, n)": True, "x.abs() ** n": True, "t.nn.functional.hardshrink(x, abs(n))": True,
    "t.isin(x, n)": True, "t.searchsorted(s, n)": True, "t.bucketize(n, s)": True,
    "x * n": False, "n * x": False, "x / n": False, "x // n": False, "x.mul_(n)": False, "x.div_(n)": False,
    "t.mul(x, n, out=o)": False, "t.div(x, n, rounding_mode=None)": False, "t.div(x, n, rounding_mode='trunc')": False,
    "t.floor_divide(x, n)": False, "t.lerp(x, y, n)": False, "t.addcmul(x, y, x, value=n)": False,
    "t.nn.functional.leaky_relu(x, n)": False, "t.nn.functional.softshrink(x, abs(n))": False,
    "t.nn.functional.huber_loss(x, y, reduction='none', delta=abs(n))": False,
    "t.nn.functional.smooth_l1_loss(x, y, reduction='none', beta=abs(n))": False,
    "t.addmm(x, x.T, y, beta=n, alpha=n)": False, "t.baddbmm(x[None], x.T[None], y[None], beta=n, alpha=n)": False,
}  # fmt: skip
OF_MATRICES = ("t.addmm", "t.baddbmm")


@dataclass
class Rounding:
    """One of the calls above on elements near the number."""

    text: str
    dtype: str
    number: Any
    elements: list[float] = field(repr=False)

    def layouts(self) -> list[str]:
        """How x may lie, or be there: once more by what was kept, among others, element by element, and inside vmap.

        # differs from torch: inside vmap, `addmm` and `baddbmm` are products and a sum, each of which rounds two-byte floats.
        """
        made = ["dense", "dense", "strided"]
        of_one = len(self.elements) < 99 and not self.text.startswith(OF_MATRICES)
        if of_one and "out=" not in self.text:
            made.append("mapped")
        return [*made, "one"] if of_one and not self.text.endswith(("(s, n)", "(n, s)")) else made

    def run(self, t: Namespace, device: Any, *, wide: bool = False, layout: str = "dense") -> Any:
        """The result; `wide`: computed in float32 of what the dtype holds, and rounded to the dtype."""
        dtype = getattr(t, self.dtype)
        x = t.tensor(self.elements).to(dtype)
        n = float(t.tensor(self.number, dtype=t.float64).to(dtype)) if wide and BESIDE_HALVES[self.text] else self.number
        x = x.to(t.float32 if wide else dtype).to(device)
        x = x.reshape(2, 2) if self.text.startswith(OF_MATRICES) else x
        if layout == "strided":
            x = t.stack([x, x], -1)[..., 0]
        names = {"t": t, "n": n, "x": x, "y": x.flip(0), "o": t.empty_like(x), "s": x.reshape(-1).sort()[0]}
        if layout == "mapped":
            made = t.vmap(lambda x, y, s: eval(self.text, {**names, "x": x, "y": y, "s": s, "o": x.clone()}))(
                *(names[key][None] for key in "xys")
            )[0]
        elif layout == "one":
            made = t.stack([eval(self.text, {**names, "x": x[k], "y": names["y"][k], "o": x[k].clone()}) for k in range(len(x))])
        else:
            made = eval(self.text, names)
        return made.to(dtype) if wide and made.dtype is t.float32 else made


def rounding(seed: int, *, count: int | None = None) -> Rounding:
    """A number that the dtype does not hold, with elements near it, and of other sizes."""
    pick = random.Random(seed)
    text, dtype = pick.choice(list(BESIDE_HALVES)), pick.choice(("float16", "bfloat16"))
    number = pick.choice((0.1, 1 / 3, 257.0, 257, 2049, 3.14159, -0.7, 1e-3, pick.uniform(-4, 4), pick.gauss(0, 100)))
    size = 4 if text.startswith(OF_MATRICES) else count or pick.choice((1, 3, 40))
    return Rounding(
        text, dtype, number, [pick.choice((number, pick.gauss(0, 3), number * pick.uniform(-3, 3))) for _ in range(size)]
    )
