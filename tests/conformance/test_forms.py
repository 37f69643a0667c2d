"""The functional, the out and the in-place form of an operator give the same bits on cpu, whichever serves each.

No result shares memory with an argument, or another result, of which it is no alias: a write into one would change the other.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

import turnout
from random_programs.layouts import Combination, here, of_images
from turnout.errors import ShapeError
from turnout_aten.generated.groups import STRUCTURED
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.comparing import find, flat, tensors
from turnout_conformance.making import arguments, row_major

# A functional form -> its out form and its in-place form.
FORMS = {
    name: [next((v for v, k in served.items() if k == kind), "") for kind in ("out", "inplace")]
    for served, *_ in STRUCTURED.values()
    for name, functional in served.items()
    if functional == "functional"
}


def bits(results: Any) -> list[bytes]:
    return [bytes(t.contiguous().numpy().tobytes()) for t in tensors(results)]


def differing(case: OperatorCase) -> list[str]:
    """The forms that give other bits. Small samples and those of images, which compiled kernels take."""
    wrong = []
    out, inplace = FORMS[f"aten::{case.op}"]
    for sample in (*case.samples, *of_images(case)):
        combination = Combination(case, sample, ("contiguous",))
        args, kwargs = combination.arguments(here)
        try:
            made = flat(find(case.op)(*args, **kwargs))
        except ShapeError:  # an image beside a vector
            continue
        for name in filter(None, (out, inplace)):
            op = turnout.registry.find_operator(name)
            args, kwargs = combination.arguments(here)
            if [str(a.type) for a in op.schema.arguments if not a.is_out] != [
                str(a.type) for a in find(case.op).schema.arguments
            ]:
                continue  # a form of another overload
            if name == out:
                kwargs |= {a.name: turnout.empty_like(t) for a, t in zip(op.schema.out_arguments, made, strict=True)}
            elif not isinstance(args[0], turnout.Tensor) or (args[0].shape, args[0].dtype) != (made[0].shape, made[0].dtype):
                continue
            if bits(flat(op(*args, **kwargs))) != bits(made):
                wrong.append(f"{name} gives other bits than {case.op} for {[t.shape for t in tensors(args)]}")
    return wrong


def test_all_forms_of_an_operator_give_the_same_bits(seeds: Any) -> None:
    cases = spread([case for case in CASES if f"aten::{case.op}" in FORMS], seeds(60, many=5000))
    assert [line for case in cases for line in differing(case)] == []


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
