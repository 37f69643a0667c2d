"""Programs with a number in them end in turnout as in torch, however the number is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import turnout
from random_programs import numbers
from random_programs.numbers import Outcome, Program
from turnout_aten.functions.call_forms import NUMBER_FIRST

# Relative; torch's float32 powers and quotients differ in the last digits.
TOLERANCE = {"float32": 1e-5, "float64": 1e-9, "float16": 2e-3, "bfloat16": 2e-2, "complex64": 1e-5}


def expected(program: Program) -> Outcome:
    """What torch does with the number as it is written, or as a Python number where torch does not know that form.

    # differs from torch: NumPy's bools and complex numbers keep their kind; torch reads them as floats. Assignments and `split`
    take NumPy scalars, which torch refuses.
    """
    if program.form not in ("bool_", "complex64", "complex128", "longdouble"):
        found = numbers.run(program, torch)
        if not isinstance(found.error, TypeError):
            return found
    return numbers.run(program, torch, "python")


def may_differ(program: Program, found: Outcome, wanted: Outcome) -> str:
    """Why a difference is none of the meaning of numbers, or "" where it is."""
    number = program.number
    special = isinstance(number, complex) or program.dtype == "complex64"
    if (found.error is None) != (wanted.error is None):
        if program.dtype in ("float16", "bfloat16") and isinstance(found.error, turnout.errors.RangeError):
            return "differs from torch: all that writes a number into two-byte floats refuses what they cannot hold"
        if isinstance(number, complex) and isinstance(found.error, turnout.errors.DTypeError):
            return "differs from torch: no complex number is written into a real dtype, be it bool or its imaginary part 0"
        if program.dtype == "float16" and isinstance(number, complex):
            return "there is no complex dtype of two float16 numbers"
        if found.error is None and isinstance(number, float) and ("**" in program.text or "pow" in program.text):
            return "differs from torch: an exponent beyond the dtype of floats is infinite, not an error"
        if any(
            word in program.text for word in ("alpha=", "value=n", "zeta", "isin", "linspace", "celu", "norm", "xlogy", "lerp")
        ):
            return "the operators take different dtypes, and factors of other kinds"
    if special and (found.dtype, found.shape) == (wanted.dtype, wanted.shape):
        return "infinities and NaN of complex arithmetic"
    if program.dtype == "float16" and isinstance(number, complex):
        return "there is no complex dtype of two float16 numbers"
    if program.text == "t.div(n, x)" and program.dtype == "float16":
        return "torch rounds the number to float16 in this function, and not in n / x"
    if "sub(x, x, alpha=n)" in program.text and number == -(2**63):
        return "torch negates the factor, which wraps around"
    if ("elu(" in program.text or "zeta(" in program.text) and not (isinstance(number, int) or abs(number) < 1e6):
        return "the formula at infinity"
    return ""


def test_numbers_mean_what_they_mean_in_torch(seeds: Callable[[int], range]) -> None:
    for seed in seeds(8000):
        program = numbers.program(seed)
        found, wanted = numbers.run(program, turnout), expected(program)
        if _same(found, wanted) or may_differ(program, found, wanted):
            continue
        pytest.fail(f"seed {seed}\n{program.lines()}\ngives    {found}\nexpected {wanted}")


def test_the_table_says_which_numbers_torch_rounds(seeds: Callable[..., range]) -> None:
    """Beside 128 elements: of the last that fill no vector, torch rounds the product with `alpha`, too."""
    for seed in seeds(600, many=6000):
        call = numbers.rounding(seed, count=128)
        if (call.dtype, call.text.split("(")[0][-14:]) in (("float16", "smooth_l1_loss"), ("bfloat16", "nal.huber_loss")):
            continue  # differs from torch: see `_widened`
        found, wanted = call.run(torch, "cpu"), call.run(torch, "cpu", wide=True)
        assert numbers.same(found.tolist(), wanted.tolist()), f"seed {seed} {call.text} {call.dtype} {call.number}"


def _same(found: Outcome, wanted: Outcome) -> bool:
    if found.error is not None or wanted.error is not None:
        return found.error is not None and wanted.error is not None
    alike = (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    return alike and numbers.same(found.elements, wanted.elements, TOLERANCE.get(found.dtype, 0.0))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("t.ones(2, dtype=t.int32) + 2**70", OverflowError),
        ("t.ones(2, dtype=t.int64) * 2**64", OverflowError),
        ("t.ones(2, dtype=t.int64) + (-(2**63) - 1)", OverflowError),
        ("t.ones(2).fill_(2**70)", OverflowError),
        ("t.ones(2).add(1, alpha=2**70)", OverflowError),
        ("t.where(t.tensor([True, False]), 2**64 + 5, 0)", OverflowError),
        ("t.zeros(2).masked_fill(t.tensor([True, False]), 2**70)", OverflowError),
        ("t.arange(0, 2**64, 2**62)", OverflowError),
        ("t.full((1,), 300, dtype=t.uint8)", RuntimeError),
        ("t.full((1,), float('nan'), dtype=t.int32)", RuntimeError),
        ("t.zeros(2, dtype=t.uint8).fill_(-300)", RuntimeError),
        ("t.zeros(2, dtype=t.uint8).index_fill(0, t.tensor([0]), 300)", RuntimeError),
        ("t.zeros(2, dtype=t.uint8).scatter(0, t.tensor([0]), 300)", RuntimeError),
        ("t.nn.functional.pad(t.ones(2, dtype=t.uint8), (1, 1), value=300)", RuntimeError),
        ("t.randint(0, 300, (3,), dtype=t.uint8)", RuntimeError),
        ("t.empty(3, dtype=t.uint8).random_(-1, None)", RuntimeError),
        ("t.randperm(300, dtype=t.uint8)", RuntimeError),
    ],
)
def test_numbers_that_do_not_fit_are_errors_of_the_same_class(text: str, error: type[Exception]) -> None:
    for library in (turnout, torch):
        with pytest.raises(error):
            eval(text, {"t": library})


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp"])
@pytest.mark.parametrize("dim", [0, 1])
def test_long_running_results_agree_with_torch(name: str, dim: int) -> None:
    rows = torch.full((100_000, 3), 0.1 if name == "cumsum" else 1.0000001)
    given = rows if dim == 0 else rows.T
    found = getattr(turnout, name)(turnout.from_numpy(given.numpy()), dim)
    wanted: Any = getattr(torch, name)(given, dim)
    assert torch.allclose(torch.from_numpy(found.numpy()), wanted, rtol=1e-6, atol=0)


LDEXP = [
    ("float16", 1.0, 63), ("float32", 1e38, -200), ("float32", 0.0, 2**31 - 1), ("float32", 2.0**-149, 276),
    ("float32", 1.5, -149), ("bfloat16", 1.5, 3), ("float64", 5e-324, 2097), ("float64", 1.7e308, -2097), ("float32", 1.0, 2.5),
    ("float32", float("inf"), -500), ("int32", 3, 2),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "number", "power"), LDEXP)
def test_ldexp_has_the_range_and_dtype_of_torchs(dtype: str, number: float, power: float) -> None:
    found, wanted = (t.ldexp(t.tensor([number], dtype=getattr(t, dtype)), t.tensor([power])) for t in (turnout, torch))
    assert found.tolist() == wanted.tolist()
    assert found.dtype.name == str(wanted.dtype).removeprefix("torch.")


# ---- a number where a schema says Tensor

BESIDE = {
    "bool": [True, False], "uint8": [3, 250], "int8": [-3, 100], "int64": [5, -9], "float16": [1.5, -2.25],
    "bfloat16": [1.5, -2.25], "float32": [1.5, -2.25], "float64": [1.1, -2.7], "complex64": [1 + 2j, -0.5j],
}  # fmt: skip
NUMBERS = [True, False, 2, -3, 0, 300, 2**40, 1e-6, 2.5, float("inf"), float("nan"), 1e300, 1j]


def _calls(module: Any, family: str, x: Any, number: Any) -> dict[str, Callable[[], Any]]:
    """Every overload of a family, with a number for one of its tensors."""
    packet, in_place = getattr(module.ops.aten, family), getattr(module.ops.aten, family + "_")
    plain = packet.default if family == "floor_divide" else packet.Tensor
    calls = {
        "right": lambda: plain(x, number),
        "left": lambda: plain(number, x),
        "both": lambda: plain(number, 2),
        "in place": lambda: in_place.Tensor(x.clone(), number),
        "out": lambda: packet.out(number, x, out=module.empty(x.shape, dtype=module.complex64)),
    }
    if family in ("div", "divide"):
        calls["floor"] = lambda: packet.Tensor_mode(number, x, rounding_mode="floor")
        calls["trunc"] = lambda: in_place.Tensor_mode(x.clone(), number, rounding_mode="trunc")
    return calls


def _outcome(call: Callable[[], Any]) -> Outcome:
    try:
        return numbers.outcome(call())
    except Exception as error:  # noqa: BLE001 - whether there is one is compared
        return Outcome(error)


@pytest.mark.parametrize("family", NUMBER_FIRST)
def test_a_number_in_the_place_of_a_tensor_gives_what_it_gives_in_torch(family: str) -> None:
    for dtype, elements in BESIDE.items():
        for values in (elements, elements[0]):
            for number in NUMBERS:
                if dtype in ("float16", "complex64") and (isinstance(number, complex) or not abs(number) < 1e6):
                    continue  # no complex dtype of two float16 numbers; infinities and NaN of complex arithmetic
                ours = _calls(turnout, family, turnout.tensor(values, dtype=getattr(turnout, dtype)), number)
                theirs = _calls(torch, family, torch.tensor(values, dtype=getattr(torch, dtype)), number)
                for where, call in ours.items():
                    found, wanted = _outcome(call), _outcome(theirs[where])
                    assert _same(found, wanted), (family, dtype, values, number, where, found, wanted)
