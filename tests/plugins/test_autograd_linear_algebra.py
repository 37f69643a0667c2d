"""Gradients of operators that read one triangle of a matrix, as functions of any matrix; refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import turnout
from outcomes import refused
from turnout import autograd
from turnout.errors import LinAlgError
from turnout_autograd.errors import GradientError

M = [[2.0, 0.5, -1.0], [0.25, 3.0, 0.75], [1.5, -0.5, 4.0]]
SECOND_BAD = turnout.stack([turnout.eye(2), turnout.zeros(2, 2)])


def hermitian(x: Any) -> Any:
    return x + x.transpose(-2, -1).conj()


def positive(x: Any) -> Any:
    return x @ x.transpose(-2, -1).conj()


SYMMETRIC: dict[str, Callable[[Any], Any]] = {
    "cholesky": lambda x: turnout.linalg.cholesky(positive(x)),
    "cholesky upper": lambda x: turnout.linalg.cholesky(positive(x), upper=True),
    "eigvalsh": lambda x: turnout.linalg.eigvalsh(hermitian(x)),
    "eigh": lambda x: turnout.linalg.eigh(hermitian(x))[1].abs(),
    "eigh of the upper triangle": lambda x: turnout.linalg.eigh(hermitian(x), "U")[1].abs(),
    "pinv": lambda x: turnout.linalg.pinv(hermitian(x), hermitian=True),
    "svd": lambda x: turnout.linalg.svd(x)[0].abs(),
}


@pytest.mark.parametrize("dtype", [turnout.float64, turnout.complex128], ids=["real", "complex"])
@pytest.mark.parametrize("name", SYMMETRIC)
def test_gradients_of_symmetric_functions_are_what_differences_say(name: str, dtype: turnout.DType) -> None:
    x = turnout.tensor(M, dtype=dtype)
    if dtype.is_complex:
        x = x + turnout.tensor(M, dtype=dtype).t() * 0.5j
    x = x.requires_grad_()
    assert autograd.gradcheck(SYMMETRIC[name], [x])
    if not dtype.is_complex:
        assert autograd.gradgradcheck(SYMMETRIC[name], [x])


@pytest.mark.parametrize("triangle", ["L", "U"])
@pytest.mark.parametrize("dtype", [turnout.float64, turnout.complex128], ids=["real", "complex"])
def test_the_gradient_of_eigenvectors_is_hermitian_whatever_triangle_was_read(triangle: str, dtype: turnout.DType) -> None:
    x = turnout.tensor(M, dtype=dtype).requires_grad_()
    values, vectors = turnout.linalg.eigh(x, triangle)
    (values.sum() + (vectors.abs() * turnout.arange(9.0, dtype=turnout.float64).reshape(3, 3)).sum()).backward()
    assert turnout.allclose(x.grad, x.grad.mH)


VECTORS: dict[str, Callable[[Any], Any]] = {
    "eig": lambda x: turnout.linalg.eig(x)[1],
    "eigh": lambda x: turnout.linalg.eigh(x)[1],
    "svd": lambda x: turnout.linalg.svd(x)[0],
}


@pytest.mark.parametrize("name", VECTORS)
def test_what_depends_on_the_phases_of_complex_vectors_has_no_gradient(name: str) -> None:
    def phase(x: Any) -> Any:
        return VECTORS[name](x).sum().imag

    x = (turnout.tensor(M) * (1 + 0.5j) + turnout.tensor(M).t()).requires_grad_()
    assert refused(GradientError, lambda: phase(x).backward()) == (
        f"linalg.{name}: the result depends on the phases of the complex vectors, which are not determined, "
        "and so has no gradient\n"
        "  to fix  compute it from what no phase changes, such as abs() of the vectors or V @ V.mH"
    )
    refused(GradientError, lambda: turnout.vmap(turnout.func.grad(phase))(x.detach()[None]))
    seeds = turnout.ones(2)
    assert autograd.grad(VECTORS[name](x).abs().sum(), x, seeds, is_grads_batched=True)[0].shape == (2, 3, 3)


def test_one_phase_that_two_factors_share_changes_nothing() -> None:
    x = (turnout.tensor(M) * (1 + 0.5j)).requires_grad_()
    u, _, vh = turnout.linalg.svd(x)
    (u @ vh).sum().imag.backward()
    assert x.grad is not None


@pytest.mark.parametrize(
    ("kind", "call", "text"),
    [
        (GradientError, lambda: turnout.linalg.qr(turnout.tensor(M, requires_grad=True), "r")[1].sum().backward(),
         "linalg.qr: mode 'r' keeps no Q, which the gradient needs; use mode 'reduced'"),
        (LinAlgError, lambda: turnout.linalg.cholesky(SECOND_BAD),
         "linalg.cholesky: the input is not positive-definite; see the leading minor of order 1 of matrix 1 of the batch"),
        (LinAlgError, lambda: turnout.linalg.inv(SECOND_BAD),
         "linalg.lu_factor: the matrix is singular: diagonal element 1 of U is zero in the factor of matrix 1 of the batch"),
        (LinAlgError, lambda: turnout.linalg.svdvals(turnout.full((2, 2), float("nan"))),
         "linalg.svd: the algorithm did not converge; is the input finite?"),
        (LinAlgError, lambda: turnout.linalg.svd(turnout.diag(turnout.tensor([float("-inf"), 0.0, 1.0]))),
         "linalg.svd: the input has infinite or NaN elements"),
    ],
    ids=["qr without Q", "cholesky", "inv", "an iteration on nan", "singular vectors of an infinite matrix"],
)  # fmt: skip
def test_what_has_no_result_or_no_gradient_says_why(kind: type[Exception], call: Callable[[], Any], text: str) -> None:
    assert refused(kind, call) == text
