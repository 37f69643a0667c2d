"""Calls that a compiled graph moves, shares or leaves out raise for no values of their tensors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import turnout
from turnout.errors import TurnoutError
from turnout.registry import find_operator
from turnout_conformance.batches import Call
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.making import of_each_kind
from turnout_tracer.compiling.optimiser import is_plain

EXTREMES = {
    "f": (0.0, -1.0, np.nan, np.inf, -np.inf, 1e30), "c": (0j, complex(np.nan, 0)), "i": (0, -1, 1, 100), "u": (0, 1, 255),
    "b": (False, True),
}  # fmt: skip


@pytest.mark.parametrize(
    "case", [case for case in CASES if is_plain(find_operator(f"aten::{case.op}"))], ids=lambda case: case.op
)
def test_a_call_that_may_be_moved_raises_for_no_values(case: OperatorCase) -> None:
    for dtype in of_each_kind(case, "cpu"):
        for sample in case.samples:
            call = Call(case, sample, dtype)
            examples = [each[0] for each in call.examples]
            for i, example in enumerate(examples):
                for value in EXTREMES[example.dtype.kind]:
                    given = [*examples[:i], np.full_like(example, value), *examples[i + 1 :]]
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        try:
                            call(*map(turnout.from_numpy, given))
                        except TurnoutError as error:
                            pytest.fail(f"{sample} of {dtype} with {value}: {error}")
