"""Calls of every operator that has a tangent rule, with the tangents that the rule says and those that gradients imply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import turnout
from turnout import func
from turnout.operators.values import flat
from turnout_conformance.cases import OperatorCase
from turnout_conformance.cases.differentiable import CONSTANTS, DIFFERENTIABLE, leaf, leaves, replaced
from turnout_conformance.cases.model import S, T, calls, values
from turnout_conformance.comparing import find


def rule_of(op: Any) -> Any:
    turnout.ones(1).requires_grad_()
    from turnout_autograd.tangents import rule

    return rule(op)


def random_like(tensors: list[turnout.Tensor], seed: int) -> list[turnout.Tensor]:
    draw = np.random.default_rng(seed)
    made = []
    for t in tensors:
        values = draw.uniform(-1, 1, t.shape) + (1j * draw.uniform(-1, 1, t.shape) if t.is_complex() else 0)
        made.append(turnout.from_numpy(np.asarray(values, t.dtype.name)))
    return made


class Sample:
    """A call of one operator, with a tangent for each of its leaves, and which of its results have gradients."""

    def __init__(self, case: OperatorCase, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.case = case
        self.op = find(case.op)
        self.rule = rule_of(self.op)
        self.args = args
        self.kwargs = kwargs
        self.inputs = leaves((args, kwargs))
        self.tangents = random_like(self.inputs, 5)
        self.places = [
            i for i, t in enumerate(flat(self.op(*args, **kwargs))) if isinstance(t, turnout.Tensor) and t.requires_grad
        ]

    def of(self, tensors: Sequence[turnout.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with other tensors in the places of the leaves."""
        found = {id(old): new for old, new in zip(self.inputs, tensors, strict=True)}
        return replaced(self.args, found), replaced(self.kwargs, found)

    def results(self, tensors: Sequence[turnout.Tensor]) -> list[Any]:
        args, kwargs = self.of(tensors)
        return flat(self.op(*args, **kwargs))

    def detached(self) -> list[turnout.Tensor]:
        return [t.detach() for t in self.inputs]

    def combinations(self) -> list[list[turnout.Tensor | None]]:
        """All tangents, and where there are several, each alone."""
        each = range(len(self.tangents) if len(self.tangents) > 1 else 0)
        return [self.tangents, *([t if i == alone else None for i, t in enumerate(self.tangents)] for alone in each)]


# Gradients of functions that are defined for real numbers only: they are not asked about complex ones.
REAL_ONLY = {
    "gelu_backward", "mse_loss_backward", "nll_loss_backward", "nll_loss_forward", "_softmax_backward_data",
    "_log_softmax_backward_data", "upsample_linear1d_backward", "upsample_bilinear2d_backward", "upsample_trilinear3d_backward",
    "_upsample_bilinear2d_aa_backward", "_upsample_bicubic2d_aa_backward", "_upsample_lanczos2d_aa_backward",
    "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward",
}  # fmt: skip


def complex_leaf(data: Any, dtype: str) -> turnout.Tensor:
    """A leaf of complex numbers where the sample has real ones."""
    made = leaf(data, "float64" if dtype == "complex128" else dtype).detach()
    if made.dtype is not turnout.float64:
        return made
    return turnout.complex(made, made.flip(tuple(range(made.ndim))) * 0.7 + 0.3).requires_grad_()


def hermitian_leaf(data: Any, dtype: str) -> turnout.Tensor:
    """The same as a positive definite matrix."""
    made = complex_leaf(data, dtype).detach()
    return (made @ made.mH + turnout.eye(made.shape[-1])).requires_grad_()


# Operators that read one triangle of their matrix.
ONE_TRIANGLE = {"_linalg_eigh", "linalg_cholesky_ex"}


