"""Pairs of values for `assert_close`: tensors, arrays, numbers and structures, near to each other or not, with random arguments.

`program(seed)` is a list of lines that call the library `t` and NumPy `np`. The last line is the call.
"""

from __future__ import annotations

import math
import random

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool", "complex64", "complex128",
)  # fmt: skip
SHAPES = ((), (1,), (3,), (2, 2), (0,), (2, 0))
FLOATS = (0.0, -0.0, 1.0, -1.5, 2.75, 1e-6, 1e5, "float('inf')", "float('-inf')", "float('nan')")
STEPS = (0, 0, 0, 1e-9, 9e-8, 1.2e-7, 9e-6, 1.1e-5, 1e-3, 1.5e-2, 0.5)  # around the tolerances of each dtype
FLAGS = ("equal_nan", "check_dtype", "check_stride", "check_device", "check_layout", "allow_subclasses")


def program(seed: int) -> list[str]:
    """The lines of a seed."""
    rng = random.Random(seed)
    lines: list[str] = []
    actual, expected = _pair(rng, lines, 2)
    given = [f"{name}={rng.choice((True, False))}" for name in rng.sample(FLAGS, rng.choice((0, 0, 1, 2)))]
    if rng.random() < 0.3:
        given += [f"rtol={rng.choice((0, 1e-3, 0.1))}", f"atol={rng.choice((0, 1e-5, 0.4))}"]
    elif rng.random() < 0.05:
        given.append(rng.choice(("rtol=0", "atol=0")))
    return [*lines, f"t.testing.assert_close({', '.join([actual, expected, *given])})"]


def _pair(rng: random.Random, lines: list[str], depth: int) -> tuple[str, str]:
    kind = rng.random()
    if depth and kind < 0.2:
        inner = [_pair(rng, lines, depth - 1) for _ in range(rng.randrange(3))]
        forms = [rng.choice(("[{}]", "({},)")) if inner else "[{}]" for _ in range(2)]
        texts = [form.format(", ".join(each[i] for each in inner)) for i, form in enumerate(forms)]
        return texts[0], "[]" if rng.random() < 0.1 else texts[1]
    if depth and kind < 0.3:
        inner = [_pair(rng, lines, depth - 1) for _ in range(rng.randrange(3))]
        names = ["'a'", "'b'"] if rng.random() < 0.8 else ["'a'", "'c'"]
        one = "{" + ", ".join(f"{'ab'[i]!r}: {each[0]}" for i, each in enumerate(inner)) + "}"
        return one, "{" + ", ".join(f"{names[i]}: {each[1]}" for i, each in reversed(list(enumerate(inner)))) + "}"
    if kind < 0.45:
        return _number(rng), _number(rng)
    if kind < 0.5:
        odd = ("None", "'a'", "True", "1", "t.ones(2)", "np.ones(2)", "np.float32(1)", "{1}", "range(2)", "[1, 1]")
        return rng.choice(odd), rng.choice(odd)
    return _tensors(rng, lines)


def _number(rng: random.Random) -> str:
    choices = ("0", "1", "-3", "True", "False", "0.0", "1.0", "1.0 + 1e-8", "1.0 + 2e-7", "1j", "1 + 1j", "float('nan')", "2**60")
    return rng.choice((*choices, "float('inf')", "np.float32(1)", "np.int64(1)", "np.bool_(True)", "np.complex64(1j)"))


def _tensors(rng: random.Random, lines: list[str]) -> tuple[str, str]:
    dtype, shape, number = rng.choice(DTYPES), rng.choice(SHAPES), len(lines)
    other = dtype if rng.random() < 0.85 else rng.choice(DTYPES)
    whole = dtype.startswith(("int", "uint", "bool"))
    values = [str(rng.randrange(4) if whole else rng.choice(FLOATS)) for _ in range(math.prod(shape))]
    step = rng.choice(STEPS)
    moved = [f"{v} + {step if not whole else rng.choice((0, 0, 0, 1))}" if rng.random() < 0.5 else v for v in values]
    if dtype == "complex64" and rng.random() < 0.5:
        moved = [f"{v} + {step}j" for v in moved]
    made = other if "j" not in "".join(moved) else "complex64"
    last = shape if rng.random() < 0.95 else (*shape, 1)
    wide = "complex128" if made.startswith("complex") else "int64" if whole else "float64"
    lines.append(f"a{number} = t.tensor([{', '.join(values)}], dtype=t.{dtype}).reshape({shape})")
    lines.append(f"e{number} = t.tensor([{', '.join(moved)}], dtype=t.{wide}).to(t.{made}).reshape({last})")
    if len(shape) == 2 and rng.random() < 0.2:
        lines.append(f"e{number} = e{number}.t().contiguous().t()")
    if rng.random() < 0.1 and "bfloat16" not in (dtype, made):
        return f"a{number}.numpy()", f"e{number}.numpy()"
    if rng.random() < 0.05:
        return f"t.empty_like(a{number}, device='meta')", f"t.empty_like(e{number}, device='meta')"
    return f"a{number}", f"e{number}"
