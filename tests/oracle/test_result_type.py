"""`turnout.result_type` against PyTorch's, for every pair of dtypes in every rank, and with numbers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import turnout  # noqa: E402
from turnout.dtypes import DTYPES  # noqa: E402
from turnout.errors import DTypeError  # noqa: E402

NUMBERS = (True, 2, 2.5, 1j)
RANKS = ((2,), ())


def answer(function, *values):
    """The name of a dtype, "error" where the function raises."""
    try:
        return str(function(*values)).removeprefix("torch.").removeprefix("turnout.")
    except (RuntimeError, DTypeError):
        return "error"


def pairs():
    """(name, rank) of either operand."""
    operands = [(name, rank) for name in DTYPES for rank in RANKS]
    return [(a, b) for a in operands for b in operands]


def tensors(operand):
    name, rank = operand
    return torch.zeros(rank, dtype=getattr(torch, name)), turnout.zeros(rank, dtype=DTYPES[name], device="meta")


@pytest.mark.parametrize("a", [(name, rank) for name in DTYPES for rank in RANKS], ids=str)
def test_every_pair_of_tensors_promotes_as_in_torch(a):
    differences = []
    for first, b in [pair for pair in pairs() if pair[0] == a]:
        (x, own_x), (y, own_y) = tensors(first), tensors(b)
        expected, found = answer(torch.result_type, x, y), answer(turnout.result_type, own_x, own_y)
        # Turnout has no complex32: half and a complex number meet in complex64.
        if expected != found and not (expected == "complex32" and found == "complex64"):
            differences.append((first, b, expected, found))
    assert differences == []


@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_every_tensor_promotes_with_a_number_as_in_torch(number):
    differences = []
    for operand in [(name, rank) for name in DTYPES for rank in RANKS]:
        x, own = tensors(operand)
        expected = answer(torch.result_type, x, number), answer(torch.result_type, number, x)
        found = answer(turnout.result_type, own, number), answer(turnout.result_type, number, own)
        if expected != found and expected != ("complex32", "complex32"):
            differences.append((operand, expected, found))
    assert differences == []


@pytest.mark.parametrize("first", NUMBERS, ids=str)
@pytest.mark.parametrize("second", NUMBERS, ids=str)
def test_every_pair_of_numbers_promotes_as_in_torch(first, second):
    assert answer(turnout.result_type, first, second) == answer(torch.result_type, first, second)
