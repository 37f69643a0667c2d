"""Every operator case traced: a replay on other values gives what the operator gives, with its gradients, on each backend."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from turnout.graphs import TraceWarning

import turnout
from operator_cases import CASES, OperatorCase, T, build
from turnout import autograd
from turnout.dtypes import dtype_named
from turnout.registry import find_operator

DEVICES = ("cpu", "opencl")
# Operators that refuse a gradient of their class weights.
WEIGHTED = {
    "nll_loss",
    "nll_loss_forward",
    "cross_entropy_loss",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
}


def reversed_data(value: Any) -> Any:
    """Other values for the floating tensors of a sample, of the same shapes."""
    if isinstance(value, T) and value.dtype is None and isinstance(value.data, list):
        return T(value.data[::-1])
    return [reversed_data(v) for v in value] if isinstance(value, list) else value


def shown(result: Any) -> Any:
    """Dtypes, places and values, comparable where nan is among them."""
    if isinstance(result, turnout.Tensor):
        return result.dtype.name, result.device.type, repr(result.detach().cpu().tolist())
    return [shown(each) for each in result] if isinstance(result, (list, tuple)) else result


def maker(device: str, tracked: bool = False) -> Callable[[Any, str], turnout.Tensor]:
    def make(data: Any, dtype: str) -> turnout.Tensor:
        made = turnout.tensor(data, dtype=dtype_named(dtype), device=device)
        return made.requires_grad_() if tracked and made.is_floating_point() else made

    return make


def check(case: OperatorCase, function: Callable[..., Any], dtype: str, make: Callable[[Any, str], Any]) -> None:
    """Trace on each sample, replay on its values reversed, compare with the function there."""
    for sample in case.samples:
        kwargs = build(sample.kwargs, dtype, make)
        traced = turnout.trace(function)(build(list(sample.args), dtype, make), kwargs)
        others = [build([reversed_data(a) for a in sample.args], dtype, make) for _ in range(2)]
        turnout.manual_seed(1)
        found = traced(others[0], kwargs)
        turnout.manual_seed(1)
        assert shown(found) == shown(function(others[1], kwargs)), sample
        assert shown(others[0]) == shown(others[1]), "inputs are written alike"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_replay_gives_what_the_operator_gives(
    case: OperatorCase, device: str, need_device: Callable[[str], None]
) -> None:
    need_device(device)
    op = find_operator(f"aten::{case.op}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # empty reductions, and item() of its own case
        for dtype in case.dtypes:
            check(case, lambda args, kwargs: op(*args, **kwargs), dtype, maker(device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", [c for c in CASES if c.differentiable and "float32" in c.dtypes], ids=str)
def test_a_replay_gives_the_gradients_of_the_operator(
    case: OperatorCase, device: str, need_device: Callable[[str], None]
) -> None:
    need_device(device)
    op = find_operator(f"aten::{case.op}")

    def gradients(args: list[Any], kwargs: dict[str, Any]) -> Any:
        if case.op in WEIGHTED:
            args = [args[0], *(a.detach() if isinstance(a, turnout.Tensor) else a for a in args[1:])]
        made = op(*args, **kwargs)
        outputs = [t for t in (made if isinstance(made, (list, tuple)) else [made]) if t.requires_grad]
        inputs = [t for a in args for t in (a if isinstance(a, list) else [a])]
        inputs = [t for t in inputs if isinstance(t, turnout.Tensor) and t.requires_grad]
        if not outputs:
            return None
        return autograd.grad(outputs, inputs, [turnout.ones_like(t) for t in outputs], allow_unused=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A formula that branches on values, as prod's on zeros, is traced along the branch that it took.
        warnings.simplefilter("ignore", TraceWarning)
        check(case, gradients, "float32", maker(device, tracked=True))
