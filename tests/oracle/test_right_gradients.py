"""Derivatives that PyTorch gets wrong, and that the page of differences names: here they are those of differences of values."""

from __future__ import annotations

# ruff: noqa: E501 - rows of tables
import pytest

import turnout

torch = pytest.importorskip("torch")

# fmt: off
PROGRAMS = {
    "cholesky_solve": ((2, 2), lambda t, x: t.cholesky_solve(t.ones(2, 1, dtype=t.float64), x)),
    "cholesky_inverse": ((2, 2), lambda t, x: t.cholesky_inverse(x)),
    "as_strided_scatter": ((4,), lambda t, x: t.as_strided_scatter(x, t.ones(2, dtype=t.float64), (2,), (2,), 1)),
    "ctc_loss": ((3, 1, 3), lambda t, x: t.nn.functional.ctc_loss(x, t.tensor([[1]]), [3], [1])),
}
VALUES = (  # in Turnout, and in PyTorch
    (lambda t: t.func.jvp(lambda a: a.scatter_reduce(0, t.tensor([0, 0]), a, "prod"), (t.ones(2),), (t.ones(2),))[1].tolist(), [3.0, 1.0], [0.0, 0.0]),
    (lambda t: t.nn.functional.interpolate(t.tensor([[[[0, 255, 3], [7, 200, 90]]]], dtype=t.uint8), scale_factor=1.5, mode="bilinear")[0, 0, 1, 2].item(), 197, 198),
)
# fmt: on


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gradient_is_that_of_differences_where_that_of_pytorch_is_not(name):
    shape, program = PROGRAMS[name]
    right = []
    for t in (turnout, torch):
        x = (t.arange(1.0, 1 + torch.Size(shape).numel(), dtype=t.float64).reshape(shape) ** 0.5).requires_grad_()
        right.append(t.autograd.gradcheck(lambda x, t=t: program(t, x), (x,), raise_exception=False))
    assert right == [True, False]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize(("program", "here", "there"), VALUES)
def test_products_have_a_derivative_along_tangents_and_bytes_are_rounded(program, here, there):
    assert (program(turnout), program(torch)) == (here, there)
