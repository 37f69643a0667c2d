"""`opcheck` on every operator case: no check may fail but those listed, and those have to."""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

import pytest

from turnout import library
from turnout.registry import REGISTRY
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.cases.model import ABOUT_STRIDES
from turnout_conformance.making import arguments, row_major, samples

MAY_ALIAS = "its results are views of one memory, though PyTorch's schema does not say so"
VALUES = "it reads a tensor as a number, as in PyTorch, so that it has neither a shape without data nor a general trace"
TRIANGLE = "it reads one triangle of a symmetric matrix, and its gradient is symmetric"
STATISTICS = "PyTorch declares the running statistics as not differentiable"
TOTAL = "the total weight of the sample fits its own targets only, and not the shorter ones that are derived from them"
TOLERANCE = "its default tolerance is a float that is computed from a size, and the size becomes a number by that"
DIVISOR = "it divides by a number of elements, which must be a number"
NO_SLICES = "the kernel accepts slices without elements, of which there is one at most, and the fake kernel refuses them"
TOTAL_SIZE = "output_size fits the given repeats only, and not the shorter ones that are derived from them"
HALF = "PyTorch refuses a spectrum of another length than last_dim_size // 2 + 1"

# Operator -> the checks that fail, and why that is right.
EXPECTED: dict[str, tuple[set[str], str]] = {
    **dict.fromkeys(("unsafe_split.Tensor", "unsafe_split_with_sizes"), ({"test_schema"}, MAY_ALIAS)),
    **dict.fromkeys(("linalg_pinv.atol_rtol_tensor", "linalg_lstsq"), ({"test_faketensor"}, TOLERANCE)),
    **dict.fromkeys(("cov", "corrcoef"), ({"test_faketensor"}, DIVISOR)),
    "unique_dim": ({"test_faketensor"}, NO_SLICES),
    "repeat_interleave.self_Tensor": ({"test_faketensor"}, TOTAL_SIZE),
    "narrow.Tensor": ({"test_faketensor"}, VALUES),
    "tensor_split.tensor_indices_or_sections": (
        {"test_faketensor", "test_aot_dispatch_static", "test_aot_dispatch_dynamic"}, VALUES
    ),
    **dict.fromkeys(
        ("linalg_cholesky_ex", "linalg_cholesky", "cholesky", "_linalg_eigh", "linalg_eigh", "linalg_eigvalsh"),
        ({"test_gradients"}, TRIANGLE),
    ),
    **dict.fromkeys(
        ("_native_batch_norm_legit_functional", "_batch_norm_with_update_functional"), ({"test_gradients"}, STATISTICS)
    ),
    "_fft_c2r": ({"test_gradients"}, HALF),
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
    """A part of the cases, mixed; `--programs 1000` runs all."""
    mixed = list(CASES)
    Random(0).shuffle(mixed)
    for seed in [*seeds(120)][: len(mixed)][shard::SHARDS]:
        case = mixed[seed % len(mixed)]
        found = failures(case)
        expected, _ = EXPECTED.get(case.op, (set(), ""))
        assert set(found) == expected, "\n".join([f"{case.op}: --seed {seed} --programs 1", *found.values()])


def test_the_listed_operators_have_cases() -> None:
    assert set(EXPECTED) <= {case.op for case in CASES}
