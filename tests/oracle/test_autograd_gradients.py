"""Gradients of every operator case against PyTorch's, first and second order, in float32 and float64."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

import turnout  # noqa: E402
from operator_cases import CASES, calls, close  # noqa: E402
from turnout.registry import find_operator  # noqa: E402

# differs from torch: the gradient of a weight is an error at backward here, at the call in torch.
CONSTANTS = {"nll_loss": 2, "nll_loss_forward": 2, "cross_entropy_loss": 2}
# differs from torch: it has no gradient there, or no second one.
ONLY_HERE = {
    "remainder.Scalar_Tensor", "logit_backward", "view_as_complex_copy", "hardsigmoid", "hardsigmoid_backward",
    "log_sigmoid_backward", "silu_backward", "mish_backward",
}  # fmt: skip
DIFFERENTIABLE = [case for case in CASES if case.differentiable and case.op not in ONLY_HERE]
# differs from torch: its silu has no gradient for complex numbers.
DIFFERENTIABLE = [case for case in DIFFERENTIABLE if case.op != "silu" or "float32" in case.dtypes]


def torch_leaf(data, dtype):
    made = torch.tensor(data, dtype=getattr(torch, dtype))
    return made.requires_grad_() if made.is_floating_point() or made.is_complex() else made


def turnout_leaf(data, dtype):
    made = turnout.tensor(data, dtype=turnout.dtypes.dtype_named(dtype))
    return made.requires_grad_() if made.is_floating_point() or made.is_complex() else made


def without_weight(case, args):
    at = CONSTANTS.get(case.op)
    return tuple(a.detach() if i == at and a is not None else a for i, a in enumerate(args))


def leaves(value):
    if isinstance(value, (list, tuple)):
        return [t for each in value for t in leaves(each)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return [value] if hasattr(value, "requires_grad") and value.requires_grad else []


def gradients(library, function, args, kwargs):
    """The first gradients, and those of the sum of their sines: None where there are none."""
    given = leaves((args, kwargs))
    outputs = leaves(function(*args, **kwargs))
    if not given or not outputs:
        return [], []
    seeds = [library.ones_like(o) * 0.75 for o in outputs]
    first = library.autograd.grad(outputs, given, seeds, create_graph=True, allow_unused=True)
    ends = [g.sin().sum() for g in first if g is not None and g.requires_grad]
    ends = [e.abs() if e.is_complex() else e for e in ends]
    second = library.autograd.grad(sum(ends[1:], ends[0]), given, allow_unused=True) if ends else []
    return first, second


def values(tensor):
    if isinstance(tensor, numpy.ndarray):
        return tensor
    plain = tensor.detach().resolve_conj()
    return numpy.asarray((plain + 0).tolist(), dtype=str(tensor.dtype).rpartition(".")[2])


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_first_and_second_gradients_are_those_of_torch(case):
    name, _, overload = case.op.partition(".")
    theirs = getattr(getattr(torch.ops.aten, name), overload or "default")
    ours = find_operator(f"aten::{case.op}")
    for dtype in case.dtypes:
        pairs = zip(calls(case, dtype, torch_leaf), calls(case, dtype, turnout_leaf), strict=True)
        for (args, kwargs), (own_args, own_kwargs) in pairs:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = gradients(torch, theirs, without_weight(case, args), kwargs)
            found = gradients(turnout, ours, without_weight(case, own_args), own_kwargs)
            for order, (e, f) in enumerate(zip(expected, found, strict=True), 1):
                where = f"order {order}, {dtype}, {args} {kwargs}"
                for x, y in zip(e, f, strict=False):
                    # No dependence on one side may be zeros on the other.
                    if x is not None and y is not None:
                        assert y.shape == tuple(x.shape), where
                        assert y.dtype.name == str(x.dtype).removeprefix("torch."), where
                    y = numpy.zeros_like(values(x)) if y is None and x is not None else y
                    x = numpy.zeros_like(values(y)) if x is None and y is not None else x
                    if x is not None:
                        assert close(numpy, values(y), values(x), max(case.tolerance, 1e-8)), f"{where}\n{x}\n{y}"
                assert len(e) == len(f) or not (e and f) or order == 1, where
