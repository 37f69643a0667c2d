"""`opcheck` on every operator case: no check may fail but those listed, and those have to."""

from __future__ import annotations

import warnings
from pathlib import Path
from random import Random
from typing import Any

import pytest

from turnout import library
from turnout.registry import REGISTRY
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.cases.model import ABOUT_STRIDES
from turnout_conformance.making import arguments, row_major, samples

MAY_ALIAS = "its results are views of one memory, though PyTorch's schema does not say so"
INDICES = "the indices that it splits at are values of a tensor, and constants of a trace on real tensors, as in PyTorch"
SCALE = "its scale is a number, which comes from a size: numbers are not symbols"
TOTAL = "the total weight is a constant: PyTorch refuses one that requires a gradient"

# Operator -> the checks that fail, and why that is right.
EXPECTED: dict[str, tuple[set[str], str]] = {
    **dict.fromkeys(("unsafe_split.Tensor", "unsafe_split_with_sizes"), ({"test_schema"}, MAY_ALIAS)),
    "tensor_split.tensor_indices_or_sections": ({"test_aot_dispatch_static", "test_aot_dispatch_dynamic"}, INDICES),
    "scaled_dot_product_attention": ({"test_faketensor"}, SCALE),
    "nll_loss_backward": ({"test_gradients"}, TOTAL),
}  # fmt: skip
LAYOUTS = "test_inputs"


def failures(case: OperatorCase) -> dict[str, str]:
    """The checks that fail on the first sample of a case."""
    dtype = "float64" if "float64" in case.dtypes else case.dtypes[0]
    found: dict[str, str] = {}
    for sample, name in list(samples(case, "cpu", (dtype,)))[:1]:
        args, kwargs = arguments(sample, name, row_major("cpu"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            report = library.opcheck(REGISTRY.find(f"aten::{case.op}"), args, kwargs, raise_exception=False)
        found |= {each.check: str(each) for each in report.found}
    if case.op in ABOUT_STRIDES:
        found.pop(LAYOUTS, None)
    return found


SHARDS = 8  # tests that workers can share


@pytest.mark.parametrize("shard", range(SHARDS))
def test_opcheck_finds_no_fault_in_an_operator(shard: int, seeds: Any) -> None:
    """A part of the cases, mixed; `make sweeps` runs all."""
    mixed = list(CASES)
    Random(0).shuffle(mixed)
    for seed in [*seeds(60, many=1000)][: len(mixed)][shard::SHARDS]:
        case = mixed[seed % len(mixed)]
        found = failures(case)
        expected, _ = EXPECTED.get(case.op, (set(), ""))
        assert set(found) == expected, "\n".join([f"{case.op}: --seed {seed} --programs 1", *found.values()])


def test_the_note_says_how_many_operators_are_listed() -> None:
    note = Path(__file__).parents[2] / "docs" / "notes" / "0021-how-operators-are-checked.md"
    assert f"What is left are {len(EXPECTED)} operators" in " ".join(note.read_text().split())


def test_the_listed_operators_have_cases() -> None:
    assert set(EXPECTED) <= {case.op for case in CASES}
