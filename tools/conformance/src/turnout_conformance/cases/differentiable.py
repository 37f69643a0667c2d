"""The operator cases that have gradients, and their calls as functions of the tensors that gradients are taken of.

Gradients are taken with respect to all floating tensors of a sample, in float64, or in complex128 where there is no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import turnout
from turnout.dtypes import dtype_named
from turnout.registry import REGISTRY
from turnout_aten.shapes.activations import GELU
from turnout_conformance.cases import CASES
from turnout_conformance.cases.model import OperatorCase, S, T, calls, row, some, values

# Operators that cannot be called by name in the shared table: those for gradients, and those that only copy.
M, N, V = values(2, 3), values(2, 3, seed=3), values(3, seed=5)
OWN = [
    row(op, samples, lambda np, *args, **kwargs: None)
    for op, samples in {
        "threshold_backward": (S(T(M), T(N), 0.5),),
        "sigmoid_backward": (S(T(M), T(N)),),
        "tanh_backward": (S(T(M), T(N)),),
        "gelu_backward": tuple(S(T(M), T(N), approximate=word) for word in GELU),
        "select_backward": (S(T(V), (2, 3), 0, 1), S(some(2), (2, 3), 1, -1)),
        "slice_backward": (S(T(M), (5, 3), 0, 1, 5, 2), S(T(M), (2, 4), 1, 0, 3, 1)),
        "diagonal_backward": (S(some(2), (2, 3), 0, 0, 1), S(some(2), (2, 3), 1, 0, 1)),
        "unfold_backward": (S(some(2, 3), (5,), 0, 3, 2), S(some(4, 2), (5,), 0, 2, 1)),
        "_softmax_backward_data": (S(T(M), T(N), 1, turnout.float64), S(T(V), some(3), 0, turnout.float64)),
        "_log_softmax_backward_data": (S(T(M), T(N), 1, turnout.float64), S(T(V), some(3), 0, turnout.float64)),
        "nll_loss_backward": tuple(
            S(T(grad), T(M), T([2, 0], "int64"), None, reduction, -100, T(total))
            for grad, reduction, total in ((values(2), 0, 0.0), (values(), 1, 2.0), (values(), 2, 2.0))
        ),
        "mse_loss_backward": (
            S(T(M), T(N), T(V), 0), S(some(), T(M), T(N), 1), S(some(), T(N), T(V), 1), S(some(), T(M), T(N), 2)
        ),
        "native_dropout_backward": (S(T(M), T([[1, 0, 1], [0, 1, 1]], "bool"), 2.0),),
        "_unsafe_view": (S(T(M), (3, 2)),),
        "_to_copy": (S(T(M)), S(T(M), dtype=turnout.float64)),
        "zero": (S(T(M)),),
    }.items()
]  # fmt: skip

# Where the value is not differentiable, so that differences say nothing.
TIED = {"sort.stable", "sort"}
# Arguments whose gradient is refused, by operator.
CONSTANTS = dict.fromkeys(("nll_loss", "nll_loss_forward", "cross_entropy_loss"), "weight")
CONSTANTS["nll_loss_backward"] = "total_weight"
CONSTANTS["binary_cross_entropy"] = "weight"
CONSTANTS["binary_cross_entropy_with_logits"] = "pos_weight"
# Random results; what is checked of them stands in tests/plugins.
RANDOM = {
    "native_dropout", "bernoulli", "bernoulli.p", "bernoulli.Tensor", "uniform", "random", "random.from", "random.to", "cauchy",
    "exponential", "geometric", "log_normal", "normal", "normal_functional", "normal.Tensor_float", "normal.float_Tensor",
    "normal.Tensor_Tensor", "poisson",
}  # fmt: skip

PRECISE = ("float64", "complex128")
DIFFERENTIABLE = [case for case in (*CASES, *OWN) if case.differentiable and set(PRECISE) & set(case.dtypes)]
DIFFERENTIABLE = [case for case in DIFFERENTIABLE if case.op not in TIED]


def leaf(data: Any, dtype: str) -> turnout.Tensor:
    """A float or complex tensor as a leaf that requires a gradient, any other as it is."""
    made = turnout.tensor(data, dtype=dtype_named(dtype))
    return made.requires_grad_() if made.is_floating_point() or made.is_complex() else made


def leaves(value: Any) -> list[turnout.Tensor]:
    """The leaves in an argument structure."""
    if isinstance(value, (list, tuple)):
        return [t for each in value for t in leaves(each)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return [value] if isinstance(value, turnout.Tensor) and value.requires_grad else []


def replaced(value: Any, found: dict[int, turnout.Tensor]) -> Any:
    """The structure with other tensors in the places of its leaves."""
    if isinstance(value, (list, tuple)):
        return type(value)(replaced(v, found) for v in value)
    if isinstance(value, dict):
        return {k: replaced(v, found) for k, v in value.items()}
    return found.get(id(value), value) if isinstance(value, turnout.Tensor) else value


def as_function(call: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Callable[..., Any], list[turnout.Tensor]]:
    """A call as a function of its leaves."""
    given = leaves((args, kwargs))

    def function(*tensors: turnout.Tensor) -> Any:
        found = {id(old): new for old, new in zip(given, tensors, strict=True)}
        return call(*replaced(args, found), **replaced(kwargs, found))

    return function, given


def sample_calls(case: OperatorCase) -> list[tuple[Any, Any]]:
    """The calls with every floating tensor a leaf, but for arguments whose gradient is refused."""
    names = [a.name for a in REGISTRY.find(f"aten::{case.op}").schema.arguments]
    constant = CONSTANTS.get(case.op)
    found = []
    for args, kwargs in calls(case, next(d for d in PRECISE if d in case.dtypes), leaf):
        given = tuple(a.detach() if n == constant and a is not None else a for n, a in zip(names, args, strict=False))
        found.append((given, kwargs))
    return found
