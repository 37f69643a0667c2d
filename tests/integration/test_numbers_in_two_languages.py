"""Numbers that stand in Python and in C, or in two packages of which neither needs the other: the copies are equal."""

from __future__ import annotations

import re
from ast import literal_eval
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS, SPEED = "plugins/kernels/src/turnout_kernels", "plugins/speed/src/turnout_speed"
AUTOGRAD, ARRAYS = "plugins/autograd/src/turnout_autograd", "plugins/arrays/src/turnout_arrays"
CUDA = "plugins/cuda/src/turnout_cuda"

# Each number: where it stands, a file and a pattern whose group is the number.
NUMBERS = {
    "parts of the work of a kernel": [
        (f"{KERNELS}/native.py", r"^MOST_PARTS = (.+)$"), (f"{KERNELS}/native/module.c", r"#define MOST_PARTS (\d+)"),
    ],
    "dims of an array in a kernel": [
        (f"{KERNELS}/native.py", r"^MAX_DIMS = (.+)$"), (f"{KERNELS}/native/job.h", r"#define MAX_DIMS (\d+)"),
    ],
    "rows of a tile of products": [
        (f"{KERNELS}/matrix_products.py", r"^_ROWS, _BYTES = (\d+),"),
        (f"{KERNELS}/native/batches.h", r"#define ROWS_OF_TILE (\d+)"),
    ],
    "elements that expand writes": [
        (f"{AUTOGRAD}/formulas/broadcasting.py", r"^_SMALL = (\d+)"), (f"{SPEED}/native/sweeps.h", r"#define SPREADS (\d+)"),
    ],
    "bytes of a gradient that is added in new memory": [
        (f"{AUTOGRAD}/engine/accumulation.py", r"^FEW_BYTES = ([\d <]+)"), (f"{SPEED}/native/sweeps.h", r"#define SUMMED (\d+)"),
    ],
    "arguments of a compiled call": [
        (f"{SPEED}/callables.py", r"^MOST = (\d+)"), (f"{SPEED}/native/shared.h", r"#define MOST (\d+)"),
    ],
    "operands that are no arguments of a step": [
        (f"{SPEED}/replacements.py", r"^_OF_STEP, _COUNT, _FREEDOM = (.+)$"),
        (f"{SPEED}/native/programs.h", r"FROM_STEP = (\d+), .* COUNT = (\d+), FREEDOM = (\d+) "),
    ],
    "elements of a row that one block sorts": [
        (f"{CUDA}/sorting.py", r"^_MOST = (\d+)"), (f"{CUDA}/kernels/sorting.cu", r"#define MOST_SORTED (\d+)"),
    ],
    "the cube in the tanh form of gelu": [
        (f"{ARRAYS}/activations.py", r"^_TANH_CUBE = (\S+)"), (f"{AUTOGRAD}/formulas/activations.py", r"a, b = .*\), (0\.\d+)$"),
    ],
}  # fmt: skip


def found(file: str, pattern: str) -> str:
    (match,) = re.finditer(pattern, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    return ", ".join(match.groups())


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_that_stands_twice_is_the_same(name: str) -> None:
    values = {file: eval(found(file, pattern), {}) for file, pattern in NUMBERS[name]}
    assert len(values) == len(NUMBERS[name]) > 1
    assert len(set(values.values())) == 1, values


def test_dtypes_of_kernels_have_the_same_numbers_in_both_languages() -> None:
    words = {"F32": "f", "F64": "d", "F16": "e", "BF16": "E", "BYTE": "?"}
    listed = found(f"{KERNELS}/native/job.h", r"^enum \{ (.*), I64, DTYPES \};").split(", ")
    codes = found(f"{KERNELS}/native.py", r"^CODES = (.+)$").replace("F32", "0").replace("F64", "1")
    assert [words[each] for each in listed] == sorted(literal_eval(codes), key=literal_eval(codes).__getitem__)
    assert sorted(literal_eval(codes).values()) == list(range(len(listed)))