def given_to(case: OperatorCase) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The calls of a case in float64, and in complex128 where the operator accepts it."""
    if "float64" in case.dtypes:
        yield from calls(case, "float64", leaf)
    if "complex128" in case.dtypes:
        yield from calls(case, "complex128", leaf)
    elif case.op not in REAL_ONLY:
        yield from calls(case, "complex128", hermitian_leaf if case.op in ONE_TRIANGLE else complex_leaf)


def samples(case: OperatorCase) -> Iterator[Sample]:
    """Every call of a case whose results have gradients."""
    names = [a.name for a in find(case.op).schema.arguments]
    constant = (CONSTANTS | REFUSED).get(case.op)
    for args, kwargs in given_to(case):
        given = tuple(a.detach() if n == constant and a is not None else a for n, a in zip(names, args, strict=False))
        try:
            sample = Sample(case, given, kwargs)
        except turnout.TurnoutError:
            assert any(t.is_complex() for t in leaves((given, kwargs)))
            assert "complex128" not in case.dtypes
            continue
        if sample.inputs and sample.places:
            yield sample


# Operators whose cases are not differentiable where differences are taken, and those that random calls stand for elsewhere.
LOW, HIGH, SQUARE = values(3, low=0.2, high=0.8), values(3, low=1.1, high=3.0, seed=3), values(3, 3, seed=2)
POSITIVE = (np.asarray(SQUARE) @ np.asarray(SQUARE).T + np.eye(3)).tolist()
REFUSED = {"igamma": "self", "igammac": "self", "special_zeta": "self"}
UNMAPPED = {"bincount"}  # vmap refuses most of their calls
OWN = [
    OperatorCase(op, samples, lambda np, *args, **kwargs: None, dtypes=("float64",))
    for op, samples in {
        "igamma": (S(T(LOW), T(HIGH)),),
        "igammac": (S(T(LOW), T(HIGH)),),
        "special_zeta": (S(T(HIGH), T(values(3, low=1.2, high=2.5))),),
        "clamp.Tensor": (S(T(LOW), T(HIGH), T([0.5, 0.9, 4.0])),),
        "xlogy.Scalar_Self": (S(2.0, T(HIGH)),),
        "log_sigmoid_forward": (S(T(SQUARE)),),
        "nan_to_num": (S(T(SQUARE), 0.0, 1.0, 2.0),),
        "nextafter": (S(T(LOW), T(HIGH)),),
        "mode": (S(T(SQUARE), 0), S(T(SQUARE), 1, True)),
        "sort.stable": (S(T(SQUARE), stable=True), S(T(SQUARE), stable=False, dim=0, descending=True)),
        "linalg_cholesky_ex": (S(T(POSITIVE)), S(T(POSITIVE), upper=True), S(T([POSITIVE, POSITIVE]))),
        "_linalg_eigh": (S(T(POSITIVE)), S(T(POSITIVE), "U"), S(T(POSITIVE), "L", False)),
        "div.Tensor_mode": (S(T(LOW), T(HIGH), rounding_mode=None),),
        "div.Scalar_mode": (S(T(LOW), 3.0, rounding_mode=None), S(T(LOW), 2.0 + 1.0j, rounding_mode=None)),
        "index_add": (S(T(values(5)), 0, T([0, 2, 0], "int64"), T(LOW)),),
        "scatter_reduce.two": (
            S(T(LOW), 0, T([0, 2, 0], "int64"), T(values(3, seed=5)), "prod"),
            S(T(values()), 0, T(0, "int64"), T(values(seed=5)), "prod"),
        ),
    }.items()
]  # fmt: skip
CASES = [case for case in (*DIFFERENTIABLE, *OWN) if rule_of(find(case.op)) is not None]


def tangents_for(sample: Sample, tangents: Sequence[turnout.Tensor | None]) -> tuple[Any, ...]:
    """What a rule is given: one for each argument that may hold tensors."""
    found = {id(p): t for p, t in zip(sample.inputs, tangents, strict=True)}
    given: list[Any] = []
    bound: Any = sample.op.bind(sample.args, sample.kwargs)
    for argument, value in zip(sample.op.schema.arguments, bound, strict=True):
        if str(argument.type).startswith("Tensor"):
            if not isinstance(value, (list, tuple)):
                given.append(found.get(id(value)))
                continue
            each = tuple(found.get(id(t)) for t in value)
            given.append(each if any(t is not None for t in each) else None)
    return tuple(given)


def said(
    sample: Sample, tensors: Sequence[turnout.Tensor], tangents: Sequence[turnout.Tensor | None]
) -> tuple[list[Any], list[Any]]:
    """The results at the tensors, and the tangents that the rule says of those that have gradients."""
    args, kwargs = sample.of(tensors)
    result = sample.op(*args, **kwargs)
    return flat(result), flat(sample.rule(args, kwargs, tangents_for(sample, tangents), result))


def by_rule(sample: Sample, tangents: Sequence[turnout.Tensor | None]) -> list[turnout.Tensor]:
    """The tangents that the rule says; zeros for None."""
    with turnout.no_grad():
        results, made = said(sample, sample.detached(), tangents)
    assert len(made) == len(sample.places)
    return [turnout.zeros_like(results[i]) if t is None else t for i, t in zip(sample.places, made, strict=True)]


def by_pullbacks(sample: Sample, tangents: Sequence[turnout.Tensor | None]) -> list[turnout.Tensor]:
    """The pullback of the pullback."""
    inputs = sample.detached()

    def function(*tensors: turnout.Tensor) -> list[turnout.Tensor]:
        results = sample.results(tensors)
        return [results[i] for i in sample.places]

    results, pull = func.vjp(function, *inputs)
    _, push = func.vjp(lambda *cotangents: pull(list(cotangents)), *[turnout.zeros_like(r) for r in results])
    found: Any = push(tuple(turnout.zeros_like(x) if t is None else t for x, t in zip(inputs, tangents, strict=True)))
    return flat(found)


def same(found: Any, expected: Any, tolerance: float = 1e-8) -> None:
    """The same numbers, shapes and dtypes, in nested lists and tuples."""
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected, strict=True):
            same(f, e, tolerance)
        return
    assert found.dtype is expected.dtype
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=tolerance, atol=tolerance, strict=True)


def without_phases(sample: Sample, made: list[turnout.Tensor]) -> list[turnout.Tensor]:
    """What is determined of complex singular vectors: U dS Vh + dU S Vh + U S dVh, and dS."""
    if sample.case.op != "_linalg_svd" or not made[0].is_complex() or not made[0].numel():
        return made
    U, S_, Vh = sample.results(sample.detached())
    k = S_.shape[-1]
    U, dU, Vh, dVh = U[..., :k], made[0][..., :k], Vh[..., :k, :], made[2][..., :k, :]
    s, ds = S_.to(U.dtype).unsqueeze(-2), made[1].to(U.dtype).unsqueeze(-2)
    return [(U * ds) @ Vh + (dU * s) @ Vh + (U * s) @ dVh, made[1]]
