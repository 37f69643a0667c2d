"""Backward operators refuse gradients of impossible shapes where PyTorch does, and take those that it expands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from cases_in_both import in_torch, to_torch, to_turnout
from op_db.bridge import mapped

import turnout
from turnout.registry import find_operator
from turnout_conformance.cases import CASES, OperatorCase, calls

# differs from torch: its fast kernel alone refuses a gradient of fewer or more dims, which the others expand.
TAKEN = {"gelu_backward"}


def near(shape: torch.Size) -> Iterator[tuple[int, ...]]:
    """Shapes with a dim that is longer, a dim less, a dim more."""
    if shape and 0 not in shape:
        yield (*shape[:-1], shape[-1] + 1)
        yield (shape[0] + 1, *shape[1:])
        yield shape[1:]
    yield (2, *shape)


@pytest.mark.parametrize("case", [case for case in CASES if "backward" in case.op], ids=str)
def test_a_gradient_that_pytorch_refuses_for_its_shape_is_refused(case: OperatorCase) -> None:
    name, _, overload = case.op.partition(".")
    theirs, ours = getattr(getattr(torch.ops.aten, name), overload or "default"), find_operator(f"aten::{case.op}")
    places = [i for i, argument in enumerate(ours.schema.arguments) if argument.name.startswith("grad")]
    taken = []
    for (given, named), (args, kwargs) in zip(calls(case, "float32", to_torch), calls(case, "float32", to_turnout), strict=True):
        for i in [i for i in places if i < len(given) and isinstance(given[i], torch.Tensor)]:
            for shape in near(given[i].shape):
                try:  # first: for some of these calls PyTorch kills the process
                    ours(*args[:i], turnout.ones(shape), *args[i + 1 :], **kwargs)
                except turnout.errors.TurnoutError:
                    continue
                try:
                    theirs(*mapped([*given[:i], torch.ones(shape), *given[i + 1 :]], in_torch), **mapped(named, in_torch))
                except (RuntimeError, IndexError):
                    taken.append((ours.schema.arguments[i].name, shape))
    assert bool(taken) == (case.op in TAKEN), taken
