"""Traced calls: a replay on other values must give what the operator gives, and its gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import turnout
from turnout import autograd
from turnout.errors import KernelWarning
from turnout.operators.values import flat
from turnout_conformance.cases import OperatorCase, Sample, T, build
from turnout_conformance.cases.differentiable import CONSTANTS
from turnout_conformance.comparing import find
from turnout_conformance.making import Make, arguments


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


def alike(found: Any, expected: Any, close: float) -> bool:
    """Whether two results are equal in dtype, place and shape, and their numbers up to a relative difference of `close`."""
    if not isinstance(found, turnout.Tensor) or not isinstance(expected, turnout.Tensor):
        pairs = isinstance(found, (list, tuple)) and isinstance(expected, (list, tuple)) and len(found) == len(expected)
        return all(alike(a, b, close) for a, b in zip(found, expected, strict=True)) if pairs else found == expected
    if shown(found) == shown(expected):
        return True
    if (found.dtype, found.device, found.shape) != (expected.dtype, expected.device, expected.shape):
        return False
    if not close or not (found.is_floating_point() or found.is_complex()):
        return False
    a, b = found.detach().cpu(), expected.detach().cpu()
    return bool(turnout.allclose(a, b, rtol=close, atol=close, equal_nan=True))


class Way(NamedTuple):
    """A way to trace a function, and the relative difference that numbers of a replay may have."""

    trace: Callable[..., Any]
    close: float = 0.0


PLAIN = Way(lambda function: turnout.trace(function))


def check_replays(
    function: Callable[..., Any], samples: Iterable[tuple[Sample, str]], make: Make, ways: tuple[Way, ...] = (PLAIN,)
) -> None:
    """Trace on each sample in each way, replay on its values reversed, compare with the function there."""
    with warnings.catch_warnings():
        # Empty reductions, item() of its own case, and formulas that branch on values: those of prod are traced along the branch
        # that they took.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("error", KernelWarning)
        for sample, dtype in samples:
            args, kwargs = arguments(sample, dtype, make)
            others, given = (build([reversed_data(a) for a in sample.args], dtype, make) for _ in range(2))
            turnout.manual_seed(1)
            expected = function(others, kwargs)
            for way in ways:
                replay = way.trace(function)(args, kwargs)
                turnout.manual_seed(1)
                found = replay(given, kwargs)
                assert alike(found, expected, way.close), (sample, found, expected)
                assert alike(given, others, way.close), "inputs are written alike"


def call_of(case: OperatorCase) -> Callable[[list[Any], dict[str, Any]], Any]:
    """The operator as a function of its arguments."""
    op = find(case.op)
    return lambda args, kwargs: op(*args, **kwargs)


def gradients_of(
    case: OperatorCase, call: Callable[[list[Any], dict[str, Any]], Any] | None = None
) -> Callable[[list[Any], dict[str, Any]], Any]:
    """The gradients of the operator's results as a function of its arguments; None where there are none.

    `call` is what calls the operator, `call_of(case)` by default.
    """
    call = call or call_of(case)
    has_constants = case.op in CONSTANTS  # read here: a call's signature has all that a compiled function reads, samples too

    def gradients(args: list[Any], kwargs: dict[str, Any]) -> Any:
        if has_constants:
            args = [args[0], *(a.detach() if isinstance(a, turnout.Tensor) else a for a in args[1:])]
        outputs = [t for t in flat(call(args, kwargs)) if isinstance(t, turnout.Tensor) and t.requires_grad]
        inputs = [t for t in flat(args) if isinstance(t, turnout.Tensor) and t.requires_grad]
        if not outputs:
            return None
        return autograd.grad(outputs, inputs, [turnout.ones_like(t) for t in outputs], allow_unused=True)

    return gradients
