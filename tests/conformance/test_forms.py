"""No result of an operator shares memory with an argument, or another result, of which it is no alias."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from turnout.operators.values import flat
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.comparing import find, tensors
from turnout_conformance.making import arguments, row_major


def spread(cases: list[OperatorCase], seeds: Any) -> list[OperatorCase]:
    """Some of the cases, spread evenly over them all; many seeds take each."""
    return [cases[at] for at in sorted({int(seed * 0.6180339887498949 % 1 * len(cases)) for seed in seeds})]


# PyTorch promises that what is behind these names is not looked at for writes into it.
UNSAFE = ("unsafe_split.Tensor", "unsafe_split_with_sizes", "unsafe_chunk")
EVERY_DTYPE = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")


def shared(case: OperatorCase) -> list[str]:
    """The dtypes in which a result lies in the memory of another tensor, and nobody knows."""
    found = []
    for dtype in EVERY_DTYPE:
        for sample in case.samples:
            with contextlib.suppress(Exception):  # a dtype that the operator has not
                args, kwargs = arguments(sample, dtype, row_major("cpu"))
                others = tensors((args, kwargs))
                for result in tensors(flat(find(case.op)(*args, **kwargs))):
                    if any(not result.is_alias_of(x) and np.shares_memory(result.array, x.array) for x in others):
                        found.append(f"{case.op} of {dtype}")
                    others.append(result)
    return found


def test_a_result_that_is_no_alias_has_memory_of_its_own(seeds: Any) -> None:
    cases = [case for case in CASES if case.op not in UNSAFE and not find(case.op).schema.is_view]
    drawn = spread(cases, seeds(60, many=5000))
    assert [line for case in (*drawn, *(c for c in cases if c.op == "sign")) for line in shared(case)] == []
