"""The functional, the out and the in-place form of an operator give the same bits on cpu, whichever serves each."""

from __future__ import annotations

from typing import Any

import turnout
from random_programs.layouts import Combination, here, of_images
from turnout.errors import ShapeError
from turnout_aten.generated.groups import STRUCTURED
from turnout_conformance.cases import CASES, OperatorCase
from turnout_conformance.comparing import find, flat, tensors

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
    cases = [case for case in CASES if f"aten::{case.op}" in FORMS]
    chosen = {int(seed * 0.6180339887498949 % 1 * len(cases)) for seed in seeds(60, many=5000)}
    assert [line for at in sorted(chosen) for line in differing(cases[at])] == []
